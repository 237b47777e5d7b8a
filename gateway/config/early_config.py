"""The greeting for hosts, read before anything else is loaded. Standard library only.

`serve` over stdio answers its host's first message before the schema, and with it the settings, can be imported, and
before any upstream has started. So the upstreams' instructions come from a file that the last run stored beside the
catalogues, for this configuration file and these upstreams.
"""

import hashlib
import json
from collections.abc import Iterable, Mapping
from contextlib import suppress
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

from gateway.config.documents import read_document
from gateway.config.expansion import expand
from gateway.config.find_config import cache_folder, find_file
from gateway.config.foreign import translate_document
from gateway.config.project_file import PROJECT_FILE, project_file_here, toolsets_here
from gateway.core.model.json_values import as_object
from gateway.core.model.toolset_scope import problem_in, scope_as_written
from gateway.core.tools.instructions import Introductions
from gateway.errors import ConfigError

NAME = "mcp-gateway"

_VERSION = 2
"""The version of the stored file's format: a file of another version is not read."""
_LONGEST_NAME = 80
_LARGEST = 1024 * 1024
"""Bytes of the stored file beyond which it is neither written nor read."""


class Greeting(NamedTuple):
    """`[gateway] name` and `instructions`, and the upstreams' instructions of the last run."""

    name: str = NAME
    instructions: str | None = None
    others: Introductions = Introductions()


def read_greeting(path: Path | None, environ: Mapping[str, str], toolsets: Iterable[str] = ()) -> Greeting:
    """Read the greeting from the configuration that `load_settings` would read; the default one if it is unreadable.

    With `toolsets`, only those upstreams introduce themselves of which all of these have something.

    Errors in the file are reported by `load_settings`, which runs later.
    """
    try:
        found = find_file(path, environ=environ)
        if found is None:
            return Greeting()
        document = _document(found)
    except ConfigError:
        return Greeting()
    if found.suffix.lower() == ".json":
        document = translate_document(document).document
    expanded, _ = expand(as_object(document.get("gateway")), environ)
    name, instructions = expanded.get("name"), expanded.get("instructions")
    upstreams = as_object(document.get("upstreams"))
    enabled = [name for name, one in upstreams.items() if as_object(one).get("enabled") is not False]
    tables = as_object(document.get("toolsets"))
    within = [scope_as_written(toolset, as_object(tables[toolset])) for toolset in toolsets if toolset in tables]
    reached = [name for name in enabled if all(toolset.has(name) for toolset in within)]
    if tables and (unknown := next((toolset for toolset in toolsets if toolset not in tables), None)) is not None:
        reached = []  # nor are instructions to use what is not there
        missing = _without_toolset(unknown, tables)
        instructions = f"{missing}\n\n{instructions}" if isinstance(instructions, str) else missing
    # The last run served this toolset alone, or all upstreams.
    others = _recalled(_kept_file(found, reached, environ))
    if within and not others.parts:
        others = _recalled(_kept_file(found, enabled, environ))
    return Greeting(
        name if isinstance(name, str) else NAME,
        instructions if isinstance(instructions, str) else None,
        others.only(lambda upstream: upstream in reached),
    )


def _without_toolset(name: str, tables: Mapping[str, Any]) -> str:
    """Say to a model why it is offered nothing.

    The project's file is not trusted: a name that could be anything but a name is left out.
    """
    from gateway.core.near_names import which_name  # here, because it is rarely needed

    if problem_in(name) is not None:
        return (
            f"No server's tools are offered here: {project_file_here() or PROJECT_FILE} cannot be used. Tell the user, "
            "who can correct it: `mcp-gateway doctor`, run in that folder, says what is wrong."
        )
    is_name = len(name) <= _LONGEST_NAME and all(char.isalnum() or char in "-_." for char in name)
    named = f"the toolset {name!r}" if is_name else "a toolset"
    which = which_name(name, list(tables)) if is_name else f"there are: {', '.join(tables)}"
    return (
        f"No server's tools are offered here: {project_file_here() or PROJECT_FILE} asks for {named}, which the "
        f"configuration of this gateway does not have ({which}). Tell the user, who can correct the name there."
    )


def toolsets_of_host(path: Path | None, environ: Mapping[str, str], chosen: str | None) -> tuple[str, ...]:
    """Return the toolsets of a host on stdio with this configuration: the chosen one, and that of its project.

    Where the configuration has no toolsets, or cannot be read, the project's file says nothing.
    """
    try:
        found = find_file(path, environ=environ)
        if found is not None and as_object(_document(found).get("toolsets")):
            return toolsets_here(chosen)
    except ConfigError:
        pass  # it is reported where it is needed
    return () if chosen is None else (chosen,)


def _document(path: Path) -> Mapping[str, Any]:
    """Return the configuration. It is parsed once, until its file changes. Raises ConfigError."""
    try:
        found = path.stat()
    except OSError:
        return read_document(path)  # which says what is wrong
    return _parsed(path, (found.st_mtime_ns, found.st_size, found.st_ino))


@lru_cache(maxsize=1)
def _parsed(path: Path, _stamp: tuple[int, int, int]) -> Mapping[str, Any]:
    return read_document(path)


def keep_introductions(
    config: Path, upstreams: Iterable[str], introductions: Introductions, environ: Mapping[str, str]
) -> None:
    """Store the upstreams' instructions for the next start with this configuration file and these enabled upstreams.

    If the disk is not writable, nothing is stored and nothing fails. Blocks while a small file is written.
    """
    # Imported here, because nothing that the first answer does not need is loaded before it.
    from gateway.core.model.caller import Caller
    from gateway.core.model.grant import EVERYTHING
    from gateway.system.files import write_file

    # They are for a host on stdio, whatever is served now.
    introductions = introductions.reached_by(EVERYTHING, Caller().principal)
    path = _kept_file(config, upstreams, environ)
    content = json.dumps({"version": _VERSION, **introductions._asdict()}).encode("ascii")
    if path is None:
        return
    with suppress(OSError):
        if (
            introductions == Introductions(limits=introductions.limits, longest=introductions.longest)
            or len(content) > _LARGEST
        ):
            path.unlink(missing_ok=True)
            return
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        write_file(path, content)


def _kept_file(config: Path, upstreams: Iterable[str], environ: Mapping[str, str]) -> Path | None:
    folder = cache_folder(environ)
    if folder is None:
        return None
    key = json.dumps([str(config.absolute()), *upstreams]).encode("ascii")
    # In the folder of catalogues, which is cleaned up by age.
    return folder / "catalogues" / f"instructions-{hashlib.sha256(key).hexdigest()[:40]}.json"


def _recalled(path: Path | None) -> Introductions:
    """Read the stored introductions; empty if the file is unusable in any way."""
    try:
        if path is None or path.stat().st_size > _LARGEST:
            return Introductions()
        kept = as_object(json.loads(path.read_bytes()))
        if kept.get("version") != _VERSION:
            return Introductions()
        longest = _limit(kept["longest"])
        limits = tuple((_text(glob), _limit(limit)) for glob, limit in kept["limits"])
        handles = tuple((_text(glob), told is True) for glob, told in kept["handles"])
        parts = tuple((_text(name), _text(text)) for name, text in kept["parts"])
        skilled = None if kept.get("skilled") is None else tuple(map(_text, kept["skilled"]))
        return Introductions(parts, limits, longest, handles, skilled=skilled)
    except (OSError, ValueError, TypeError, KeyError, RecursionError):
        return Introductions()


def _text(value: object) -> str:
    if not isinstance(value, str):
        raise TypeError
    return value


def _limit(value: object) -> int | None:
    if value is not None and (not isinstance(value, int) or value <= 0):
        raise TypeError
    return value
