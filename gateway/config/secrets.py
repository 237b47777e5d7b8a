"""The values of the configuration that must never be shown: headers, tokens, credentials in URLs, keys in env."""

import re
from collections.abc import Iterable, Iterator, Sequence
from urllib.parse import parse_qsl, unquote, urlsplit

from gateway.config.schema import Settings
from gateway.config.upstream_settings import UpstreamSettings

SECRET_NAME = re.compile(
    r"key|token|secret|passw|auth|credential|cookie|signature|(?<![a-z])(?:pat|pass|pwd|psk|jwt|bearer|dsn)(?![a-z])",
    re.IGNORECASE,
)
"""Matches names of variables and arguments whose values are secrets."""

_RUN = re.compile(r"[A-Za-z0-9]{16,}+")
_TURN = re.compile(r"[a-z](?=[A-Z0-9])|[A-Z](?=[0-9])|[0-9](?=[A-Za-z])")
_TURNS_OF_RUN = 4
_UUID = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}", re.IGNORECASE)

HIDDEN = "***"
"""Replaces a secret."""


def all_secrets(settings: Settings) -> Iterator[str]:
    """Yield every secret in the settings: the gateway's own tokens and keys, those of all upstreams, those read.

    Which values were read from files, the keyring or commands is known from loading (`SecretSection`).
    """
    http = (settings.http.token, settings.model_proxy.token)
    own = (*http, settings.content.key, settings.store.key, settings.logins.key)
    named = (token.token for token in settings.access.tokens.values())
    clients = (issuer.client_secret for issuer in settings.access.issuers.values())
    server = settings.access.authorization_server
    provider = server.oidc.client_secret if server is not None and server.oidc is not None else None
    embeddings = settings.tool_search.embeddings
    asked = (settings.describe.model.api_key, embeddings and embeddings.api_key)
    for token in (*own, *named, *clients, provider, *asked):
        if token:
            yield token
    if server is not None and server.state is not None:
        yield from _of_url(server.state)
    yield from _with_lines(settings.read_secrets)
    for upstream in settings.upstreams.values():
        yield from upstream_secrets(upstream)


def upstream_secrets(settings: UpstreamSettings) -> Iterator[str]:
    """Yield the secrets of one upstream, in all forms in which they may be repeated."""
    yield from _with_lines(settings.read_secrets)
    for value in settings.headers.values():
        yield value
        yield value.rpartition(" ")[2]
    for name, value in settings.env.items():
        if SECRET_NAME.search(name):
            yield value
    if settings.auth is not None:
        exchange = settings.auth.exchange
        secrets = settings.auth.client_secret, settings.auth.private_key, exchange and exchange.client_secret
        yield from filter(None, secrets)
    yield from settings.operations.query.values()
    for url in filter(None, (settings.url, settings.base_url, settings.openapi)):
        yield from _of_url(url)
        parts = urlsplit(url)
        yield from secret_segments(parts.path)
        yield from (parts.query, *(value for _, value in parse_qsl(parts.query)))


def _of_url(url: str) -> Iterator[str]:
    """Yield user and password of a URL, together and apart."""
    credentials = urlsplit(url).netloc.rpartition("@")[0]
    yield credentials
    yield from (unquote(part) for part in credentials.split(":", 1))


def secret_segments(path: str) -> Iterator[str]:
    """Yield the segments of a URL's path that look as if somebody had drawn them, as some services' secret URLs have.

    These are UUIDs, and those that turn often between small letters, capitals and digits: `contosoproduction1` and
    `gpt4turbopreview2024` do not.
    """
    for segment in path.split("/"):
        if _UUID.fullmatch(segment) or _looks_drawn(segment):
            yield segment


def _looks_drawn(segment: str) -> bool:
    if any(len(_TURN.findall(run)) >= _TURNS_OF_RUN for run in _RUN.findall(segment)):
        return True
    bare = segment.replace("-", "").replace("_", "")
    turns = len(_TURN.findall(bare))
    return len(bare) >= 20 and turns >= 6 and turns * 4 >= len(bare)


def _with_lines(secrets: Iterable[str]) -> Iterator[str]:
    """Yield secrets, and each line of those with many: a program may repeat a part of a key."""
    for secret in secrets:
        yield secret
        if "\n" in secret:
            yield from (line for line in map(str.strip, secret.split("\n")) if not line.startswith("-----"))


def longest_first(values: Iterable[str], shortest: int) -> tuple[str, ...]:
    """Sort values of at least `shortest` characters for hiding (shorter ones would be found within other words)."""
    return tuple(sorted({value for value in values if len(value) >= shortest}, key=len, reverse=True))


def hide(text: str, values: Sequence[str]) -> str:
    """Replace every one of `values` in `text`."""
    for value in values:
        text = text.replace(value, HIDDEN)
    return text
