"""Which of a host's own servers are behind the gateway already, and the way there for the others."""

import shlex
from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path

from gateway.core.fact_words import plain
from gateway.errors import ConfigError
from gateway.hosts.config_files.files import decoded_text, read_bytes
from gateway.hosts.config_files.host_format import HostFormat
from gateway.hosts.config_files.import_servers import KnownServers, known_to
from gateway.hosts.config_files.machine import Machine
from gateway.hosts.config_files.register_gateway import host_document
from gateway.hosts.config_files.registration_status import ProjectServers
from gateway.hosts.config_files.servers import Server, read_servers


@dataclass(frozen=True)
class ServersBehind:
    """Names of a host's servers that are upstreams too; those in `on` are enabled in both places.

    `in_projects`: folders and names of those that Claude Code has in its file for one project alone, which are in
    neither of the others. `in_project_files`: files of projects, and names of those in them. `obstacles`: why servers
    cannot be upstreams, by the place (a file, or the folder of a project in the host's file; None: all projects) and
    name.
    """

    names: frozenset[str] = frozenset()
    on: frozenset[str] = frozenset()
    in_projects: tuple[tuple[str, str], ...] = ()
    in_project_files: frozenset[tuple[str, str]] = frozenset()
    obstacles: Mapping[tuple[str | None, str], str] = field(default_factory=dict[tuple[str | None, str], str])

    def way_of_project(self, project: ProjectServers) -> str:
        """Describe how the servers in a project's own file get behind the gateway alone."""
        file = str(project.file)
        servers, unusable = self.usable(project.others, file)
        if not servers:
            return unusable
        if unusable:
            return f"{self.way_of_project(replace(project, others=servers))}; {unusable}"
        is_one = len(servers) == 1
        if all((file, name) in self.in_project_files for name in servers):
            them, their = ("it", "its") if is_one else ("them", "their")
            return f"behind the gateway already: take {them} out of that file, or {their} tools are offered twice"
        return f"mcp-gateway import {shlex.quote(file)} puts {'it' if is_one else 'them'} behind the gateway"

    def usable(self, servers: Collection[str], place: str | None = None) -> tuple[tuple[str, ...], str]:
        """Return those of a host's servers that can be upstreams, and the words on the others: "" if there are none."""
        usable = tuple(name for name in servers if (place, name) not in self.obstacles)
        others = (name for name in servers if name not in usable)
        words = (f"{plain(name)} cannot be imported: {plain(self.obstacles[place, name], 200)}" for name in others)
        return usable, "; ".join(words)

    def way(self, servers: Collection[str], import_: str, only: str) -> str:
        """Describe how `servers` of the host get behind the gateway alone: by the commands `import_` and `only`."""
        servers, unusable = self.usable(servers)
        if not servers:
            return unusable
        if unusable:
            return f"{self.way(servers, import_, only)}; {unusable}"
        known = [name for name in servers if name in self.names]
        if known and len(known) == len(servers):
            which, them = (f"{known[0]} is", "it") if len(known) == 1 else (f"{_all(known)} are", "them")
            return f"{which} behind the gateway already: {only} takes {them} out of the host"
        if known:
            return f"{', '.join(known)}: behind the gateway already; {import_} puts the others there; then {only}"
        return f"{import_} puts {'it' if len(servers) == 1 else 'them'} behind the gateway; then {only}"

    def twice(self, servers: Collection[str]) -> str | None:
        """Describe the ones of `servers` that a host with the gateway gets twice; None if there are none."""
        double = [name for name in servers if name in self.on]
        if not double:
            return None
        if len(double) == 1:
            return f"{double[0]} is an upstream of the gateway, too: its tools are offered twice"
        which = _all(double) if len(double) == len(servers) else ", ".join(double)
        return f"{which} are upstreams of the gateway, too: their tools are offered twice"


def servers_behind(
    host: HostFormat,
    file: Path,
    at: Machine,
    configuration: Path | None,
    projects: Iterable[ProjectServers] = (),
) -> ServersBehind:
    """Compare the servers in a host's file, and in those of projects, with the configuration.

    With a configuration or a file that cannot be read, there are none.
    """
    apart = [project for project in projects if project.file != file]
    obstacles = dict(_obstacles(host, file, at, apart))
    if configuration is None or configuration.suffix.lower() == ".json":
        return ServersBehind(obstacles=obstacles)
    with suppress(ConfigError):
        known = known_to(decoded_text(read_bytes(configuration), configuration), str(configuration))
        in_files = frozenset(each for project in apart for each in _in_file(host, project, at, known))
        document, _ = host_document(host, file)
        both = [one for one in read_servers(document, host, at) if not one.own and known.has(one)]
        servers = [one for one in both if not one.project]
        on = (one for one in servers if (one.upstream or {}).get("enabled") is not False and not known.is_off(one))
        in_projects = tuple((one.project, one.name) for one in both if one.project)
        return ServersBehind(
            frozenset(one.name for one in servers), frozenset(one.name for one in on), in_projects, in_files, obstacles
        )
    return ServersBehind(obstacles=obstacles)


def _obstacles(
    host: HostFormat, file: Path, at: Machine, projects: Iterable[ProjectServers]
) -> Iterator[tuple[tuple[str | None, str], str]]:
    """Yield why servers in a host's file, and in those of projects, cannot be upstreams, by their places and names."""
    with suppress(ConfigError):
        document, _ = host_document(host, file)
        for one in read_servers(document, host, at):
            if one.obstacle is not None:
                yield (one.project, one.name), one.obstacle
    for project in projects:
        with suppress(ConfigError):
            for one in _read_project(host, project, at):
                if one.obstacle is not None:
                    yield (str(project.file), one.name), one.obstacle


def _read_project(host: HostFormat, project: ProjectServers, at: Machine) -> tuple[Server, ...]:
    document, _ = host_document(host, project.file)
    return read_servers(document, host, replace(at, cwd=project.folder), project=project.folder)


def _in_file(host: HostFormat, project: ProjectServers, at: Machine, known: KnownServers) -> Iterator[tuple[str, str]]:
    with suppress(ConfigError):
        for one in _read_project(host, project, at):
            if known.has(one):
                yield str(project.file), one.name


def removal(name: str) -> str:
    """Return the command that takes a server for one project out of Claude Code, to be run in the project's folder."""
    return shlex.join(["claude", "mcp", "remove", name, "-s", "local"])


def _all(servers: Collection[str]) -> str:
    return "both" if len(servers) == 2 else f"all {len(servers)}"
