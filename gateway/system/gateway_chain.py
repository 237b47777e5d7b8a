"""The gateways behind which a process runs: no gateway may be its own upstream, as its lists would grow for ever.

The chain is in the environment, which processes that a gateway starts get from it, and in the header `Via` of its
requests (RFC 9110, 7.6.3). A gateway is known by its configuration file: two with the same one have the same upstreams.
A host that a tool starts (`claude` in a shell) gets the environment, too, and may well have the same gateway: that one
is started by the host.
"""

import getpass
import hashlib
import os
import re
import socket
from collections.abc import Collection, Mapping, MutableMapping
from pathlib import Path
from typing import NamedTuple

from gateway.errors import GatewayError

VARIABLE = "MCP_GATEWAY_CHAIN"
REMEDY = "take this gateway out of its own configuration: `mcp-gateway remove NAME`"

_MEMBER = re.compile(r"([0-9a-f]{16}):(\d{1,10})(?:,|$)")
_MOST_BETWEEN = 1
"""Processes between a gateway and the upstream that it starts: a launcher such as uvx, or a shell."""
_VIA = re.compile(r"\bmcp-gateway-([0-9a-f]{16})\b")


class Member(NamedTuple):
    """A gateway in the chain: its id, and the id of its process."""

    gateway: str
    pid: int


def join_chain(config: Path | None, environ: MutableMapping[str, str]) -> None:
    """Add the gateway with this configuration, if it has one, to the chain in `environ`. This process is the gateway.

    Raises:
        GatewayError: it has started this process itself.
    """
    if config is not None:
        check_chain(config, environ)
        chain = [*chain_in(environ), Member(gateway_id(config), os.getpid())]
        environ[VARIABLE] = ",".join(f"{one.gateway}:{one.pid}" for one in chain)


def check_chain(config: Path, environ: Mapping[str, str]) -> None:
    """Raise GatewayError if the gateway with this configuration has started this process, or other gateways between."""
    own, chain = gateway_id(config), chain_in(environ)
    if any(one.gateway == own for one in chain) and _is_started_by(own, chain):
        raise GatewayError(f"the gateway with {config} would be its own upstream", remedy=REMEDY)


def _is_started_by(own: str, chain: Collection[Member]) -> bool:
    import psutil

    between = 0
    itself, gateways = {one.pid for one in chain if one.gateway == own}, {one.pid for one in chain}
    for process in psutil.Process().parents():
        if process.pid in itself:
            return True
        between = 0 if process.pid in gateways else between + 1
        if between > _MOST_BETWEEN:
            return False
    return False


def chain_in(environ: Mapping[str, str]) -> tuple[Member, ...]:
    """Return the gateways of this process, the outermost first."""
    found = _MEMBER.findall(environ.get(VARIABLE, ""))
    return tuple(Member(gateway, int(pid)) for gateway, pid in found)


def via(environ: Mapping[str, str]) -> dict[str, str]:
    """Return the header that names the chain; empty if there is none."""
    chain = chain_in(environ)
    return {"via": ", ".join(f"1.1 mcp-gateway-{one.gateway}" for one in chain)} if chain else {}


def comes_from(header: str, gateway: str) -> bool:
    """Whether a request with this header `Via` has come through the gateway with this id."""
    return gateway in _VIA.findall(header)


def gateway_id(config: Path) -> str:
    """Return the id of the gateway with a configuration: 16 hexadecimal digits, others on another machine."""
    try:
        user = getpass.getuser()
    except (OSError, KeyError, ImportError):  # no name for the user id of a container
        user = str(os.getuid()) if hasattr(os, "getuid") else ""
    named = f"{socket.gethostname()}\n{user}\n{config.resolve()}"
    return hashlib.sha256(named.encode("utf-8", "surrogateescape")).hexdigest()[:16]
