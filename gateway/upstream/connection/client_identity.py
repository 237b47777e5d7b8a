"""The identity presented to an upstream: that of the host in front, since upstreams adapt to a host's capabilities."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from gateway._version import __version__
from gateway.core.model.caller import Caller
from gateway.core.model.json_values import as_object
from gateway.upstream.connection.host_requests import ASKED

GATEWAY: Mapping[str, Any] = {"name": "mcp-gateway", "version": __version__}
"""The clientInfo of the gateway itself, for connections without a single host in front."""

TASKS = "io.modelcontextprotocol/tasks"
"""The extension of 2026-07-28 that allows a call to be answered with a task."""

_NOT_CARRIED = frozenset({"tasks"})
"""Client capabilities whose messages the gateway does not carry (tasks of 2025-11-25, a discontinued experiment)."""


@dataclass(frozen=True)
class ClientIdentity:
    """The clientInfo and the capabilities presented to an upstream, and the minimum log level that is wanted."""

    client_info: Mapping[str, Any] = field(default_factory=lambda: GATEWAY)
    capabilities: Mapping[str, Any] = field(default_factory=dict[str, Any])
    log_level: str | None = None
    tells_of_roots: bool = True
    """Whether the host can announce that its roots have changed: a modern one cannot, whatever it declares."""

    @property
    def is_interactive(self) -> bool:
        """Whether an upstream may send requests to the host."""
        return any(capability in self.capabilities for capability in ASKED.values())

    @property
    def takes_tasks(self) -> bool:
        """Whether a call may be answered with a task (the extension of 2026-07-28)."""
        return TASKS in as_object(self.capabilities.get("extensions"))

    @property
    def extensions(self) -> Mapping[str, Any]:
        """The declared extensions that may affect what servers list; tasks do not."""
        return {key: value for key, value in as_object(self.capabilities.get("extensions")).items() if key != TASKS}

    @property
    def for_handshake(self) -> dict[str, Any]:
        """The capabilities for `initialize`."""
        declared = dict(self.capabilities)
        if not self.tells_of_roots and isinstance(declared.get("roots"), Mapping):
            declared["roots"] = {}
        if self.takes_tasks:
            kept = {key: value for key, value in as_object(declared.pop("extensions")).items() if key != TASKS}
            declared |= {"extensions": kept} if kept else {}
        return declared

    @cached_property
    def mark(self) -> str:
        """The capabilities as text, the same for equal ones."""
        return json.dumps(self.capabilities, sort_keys=True, default=str)


_latest = [(Caller(), ClientIdentity())]


def identity_of(caller: Caller) -> ClientIdentity:
    """Return the identity of a host for upstreams: only what the host itself declared."""
    known, identity = _latest[0]
    if known is not caller:  # one call asks for it once for each upstream, and more
        identity = _identity_of(caller)
        _latest[0] = caller, identity
    return identity


def _identity_of(caller: Caller) -> ClientIdentity:
    capabilities = {key: value for key, value in caller.capabilities.items() if key not in _NOT_CARRIED}
    return ClientIdentity(caller.client_info or GATEWAY, capabilities, caller.log_level, not caller.is_modern)
