"""Finding servers in every known host's files, in one host's, or in a file that a user names."""

import os
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from gateway.core.profiles.match_profile import known_name
from gateway.errors import ConfigError, ConfigFileMissing
from gateway.hosts.config_files.documents import Document, syntax_of
from gateway.hosts.config_files.files import decoded_text, read_bytes
from gateway.hosts.config_files.host_format import ConfigPlace, HostFormat
from gateway.hosts.config_files.hosts import HOSTS, find_host, host_of_file
from gateway.hosts.config_files.machine import Machine
from gateway.hosts.config_files.servers import Server, read_servers


@dataclass
class DiscoveredServers:
    """The servers that were found, the files, and problems with files that could not be read."""

    servers: list[Server] = field(default_factory=list[Server])
    files: list[Path] = field(default_factory=list[Path])
    problems: list[str] = field(default_factory=list[str])


def discover(sources: Sequence[str], at: Machine) -> DiscoveredServers:
    """Find the servers of the named hosts and files, or of every known host if none is named.

    A host's broken file is skipped and reported as a problem; a broken file that was named is an error.

    Raises:
        ConfigError: a source is neither a host nor a file, or a named file cannot be read.
    """
    discovered = DiscoveredServers()
    for source in sources or HOSTS:
        host = known_name(HOSTS, source)
        if host is not None:
            _look_in_host(HOSTS[host], at, discovered)
        else:
            _look_in_file(source, at, discovered)
    return discovered


def _look_in_host(host: HostFormat, at: Machine, discovered: DiscoveredServers) -> None:
    for place in host.places(at):
        file = Path(place.path)
        if file in discovered.files or not os.path.isfile(file):
            continue
        discovered.files.append(file)
        try:
            document = Document(decoded_text(read_bytes(file), file), host.syntax, str(file))
            discovered.servers += read_servers(document, host, at, project=_project(place, at))
        except ConfigError as error:
            discovered.problems.append(str(error))


def _look_in_file(source: str, at: Machine, discovered: DiscoveredServers) -> None:
    file = Path(source).absolute()
    content = read_bytes(file)
    if content is None:
        if "/" not in source and "\\" not in source and "." not in source:
            find_host(source)
        raise ConfigFileMissing("there is no such file", where=source)
    discovered.files.append(file)
    document = Document(decoded_text(content, file), syntax_of(file.name), str(file))
    found = host_of_file(file, document.data)
    if found is None:
        remedy = "the known keys are mcpServers, servers, context_servers, mcp_servers, mcp and extensions"
        raise ConfigError("names no servers in a way that a known host would", where=source, remedy=remedy)
    host, table = found
    discovered.servers += read_servers(document, host, at, table=table, project=_project_of(host, file, at))


def _project(place: ConfigPlace, at: Machine) -> str | None:
    return at.cwd if place.scope == "project" else None


def _project_of(host: HostFormat, file: Path, at: Machine) -> str | None:
    """Return the folder that a host's file belongs to, if the file is in the place of that host's project file."""
    if any(Path(place.path) == file for place in host.places(at) if place.scope == "user"):
        return None
    for folder in file.parents:
        there = Machine(at.platform, at.home, str(folder), at.environ)
        if any(Path(place.path) == file for place in host.places(there) if place.scope == "project"):
            return str(folder)
    return None
