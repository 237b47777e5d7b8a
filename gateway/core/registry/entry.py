"""An entry of an MCP registry: one version of one server, as `GET /v0.1/servers` answers.

Everything in it was written by whoever published the server. Texts are kept as they came; what is shown is cleaned
where it is shown.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from gateway.core.model.json_values import as_object, as_text, objects_in

ACTIVE, DEPRECATED, DELETED = "active", "deprecated", "deleted"
OFFICIAL = "io.modelcontextprotocol.registry/official"
"""The key of what the registry itself says of an entry."""

SERVER_NAME = r"^[A-Za-z0-9][A-Za-z0-9.-]{0,199}/[A-Za-z0-9][A-Za-z0-9._-]{0,199}$"
"""A name in a registry: a domain, reversed, and a name in it, such as `io.github.acme/weather`."""
SERVER_VERSION = r"^[A-Za-z0-9][A-Za-z0-9.+_~-]{0,254}$"
SERVER_AT_VERSION = rf"{SERVER_NAME[:-1]}@{SERVER_VERSION[1:]}"
"""The same with a version: `io.github.acme/weather@1.2.3`."""

_MOST = 100


@dataclass(frozen=True)
class RegistryEntry:
    """One version of a server. `status` is `active`, `deprecated` or `deleted`; `status_words` are its publisher's."""

    name: str
    version: str
    title: str = ""
    description: str = ""
    status: str = ACTIVE
    status_words: str = ""
    is_latest: bool = False
    repository: str = ""
    website: str = ""
    packages: Sequence[Mapping[str, Any]] = ()
    remotes: Sequence[Mapping[str, Any]] = ()

    @property
    def is_active(self) -> bool:
        """Whether its publisher and the registry still offer it."""
        return self.status == ACTIVE

    @property
    def reference(self) -> str:
        """Its name and version, as the configuration keeps them."""
        return f"{self.name}@{self.version}"


def read_entry(answer: object) -> RegistryEntry | None:
    """Read an entry from an answer; None if it has no valid name and version."""
    whole = as_object(answer)
    server = as_object(whole.get("server"))
    name, version = as_text(server.get("name")) or "", as_text(server.get("version")) or ""
    if not re.fullmatch(SERVER_NAME, name) or not re.fullmatch(SERVER_VERSION, version):
        return None
    official = as_object(as_object(whole.get("_meta")).get(OFFICIAL))
    return RegistryEntry(
        name,
        version,
        title=as_text(server.get("title")) or "",
        description=as_text(server.get("description")) or "",
        status=as_text(official.get("status")) or as_text(server.get("status")) or ACTIVE,
        status_words=as_text(official.get("statusMessage")) or "",
        is_latest=official.get("isLatest") is True,
        repository=as_text(as_object(server.get("repository")).get("url")) or "",
        website=as_text(server.get("websiteUrl")) or "",
        packages=tuple(objects_in(server.get("packages"))[:_MOST]),
        remotes=tuple(objects_in(server.get("remotes"))[:_MOST]),
    )


def read_page(answer: object) -> tuple[list[RegistryEntry], str | None]:
    """Read the entries of a page of the list, leaving out malformed ones, and the cursor of the next page, if any."""
    page = as_object(answer)
    entries = [entry for one in objects_in(page.get("servers")) if (entry := read_entry(one)) is not None]
    return entries, as_text(as_object(page.get("metadata")).get("nextCursor")) or None


def fits(entry: RegistryEntry, words: Sequence[str]) -> bool:
    """Whether an entry contains every word, in any case, in its name, title or description."""
    text = f"{entry.name} {entry.title} {entry.description}".casefold()
    return all(word.casefold() in text for word in words)


def split_reference(reference: str) -> tuple[str, str | None]:
    """Split `NAME@VERSION`, or `NAME`, which has no version."""
    name, _, version = reference.partition("@")
    return name, version or None


def is_registry_name(text: str) -> bool:
    """Whether a text can be the name of a server in a registry, with or without a version."""
    name, version = split_reference(text)
    known = re.fullmatch(SERVER_NAME, name) is not None
    return known and (version is None or re.fullmatch(SERVER_VERSION, version) is not None)
