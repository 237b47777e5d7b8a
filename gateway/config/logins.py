"""Servers that require a login (OAuth): recognising them by their HTTP 401, and the command that logs in. Pure.

Some configurations have `mcp-remote` (npm) for that instead: it is a stdio server that opens the browser, keeps the
tokens and passes everything on to the url.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Literal, cast

from gateway.config.secrets import SECRET_NAME
from gateway.config.upstream_settings import UpstreamSettings

Wants = Literal["login", "token"]
"""The requirement of a server that answered 401: a login (OAuth), or a bearer token, which a login may provide too."""

MCP_REMOTE = "mcp-remote"
LOGIN_SECONDS = 180
"""Seconds for a start during which somebody logs in; if it is given up too early, the browser opens again."""

_LOGIN = re.compile(r"\bresource_metadata\s*=|\bauthorization_uri\s*=|oauth", re.IGNORECASE)
"""In WWW-Authenticate: RFC 9728, section 5.1, which MCP requires of servers, and what older servers send instead."""
_BEARER = re.compile(r"(?:^|,)\s*(?:Bearer|DPoP)\b", re.IGNORECASE)


def wanted_login(challenges: Iterable[str]) -> Wants | None:
    """Return what the WWW-Authenticate headers of a 401 require; None without headers or with other schemes only."""
    said = [challenge for challenge in challenges if _BEARER.search(challenge)]
    if not said:
        return None
    return "login" if any(_LOGIN.search(challenge) for challenge in said) else "token"


def sends_credentials(headers: Mapping[str, Any]) -> bool:
    """Whether headers contain anything that identifies the caller."""
    return any(SECRET_NAME.search(name) for name in headers)


def may_take_logins(settings: UpstreamSettings) -> bool:
    """Whether people may have to log in to an upstream, as far as the configuration says."""
    if settings.auth is not None:
        return settings.auth.grant == "authorization_code"
    return settings.endpoint is not None and not sends_credentials(settings.headers)


def has_tokens_of_principals(settings: UpstreamSettings) -> bool:
    """Whether each principal has tokens of its own for an upstream, as the configuration says."""
    return settings.auth is not None and settings.auth.grant in ("authorization_code", "token_exchange")


def is_told_who_calls(settings: UpstreamSettings) -> bool:
    """Whether an upstream is sent headers that say who calls, so that no connection serves two principals."""
    return bool(settings.headers_from_claims)


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


def login_command(name: str) -> str:
    """Return the command that logs in to an upstream."""
    return f"mcp-gateway login {name}"
