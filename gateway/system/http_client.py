"""The HTTP client for APIs whose address the configuration names."""

from collections.abc import Mapping

import httpx2

from gateway._version import __version__
from gateway.system.loopback import is_this_machine
from gateway.system.response_body import ACCEPTED_ENCODINGS
from gateway.system.tls import HOOKS, ssl_context


def api_client(url: str, timeout: float, headers: Mapping[str, str] | None = None) -> httpx2.AsyncClient:
    """Return a client for an API at `url`, which follows no redirects: the API is the one that was named.

    A proxy of the environment is used for other machines than this one. Bodies are to be read with `body_of`.

    Raises:
        httpx2.InvalidURL: `url` is not an address.
    """
    return httpx2.AsyncClient(
        headers={"accept-encoding": ACCEPTED_ENCODINGS, "user-agent": f"mcp-gateway/{__version__}", **(headers or {})},
        verify=ssl_context(),
        timeout=timeout,
        trust_env=not is_this_machine(httpx2.URL(url).host),
        follow_redirects=False,
        event_hooks=HOOKS,
    )
