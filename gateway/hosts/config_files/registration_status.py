"""How things stand in a host's file: whether the gateway is registered there, as what, and who is beside it."""

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
class Standing:
    """One host: `own` are the entries of the gateway by name, `others` the names of the servers beside them.

    Both are empty where there is no file, and where it cannot be read: then `problem` says why.
    """

    host: HostFormat
    file: Path
    exists: bool
    own: Mapping[str, Mapping[str, Any]] = field(default_factory=dict[str, Mapping[str, Any]])
    others: tuple[str, ...] = ()
    problem: ConfigError | None = None

    def to_json(self) -> dict[str, Any]:
        """The same for programs."""
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


def standing(host: HostFormat, at: Machine) -> Standing:
    """How things stand in the user's file of a host; one that cannot be read is no error."""
    file = user_file(host, at)
    exists = os.path.exists(file)
    try:
        document, _ = host_document(host, file)
        names = own_names(document, host)
        servers = document.table(host.table) or {}
    except ConfigError as error:
        return Standing(host, file, exists, problem=error)
    others = tuple(name for name in servers if name not in names)
    return Standing(host, file, exists, {name: servers[name] for name in names}, others)
