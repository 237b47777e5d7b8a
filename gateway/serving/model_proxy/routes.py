"""The requests that the proxy examines, by path, and the model APIs that they are for."""

import re
from collections.abc import Mapping
from typing import NamedTuple
from urllib.parse import unquote, unquote_to_bytes, urlsplit

REPAIRED = {
    "openai_chat": "/v1/chat/completions",
    "openai_responses": "/v1/responses",
    "anthropic_messages": "/v1/messages",
    "gemini": "/v1beta/models/<model>:generateContent and :streamGenerateContent",
    "ollama": "/api/chat",
}
"""The dialects, and the paths of their requests with tool results (POST)."""

WRITINGS: Mapping[str, tuple[str, ...]] = {
    "openai_chat": ("openai_chat", "mistral"),
    "openai_responses": ("openai_responses",),
    "anthropic_messages": ("anthropic_messages",),
    "gemini": ("gemini",),
    "ollama": ("ollama",),
}
"""The wire forms of a dialect's requests: Mistral's messages are OpenAI's with other parts."""

_PATHS = (
    ("openai_chat", re.compile(r"/chat/completions/?\Z")),
    ("openai_responses", re.compile(r"/responses/?\Z")),
    ("anthropic_messages", re.compile(r"/messages/?\Z")),
    ("gemini", re.compile(r"/(?P<model>[^/]+):(?:generateContent|streamGenerateContent)\Z")),
    ("ollama", re.compile(r"/api/chat/?\Z")),
)

_SPOKEN: Mapping[str, tuple[str, ...]] = {
    "api.openai.com": ("openai_chat", "openai_responses"),
    "api.anthropic.com": ("anthropic_messages", "openai_chat"),
    "generativelanguage.googleapis.com": ("gemini", "openai_chat"),
    "api.mistral.ai": ("openai_chat",),
    "api.groq.com": ("openai_chat", "openai_responses"),
}
"""The dialects of well-known model APIs. Others are unknown, and answer themselves what they do not support."""

_TARGETS = {"api.mistral.ai": "mistral"}
"""The target of APIs that speak a dialect with parts of their own."""


class ApiRoute(NamedTuple):
    """A request to examine: its dialect, and its model if the path names it."""

    dialect: str
    model: str | None


def route_of(path: str) -> ApiRoute | None:
    """Return the route of a POST to this path, or None if it passes unchanged. Never raises."""
    for dialect, pattern in _PATHS:
        if match := pattern.search(path):
            named = match.groupdict().get("model")
            return ApiRoute(dialect, unquote(named) if named else None)
    return None


def is_spoken(dialect: str, to: str) -> bool:
    """Whether the model API at this base URL speaks the dialect, as far as is known."""
    host = urlsplit(to).hostname or ""
    return host not in _SPOKEN or dialect in _SPOKEN[host]


def spoken_words(to: str) -> str:
    """The paths of the dialects that the model API at this base URL speaks, in words."""
    host = urlsplit(to).hostname or ""
    return ", ".join(REPAIRED[dialect] for dialect in _SPOKEN.get(host, tuple(REPAIRED)))


def target_of(dialect: str, to: str) -> str:
    """The target to lower a dialect's requests to for this base URL, before a profile is chosen."""
    return _TARGETS.get(urlsplit(to).hostname or "", dialect) if dialect == "openai_chat" else dialect


_OTHER_SPELLINGS = (
    (re.compile(rb"%u00([0-9a-f]{2})", re.IGNORECASE), rb"%\1"),  # as some Microsoft servers read it
    (re.compile(rb"\xc0\xae|\xe0\x80\xae"), b"."),  # overlong UTF-8
    (re.compile(rb"\xc0\xaf|\xe0\x80\xaf|\xc1\x9c|\\"), b"/"),
)
_MOST_DECODINGS = 8


def climbs(path: bytes) -> bool:
    """Whether a server might resolve the path, in any encoding however often applied, to somewhere else.

    True for segments of dots only (`..`, also followed by blanks or `;parameters`), for NUL, and for a path that can be
    decoded over and over.
    """
    for _ in range(_MOST_DECODINGS):
        for pattern, plain in _OTHER_SPELLINGS:
            path = pattern.sub(plain, path)
        if b"\0" in path or any(_is_dots(segment) for segment in path.split(b"/")):
            return True
        decoded = unquote_to_bytes(path)
        if decoded == path:
            return False
        path = decoded
    return True


def _is_dots(segment: bytes) -> bool:
    name = segment.partition(b";")[0]
    return b"." in name and not name.strip(b". \t\r\n")


def path_behind(to: str, path: bytes) -> bytes:
    """Return the path to forward a request to: below the base URL's path, without repeating what they share.

    For `https://api.example/api/v1`, clients may use the proxy's URL with `/api/v1`, with `/v1`, or without a path.
    """
    base = [segment for segment in urlsplit(to).path.encode().split(b"/") if segment]
    given = path.lstrip(b"/").split(b"/")
    common = next((n for n in range(len(base), 0, -1) if given[:n] == base[-n:]), 0)
    return b"/" + b"/".join([*base, *given[common:]])
