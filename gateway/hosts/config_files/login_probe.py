"""Asking the servers at urls whether they require a login (OAuth). This is never needed for anything else to work.

Each gets one request, without a session and without following redirects: a `ping` that is answered with 401 only by a
server that requires authentication. A server that cannot be reached in time yields no answer.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any
from urllib.parse import urlsplit

from gateway._version import __version__
from gateway.config.expansion import expand
from gateway.config.logins import sends_credentials, wanted_login
from gateway.system.loopback import is_this_machine

SECONDS = 5.0
"""For all servers together; all are asked at the same time."""

_PING = {"jsonrpc": "2.0", "id": "login", "method": "ping"}


def at_a_url_without_credentials(upstream: Mapping[str, Any]) -> bool:
    """Whether the upstream is at a url and sends nothing that identifies the caller."""
    return bool(upstream.get("url")) and not sends_credentials(upstream.get("headers") or {})


def may_want_a_login(upstream: Mapping[str, Any]) -> bool:
    """Whether the upstream is on another machine and gets no credentials."""
    return (
        at_a_url_without_credentials(upstream) and is_remote(upstream["url"]) and upstream.get("enabled") is not False
    )


def is_remote(url: str) -> bool:
    """Whether the url leads to another machine, as far as it shows."""
    try:
        return not is_this_machine(urlsplit(url).hostname or "")
    except ValueError:
        return False


def ask_for_logins(upstreams: Iterable[Mapping[str, Any]], environ: Mapping[str, str]) -> dict[str, bool]:
    """Return, by url, whether upstreams require a login: those at a url without credentials that answer in time.

    Upstreams are tables as in mcp-gateway.toml, which may contain variables.
    """
    asked: dict[str, Mapping[str, Any]] = {}
    for upstream in upstreams:
        if upstream.get("enabled") is not False and at_a_url_without_credentials(upstream):
            expanded, problems = expand({"it": dict(upstream)}, environ)
            if not problems:
                asked[str(upstream["url"])] = expanded["it"]
    if not asked:
        return {}
    import anyio  # here, with the HTTP client, because most commands need neither

    return anyio.run(_ask, asked)


async def _ask(asked: Mapping[str, Mapping[str, Any]]) -> dict[str, bool]:
    import anyio

    found: dict[str, bool] = {}

    async def one(url: str, upstream: Mapping[str, Any]) -> None:
        challenges = await _challenges(upstream)
        if challenges is not None:
            found[url] = wanted_login(challenges) == "login"

    with anyio.move_on_after(SECONDS):
        async with anyio.create_task_group() as tasks:
            for url, upstream in asked.items():
                tasks.start_soon(one, url, upstream)
    return found


async def _challenges(upstream: Mapping[str, Any]) -> Sequence[str] | None:
    """Return the WWW-Authenticate headers of a 401; empty for any other answer, None for no answer."""
    import httpx2

    from gateway.system.tls import HOOKS, ssl_context

    url = str(upstream["url"])
    given: Mapping[str, str] = upstream.get("headers") or {}
    accept = {"accept": "application/json, text/event-stream", "user-agent": f"mcp-gateway/{__version__}"}
    try:
        async with httpx2.AsyncClient(
            headers={**accept, **given},
            verify=ssl_context(),
            timeout=SECONDS,
            trust_env=is_remote(url),
            event_hooks=HOOKS,
        ) as client:
            get = upstream.get("transport") == "sse"
            request = client.build_request("GET", url) if get else client.build_request("POST", url, json=_PING)
            response = await client.send(request, stream=True)
            await response.aclose()
    except (httpx2.HTTPError, httpx2.InvalidURL, OSError, ValueError):
        return None
    return response.headers.get_list("www-authenticate") if response.status_code == 401 else ()
