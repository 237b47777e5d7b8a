"""Servers that require a login (OAuth): recognising them by their HTTP 401, and the command that logs in. Pure.

The gateway cannot log in by itself. `mcp-remote` (npm) can: it is a stdio server that opens the browser, keeps the
tokens and passes everything on to the url.
"""

import re
import shlex
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Literal, cast
from urllib.parse import urlsplit

from gateway.config.secrets import SECRET_NAME

Wants = Literal["login", "token"]
"""The requirement of a server that answered 401: a login (OAuth), or a bearer token, which a login may provide too."""

MCP_REMOTE = "mcp-remote"
LOGIN_SECONDS = 180
"""Seconds for a start during which somebody logs in; if it is given up too early, the browser opens again."""

_LOGIN = re.compile(r"\bresource_metadata\s*=|\bauthorization_uri\s*=|oauth", re.IGNORECASE)
"""In WWW-Authenticate: RFC 9728, section 5.1, which MCP requires of servers, and what older servers send instead."""
_BEARER = re.compile(r"(?:^|,)\s*(?:Bearer|DPoP)\b", re.IGNORECASE)
_PLAIN_PART = re.compile(r"[a-z][a-z._-]{0,23}|v?\d{1,4}")
"""A part of a path that contains no secret: a word or a version."""


def wanted_login(challenges: Iterable[str]) -> Wants | None:
    """Return what the WWW-Authenticate headers of a 401 require; None without headers or with other schemes only."""
    said = [challenge for challenge in challenges if _BEARER.search(challenge)]
    if not said:
        return None
    return "login" if any(_LOGIN.search(challenge) for challenge in said) else "token"


def sends_credentials(headers: Mapping[str, Any]) -> bool:
    """Whether headers contain anything that identifies the caller."""
    return any(SECRET_NAME.search(name) for name in headers)


def through_mcp_remote(url: str) -> dict[str, Any]:
    """Return the upstream that reaches the url through mcp-remote, as a table of mcp-gateway.toml."""
    return with_time_to_log_in({"command": "npx", "args": ["-y", MCP_REMOTE, url]})


def with_time_to_log_in(upstream: Mapping[str, Any]) -> dict[str, Any]:
    """Give an upstream that uses mcp-remote time for a login at its start, unless it sets a time itself."""
    if url_behind(upstream) is None:
        return dict(upstream)
    return {**upstream, "timeout": {"start": LOGIN_SECONDS, **(upstream.get("timeout") or {})}}


def url_behind(upstream: Mapping[str, Any]) -> str | None:
    """Return the url that an upstream reaches through mcp-remote; None for any other upstream."""
    args: Any = upstream.get("args")
    words = (
        [word for word in cast("Sequence[Any]", args) if isinstance(word, str)]
        if isinstance(args, list | tuple)
        else []
    )
    for place, word in enumerate(words):
        if word == MCP_REMOTE or word.startswith(f"{MCP_REMOTE}@"):
            return next((one for one in words[place + 1 :] if one.startswith(("http://", "https://"))), None)
    return None


def login_command(name: str, url: str, *, replace: bool) -> str:
    """Return the command that puts the url behind the gateway with a login; `replace`: in place of the upstream `name`.

    If the url may contain a secret, it is shown as `URL`.
    """
    return f"mcp-gateway add {name}{' --replace' * replace} -- npx -y {MCP_REMOTE} {shown_url(url)}"


def shown_url(url: str) -> str:
    """Return the url, quoted for a shell, if none of its parts may be a secret; otherwise `URL`."""
    try:
        parts = urlsplit(url)
        plain = not (parts.query or parts.fragment or "@" in parts.netloc or "${" in url)
    except ValueError:
        return "URL"
    words = [part for part in parts.path.split("/") if part]
    return shlex.quote(url) if plain and all(_PLAIN_PART.fullmatch(word) for word in words) else "URL"
