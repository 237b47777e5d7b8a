"""The ports on which this user's gateways serve hosts over HTTP."""

from gateway.serving.control.records import running
from gateway.system.listening_ports import listening_ports


def gateway_ports() -> frozenset[int]:
    """Return the TCP ports on which the running gateways listen."""
    return frozenset(port for record in running() for port in listening_ports(record.pid))
