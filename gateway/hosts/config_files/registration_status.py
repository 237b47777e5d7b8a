"""The registration of the gateway in a host's file: whether and how it is registered, and the other servers."""

import os
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from gateway.errors import ConfigError
from gateway.hosts.config_files.gateway_entry import own_names
from gateway.hosts.config_files.host_format import HostFormat
from gateway.hosts.config_files.launch_command import is_own
from gateway.hosts.config_files.machine import Machine
from gateway.hosts.config_files.register_gateway import host_document, projects_in, user_file


@dataclass(frozen=True)
class ProjectServers:
    """The servers that a host has for the project in one folder, beside those for all projects.

    They are in a file of the project or, if Claude Code has them for this user alone, in the user's file. `own` are the
    names of the gateway, `others` those of other servers.
    """

    folder: str
    file: Path
    own: tuple[str, ...]
    others: tuple[str, ...]

    @classmethod
    def of(cls, folder: str, file: Path, servers: Mapping[str, Any], at: Machine) -> "ProjectServers":
        """Tell the gateway from the other servers."""
        own = tuple(name for name, entry in servers.items() if is_own(entry, at.gateway_ports))
        return cls(folder, file, own, tuple(name for name in servers if name not in own))

    def to_json(self) -> dict[str, Any]:
        """Return the same for programs."""
        return {"folder": self.folder, "file": str(self.file), "names": list(self.own), "others": list(self.others)}


@dataclass(frozen=True)
class RegistrationStatus:
    """The registration in one host: `own` are the entries of the gateway by name, `others` the names of other servers.

    Both are empty if there is no file, or if it cannot be read; in the latter case, `problem` says why. `projects` are
    the servers for single projects: the working folder, and those in the user's file of Claude Code.
    """

    host: HostFormat
    file: Path
    exists: bool
    own: Mapping[str, Mapping[str, Any]] = field(default_factory=dict[str, Mapping[str, Any]])
    others: tuple[str, ...] = ()
    problem: ConfigError | None = None
    projects: tuple[ProjectServers, ...] = ()

    def to_json(self) -> dict[str, Any]:
        """Return the same for programs."""
        return {
            "host": self.host.name,
            "title": self.host.title,
            "file": str(self.file),
            "exists": self.exists,
            "registered": bool(self.own),
            "names": list(self.own),
            "others": list(self.others),
            "projects": [one.to_json() for one in self.projects],
            "problem": None if self.problem is None else str(self.problem),
        }


def registration_status(host: HostFormat, at: Machine) -> RegistrationStatus:
    """Return the registration in the user's file of a host, and in projects; an unreadable file is not an error."""
    file = user_file(host, at)
    exists = os.path.exists(file)
    try:
        document, _ = host_document(host, file)
        names = own_names(document, host, at.gateway_ports)
        servers = document.table(host.table) or {}
        known = projects_in(document, host)
    except ConfigError as error:
        return RegistrationStatus(host, file, exists, problem=error, projects=tuple(_in_project(host, file, at)))
    others = tuple(name for name in servers if name not in names)
    projects = tuple(_in_projects(host, file, known, at))
    return RegistrationStatus(host, file, exists, {name: servers[name] for name in names}, others, projects=projects)


def _in_projects(host: HostFormat, file: Path, known: Mapping[str, Any], at: Machine) -> Iterator[ProjectServers]:
    """Yield the servers of the working folder and of the projects in the user's file; `known` are those by folder."""
    for folder, servers in known.items():
        if servers:
            yield ProjectServers.of(folder, file, servers, at)
    for folder in dict.fromkeys([at.cwd, *known]):
        yield from _in_project(host, file, replace(at, cwd=folder))


def _in_project(host: HostFormat, file: Path, at: Machine) -> Iterator[ProjectServers]:
    """Yield the servers in the project files of the working folder; one that cannot be read is left out."""
    for place in host.places(at):
        path = Path(place.path)
        if place.scope == "project" and path != file and path.is_file():
            with suppress(ConfigError):
                document, _ = host_document(host, path)
                if servers := document.table(host.table):
                    yield ProjectServers.of(at.cwd, path, servers, at)
