"""Shortening arguments and results for the log, if enabled: without encoded bytes or secrets."""

import json
import re
from collections.abc import Mapping
from itertools import islice
from typing import Any, cast

from gateway.config.secrets import HIDDEN, SECRET_NAME
from gateway.telemetry.sanitize import without_base64

LONGEST = 1_000
"""Maximum characters of a whole value."""

_LONGEST_TEXT = 200
_LOOKED_AT = 4_000
_MOST_ITEMS = 20
_DEEPEST = 8
_ENCODED = frozenset({"data", "blob"})
"""The fields that hold base64 in MCP's content, whatever their length."""

_PAIR = re.compile(
    rf"""((?:{SECRET_NAME.pattern})[\w.-]{{0,40}}["']?\s{{0,4}}[:=]\s{{0,4}})"""
    r"""(?:"[^"]*"|'[^']*'|(?:(?:Bearer|Basic)\s+)?[^\s,;&}]+)""",
    re.IGNORECASE,
)
"""Matches what looks like a secret with its name in text: `password: x`, `{"api_key": "x"}`, `?token=x`.

What stands before `key` in `api_key` need not match: it stays as it is.
"""


def shorten_json(value: Any) -> str:
    """Format a JSON value in at most `LONGEST` characters."""
    text = json.dumps(_short(value, 0), ensure_ascii=False, default=str)
    return text if len(text) <= LONGEST else text[: LONGEST - 1] + "…"


def _short(value: Any, depth: int) -> Any:
    if isinstance(value, str):
        return _text(value)
    if depth >= _DEEPEST and isinstance(value, Mapping | list | tuple):
        return "…"
    if isinstance(value, Mapping):
        members = cast("Mapping[str, Any]", value)
        first = islice(members.items(), _MOST_ITEMS)
        more = {"…": len(members) - _MOST_ITEMS} if len(members) > _MOST_ITEMS else {}
        return {_text(str(key)): _member(str(key), item, depth) for key, item in first} | more
    if isinstance(value, list | tuple):
        items = cast("list[Any]", value)
        more = [f"… {len(items) - _MOST_ITEMS} more"] if len(items) > _MOST_ITEMS else []
        return [_short(item, depth + 1) for item in items[:_MOST_ITEMS]] + more
    return value


def _member(key: str, item: Any, depth: int) -> Any:
    if SECRET_NAME.search(key):
        return HIDDEN
    if key in _ENCODED and isinstance(item, str):
        return f"<{len(item):,} characters>"
    return _short(item, depth + 1)


def _text(text: str) -> str:
    # Encoded content is removed before the text is cut: a part of it would not be recognised.
    cleaned = without_base64(_PAIR.sub(rf"\1{HIDDEN}", text[:_LOOKED_AT]))
    if len(cleaned) <= _LONGEST_TEXT and len(text) <= _LOOKED_AT:
        return cleaned
    return f"{cleaned[:_LONGEST_TEXT]}… ({len(text):,} characters)"
