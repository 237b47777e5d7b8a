"""Servers that want a login (OAuth): how their HTTP 401 says so, and the command that gives the gateway one. Pure.

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
"""What a server that answered 401 asks for: a login (OAuth); or a bearer token, which a login may give, too."""

MCP_REMOTE = "mcp-remote"
LOGIN_SECONDS = 180
"""What a start may take in which somebody logs in; a start that is given up too early opens the browser once more."""

_LOGIN = re.compile(r"\bresource_metadata\s*=|\bauthorization_uri\s*=|oauth", re.IGNORECASE)
"""In WWW-Authenticate: RFC 9728, section 5.1, which MCP asks of servers; and what older ones say in its place."""
_BEARER = re.compile(r"(?:^|,)\s*(?:Bearer|DPoP)\b", re.IGNORECASE)
_PLAIN_PART = re.compile(r"[a-z][a-z._-]{0,23}|v?\d{1,4}")
"""A part of a path that holds no secret: a word or a version."""


def wanted_login(challenges: Iterable[str]) -> Wants | None:
    """What the WWW-Authenticate headers of a 401 ask for; none where there are none, or other schemes only."""
    said = [challenge for challenge in challenges if _BEARER.search(challenge)]
    if not said:
        return None
    return "login" if any(_LOGIN.search(challenge) for challenge in said) else "token"


def sends_credentials(headers: Mapping[str, Any]) -> bool:
    """Whether headers hold something that says who is calling."""
    return any(SECRET_NAME.search(name) for name in headers)


def through_mcp_remote(url: str) -> dict[str, Any]:
    """The upstream that speaks to the url through mcp-remote, as a table of mcp-gateway.toml."""
    return with_time_to_log_in({"command": "npx", "args": ["-y", MCP_REMOTE, url]})


def with_time_to_log_in(upstream: Mapping[str, Any]) -> dict[str, Any]:
    """The upstream; one that uses mcp-remote with time for a login at its start, unless it says how long that takes."""
    if url_behind(upstream) is None:
        return dict(upstream)
    return {**upstream, "timeout": {"start": LOGIN_SECONDS, **(upstream.get("timeout") or {})}}


def url_behind(upstream: Mapping[str, Any]) -> str | None:
    """The url that an upstream reaches through mcp-remote; none for any other upstream."""
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
    """The command that puts the url behind the gateway with a login; `replace`: in place of the upstream `name`.

    Of the url only what cannot hold a secret is shown: else `URL` stands for it.
    """
    return f"mcp-gateway add {name}{' --replace' * replace} -- npx -y {MCP_REMOTE} {shown_url(url)}"


def shown_url(url: str) -> str:
    """The url, fit for a shell, if none of its parts may be a secret; else `URL`."""
    try:
        parts = urlsplit(url)
        plain = not (parts.query or parts.fragment or "@" in parts.netloc or "${" in url)
    except ValueError:
        return "URL"
    words = [part for part in parts.path.split("/") if part]
    return shlex.quote(url) if plain and all(_PLAIN_PART.fullmatch(word) for word in words) else "URL"
