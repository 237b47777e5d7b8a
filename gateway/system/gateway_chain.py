"""The gateways behind which a process runs: no gateway may be its own upstream, as its lists would grow for ever.

The chain is in the environment, which processes that a gateway starts get from it, and in the header `Via` of its
requests (RFC 9110, 7.6.3). A gateway is known by its configuration file: two with the same one have the same upstreams.
"""

import getpass
import hashlib
import os
import re
import socket
from collections.abc import Mapping, MutableMapping
from pathlib import Path

from gateway.errors import GatewayError

VARIABLE = "MCP_GATEWAY_CHAIN"
REMEDY = "take this gateway out of its own configuration: `mcp-gateway remove NAME`"

_ID = re.compile(r"[0-9a-f]{16}")
_VIA = re.compile(r"\bmcp-gateway-([0-9a-f]{16})\b")


def join_chain(config: Path | None, environ: MutableMapping[str, str]) -> None:
    """Add the gateway with this configuration, if it has one, to the chain in `environ`.

    Raises:
        GatewayError: it is in the chain already.
    """
    if config is not None:
        check_chain(config, environ)
        environ[VARIABLE] = ",".join([*chain_in(environ), gateway_id(config)])


def check_chain(config: Path, environ: Mapping[str, str]) -> None:
    """Raise GatewayError if the gateway with this configuration has started this process, directly or not."""
    if gateway_id(config) in chain_in(environ):
        raise GatewayError(f"the gateway with {config} would be its own upstream", remedy=REMEDY)


def chain_in(environ: Mapping[str, str]) -> tuple[str, ...]:
    """Return the ids of the gateways of this process, the outermost first."""
    return tuple(_ID.findall(environ.get(VARIABLE, "")))


def via(environ: Mapping[str, str]) -> dict[str, str]:
    """Return the header that names the chain; empty if there is none."""
    chain = chain_in(environ)
    return {"via": ", ".join(f"1.1 mcp-gateway-{one}" for one in chain)} if chain else {}


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
