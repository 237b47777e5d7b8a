"""Where a gateway over HTTP is reached, and what is said of it when it is started."""

import logging
from typing import TYPE_CHECKING

from gateway.cli.terminal import remark
from gateway.config.schema import Settings
from gateway.serving.console.on_request import CONSOLE_PATH
from gateway.system.loopback import is_loopback
from gateway.telemetry.logs import announce

if TYPE_CHECKING:
    from gateway.serving.console.console import Console

logger = logging.getLogger(__name__)


def tell_where(settings: Settings, address: str) -> None:
    """Say where hosts reach the gateway."""
    where = f"listening on {address}/mcp (Streamable HTTP) and {address}/sse (HTTP+SSE)"
    for line in filter(None, (where, _reached_as(settings))):
        if settings.logging.format == "json":
            announce(logger, line)
        else:
            remark(line)


def console_address(settings: Settings, console: "Console", address: str) -> str:
    """Return the address of the console. On this machine it lets a browser in; elsewhere a token has to."""
    if settings.logging.format == "json" or not is_loopback(settings.http.bind):
        return f"{address}{CONSOLE_PATH}"
    return f"{address}{CONSOLE_PATH}/enter?key={console.sessions.new_key()}"


def tell_of_console(url: str) -> None:
    """Say where the console is."""
    remark(f"console at {url}")


def owner_over_http(settings: Settings) -> str:
    """Return the owner of what hosts without a principal of their own store."""
    return "token" if settings.http.token else "local"


def origin_of(settings: Settings, port: int) -> str:
    """Return the origin that is listened on."""
    host = f"[{settings.http.bind}]" if ":" in settings.http.bind else settings.http.bind
    return f"{'http' if settings.http.tls_certificate is None else 'https'}://{host}:{port}"


def _reached_as(settings: Settings) -> str | None:
    """Say under which host names other machines may call the gateway; None if they cannot reach it."""
    from gateway.serving.mcp.security import allowed_by

    allowed = allowed_by(settings.http, settings.gateway.public_url)
    if not allowed.any_address:
        return None
    names = ", ".join(allowed.names)
    return (
        f"reached by any of its IP addresses, and as {names}; other names: [http] allowed_hosts, [gateway] public_url"
    )


async def login_base(public_url: str | None, base: str, _upstream: str) -> str:
    """Return the address to which browsers come back from a login: the public one, or that of the host's request."""
    from gateway.content.links.base_url import current_base

    return (public_url or current_base() or base).rstrip("/")
