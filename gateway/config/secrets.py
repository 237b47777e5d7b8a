"""The values of the configuration that must never be shown: headers, tokens, credentials in URLs, keys in env."""

import re
from collections.abc import Iterable, Iterator, Sequence
from urllib.parse import parse_qsl, unquote, urlsplit

from gateway.config.schema import Settings, UpstreamSettings

SECRET_NAME = re.compile(r"key|token|secret|passw|auth|credential|cookie|signature", re.IGNORECASE)
"""Matches names of variables and arguments whose values are secrets."""

HIDDEN = "***"
"""Replaces a secret."""


def all_secrets(settings: Settings) -> Iterator[str]:
    """Yield every secret in the settings: the gateway's own tokens and keys, those of all upstreams, those read.

    Which values were read from files, the keyring or commands is known from loading (`SecretSection`).
    """
    own = (settings.http.token, settings.model_proxy.token, settings.content.key, settings.store.key)
    named = (token.token for token in settings.access.tokens.values())
    for token in (*own, *named, settings.describe.model.api_key):
        if token:
            yield token
    yield from settings.read_secrets
    for upstream in settings.upstreams.values():
        yield from upstream_secrets(upstream)


def upstream_secrets(settings: UpstreamSettings) -> Iterator[str]:
    """Yield the secrets of one upstream, in all forms in which they may be repeated."""
    yield from settings.read_secrets
    for value in settings.headers.values():
        yield value
        yield value.rpartition(" ")[2]
    for name, value in settings.env.items():
        if SECRET_NAME.search(name):
            yield value
    if settings.url is not None:
        parts = urlsplit(settings.url)
        yield from (parts.query, parts.netloc.rpartition("@")[0])
        yield from (unquote(part) for part in parts.netloc.rpartition("@")[0].split(":", 1))
        yield from (value for _, value in parse_qsl(parts.query))


def longest_first(values: Iterable[str], shortest: int) -> tuple[str, ...]:
    """Sort values of at least `shortest` characters for hiding (shorter ones would be found within other words)."""
    return tuple(sorted({value for value in values if len(value) >= shortest}, key=len, reverse=True))


def hide(text: str, values: Sequence[str]) -> str:
    """Replace every one of `values` in `text`."""
    for value in values:
        text = text.replace(value, HIDDEN)
    return text
