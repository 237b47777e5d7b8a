"""The registration of the gateway in a host's file: whether and how it is registered, and the other servers."""

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from gateway.errors import ConfigError
from gateway.hosts.config_files.gateway_entry import own_names
from gateway.hosts.config_files.hosts import HostFormat
from gateway.hosts.config_files.machine import Machine
from gateway.hosts.config_files.register_gateway import host_document, user_file


@dataclass(frozen=True)
class RegistrationStatus:
    """The registration in one host: `own` are the entries of the gateway by name, `others` the names of other servers.

    Both are empty if there is no file, or if it cannot be read; in the latter case, `problem` says why.
    """

    host: HostFormat
    file: Path
    exists: bool
    own: Mapping[str, Mapping[str, Any]] = field(default_factory=dict[str, Mapping[str, Any]])
    others: tuple[str, ...] = ()
    problem: ConfigError | None = None

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
            "problem": None if self.problem is None else str(self.problem),
        }


def registration_status(host: HostFormat, at: Machine) -> RegistrationStatus:
    """Return the registration in the user's file of a host; an unreadable file is not an error."""
    file = user_file(host, at)
    exists = os.path.exists(file)
    try:
        document, _ = host_document(host, file)
        names = own_names(document, host)
        servers = document.table(host.table) or {}
    except ConfigError as error:
        return RegistrationStatus(host, file, exists, problem=error)
    others = tuple(name for name in servers if name not in names)
    return RegistrationStatus(host, file, exists, {name: servers[name] for name in names}, others)
