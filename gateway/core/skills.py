"""Skills of upstreams (SEP-2640): what an upstream declares, which entries are sound, and their URIs for hosts. Pure.

Frontmatter is never parsed here, and digests are never changed: an entry goes to the host as its upstream wrote it,
only with the upstream's name in its URIs, and with where it came from.

Source: https://github.com/modelcontextprotocol/ext-skills/blob/main/specification/stable/skills.mdx
"""

import hashlib
from collections.abc import Iterable, Mapping
from typing import Any

import pybase64

from gateway.core import apps
from gateway.core.model.dot_segments import has_dot_segments
from gateway.core.model.json_values import as_list, as_object, is_list, is_object, objects_in
from gateway.core.model.wire import SKILLS_EXTENSION, WireObject

MANIFEST = "SKILL.md"
"""The file that every skill has; the URI of a skill is the URI of this file."""

DYNAMIC = "dynamic"
"""Stands for the files of a skill whose content is generated, so that there are no digests."""

DIRECTORY = "inode/directory"
"""The media type of a directory."""

ORIGIN_KEY = "mcp-gateway/upstream"
"""The key in the `_meta` of an entry that names the upstream it came from."""

MOST_FILES = 512
MOST_BYTES = 16 * 1024 * 1024
"""The limits that every host must support for one skill; beyond them, no host has to load it."""

_LONGEST_URI = 2_048


def has_skills(capabilities: WireObject) -> bool:
    """Whether a server declares the extension; before 2026-07-28, some servers declare it as experimental."""
    return any(SKILLS_EXTENSION in as_object(capabilities.get(key)) for key in ("extensions", "experimental"))


def reads_directories(capabilities: WireObject) -> bool:
    """Whether a server declares that it serves `resources/directory/read`."""
    declared = (as_object(capabilities.get(key)).get(SKILLS_EXTENSION) for key in ("extensions", "experimental"))
    return any(as_object(settings).get("directoryRead") is True for settings in declared)


def root_of(uri: str) -> str:
    """Return the directory of a skill, by the URI of its `SKILL.md`."""
    return uri.removesuffix(f"/{MANIFEST}")


def name_of(entry: WireObject) -> str:
    """Return the name of a sound entry's skill, a label that others may have as well."""
    return str(as_object(entry.get("frontmatter")).get("name"))


def fault_of(entry: object) -> str | None:
    """Return why a host cannot load the skill with this entry, or None if it can.

    A file outside the skill's directory is a fault because hosts read the URIs of an entry on its word: it could name
    another server's resource.
    """
    if not is_object(entry):
        return "it is not an object"
    uri, front = entry.get("uri"), as_object(entry.get("frontmatter"))
    if not isinstance(uri, str) or len(uri) > _LONGEST_URI or not uri.endswith(f"/{MANIFEST}"):
        return f"its uri is not the URI of a {MANIFEST}"
    for key in ("name", "description"):
        if not isinstance(front.get(key), str) or not front[key]:
            return f"its frontmatter has no {key}"
    if has_dot_segments(uri) or root_of(uri).rpartition("/")[2] != front["name"]:
        return "its directory does not have the name in its frontmatter"
    files = entry.get("resources")
    return None if files == DYNAMIC else _fault_of_files(files, uri)


def _fault_of_files(files: object, uri: str) -> str | None:
    if not is_list(files):
        return f"its resources are neither a list nor {DYNAMIC!r}"
    if len(files) > MOST_FILES:
        return f"it has {len(files):,} files, and {MOST_FILES} are allowed"
    total, seen = 0, set[str]()
    for file in files:
        there, size = as_object(file).get("uri"), as_object(file).get("size")
        if not isinstance(there, str) or not isinstance(as_object(file).get("digest"), str):
            return "a file of it has no uri or no digest"
        if not isinstance(size, int) or isinstance(size, bool) or size < 0:
            return "a file of it has no size"
        if len(there) > _LONGEST_URI or not there.startswith(f"{root_of(uri)}/") or has_dot_segments(there):
            return "a file of it is outside its directory"
        if there in seen:
            return "a file of it is listed twice"
        seen.add(there)
        total += size
    if uri not in seen:
        return f"its {MANIFEST} is not among its files"
    return f"its files have {total:,} bytes, and {MOST_BYTES:,} are allowed" if total > MOST_BYTES else None


def outward_entry(upstream: str, entry: WireObject) -> dict[str, Any]:
    """Return a sound entry for hosts: all its URIs with the upstream in front, and where it came from in `_meta`."""
    files = entry.get("resources")
    if is_list(files):
        files = [{**file, "uri": apps.outward(upstream, file["uri"])} for file in files]
    uri = apps.outward(upstream, str(entry["uri"]))
    meta = {**as_object(entry.get("_meta")), ORIGIN_KEY: upstream}
    return {**entry, "uri": uri, "resources": files, "_meta": meta}


def outward_children(upstream: str, result: Mapping[str, Any]) -> dict[str, Any]:
    """Return a result of `resources/directory/read` for hosts."""
    children = (child for child in objects_in(result.get("resources")) if isinstance(child.get("uri"), str))
    return {**result, "resources": [{**child, "uri": apps.outward(upstream, child["uri"])} for child in children]}


def children_of(directory: str, entries: Iterable[WireObject]) -> list[dict[str, Any]] | None:
    """Return the files and directories right below a directory, by the sound entries of its upstream's skills.

    None if it is not a directory of any skill that says what files it has.
    """
    found: dict[str, dict[str, Any]] = {}
    for entry in entries:
        root = root_of(str(entry["uri"]))
        if directory != root and not directory.startswith(f"{root}/"):
            continue
        for file in as_list(entry.get("resources")):
            if not file["uri"].startswith(f"{directory}/"):
                continue
            name, slash, _ = file["uri"].removeprefix(f"{directory}/").partition("/")
            kind = {"mimeType": DIRECTORY} if slash else {"size": file["size"]}
            found.setdefault(name, {"uri": f"{directory}/{name}", "name": name, **kind})
    return list(found.values()) or None


def bytes_of(content: WireObject) -> bytes | None:
    """Return the raw bytes of one content of `resources/read`; None if it has none."""
    text, blob = content.get("text"), content.get("blob")
    if isinstance(text, str):
        return text.encode("utf-8", "surrogatepass")
    try:
        return pybase64.b64decode(blob, validate=True) if isinstance(blob, str) else None
    except ValueError:
        return None


def is_as_described(entry: WireObject, uri: str, content: bytes) -> bool:
    """Whether the bytes of a file have the size and digest in the entry of its skill; so have those of dynamic ones."""
    if entry.get("resources") == DYNAMIC:
        return len(content) <= MOST_BYTES
    digest = f"sha256:{hashlib.sha256(content).hexdigest()}"
    described = (len(content), digest)
    files = objects_in(entry.get("resources"))
    return any(each.get("uri") == uri and (each.get("size"), each.get("digest")) == described for each in files)
