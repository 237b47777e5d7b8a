"""Say which program has a port that a command was to listen on, and what to do about it."""

import sys

from gateway.cli.diagnosis.ports import Listener, listener, record_of
from gateway.core.fact_words import plain
from gateway.errors import PortInUse
from gateway.serving.control.records import GatewayRecord

_WITH_OPTION = ("http.port", "model_proxy.port")
"""The keys that the option --port stands for."""

_OTHER_PORT = "--port N listens on another port, --port 0 on any that is free"


def naming_holder(error: PortInUse) -> PortInUse:
    """Return the error with the program that has the port, as far as the system tells."""
    found = listener(error.port)
    record = None if found is None else record_of(found)
    words = "" if found is None else f"; {_holder(found, record)} has it"
    other = _OTHER_PORT if error.where in _WITH_OPTION else error.remedy
    remedy = "; ".join(filter(None, (_look(error.port, found, record), other)))
    return PortInUse(error.message + words, port=error.port, remedy=remedy)


def _holder(found: Listener, record: GatewayRecord | None) -> str:
    if record is not None:
        return f"the gateway {plain(record.name)!r} (process {record.pid}, {record.config or 'without a file'})"
    return f"{'a gateway, ' if found.is_gateway else ''}{found.name} (process {found.pid})"


def _look(port: int, found: Listener | None, record: GatewayRecord | None) -> str | None:
    """Return how to find out more about the program, or to end it."""
    if record is not None:
        return f"`mcp-gateway status` shows it, `mcp-gateway stop --pid {record.pid}` ends it"
    if found is None and sys.platform != "win32":
        return f"`sudo lsof -nP -iTCP:{port} -sTCP:LISTEN` shows which program has it"
    return None
