"""Explain repairs to people: before and after, with base64 shortened."""

import json
import re
from collections.abc import Iterator

from gateway.content.shaping.repair_request import RepairedRequest

_LONG = re.compile(r"[A-Za-z0-9+/_-]{80,}={0,2}")
_KEPT = 24


def explanation(repaired: RepairedRequest) -> str:
    """Show each repaired place of the request as received and as sent on, and all notes."""
    return "\n".join(_lines(repaired))


def shorten_base64(text: str) -> str:
    """Return the text with runs of base64 replaced by their beginning and their length."""
    return _LONG.sub(lambda run: f"{run[0][:_KEPT]}… ({len(run[0]):,} characters)", text)


def _lines(repaired: RepairedRequest) -> Iterator[str]:
    for change in repaired.changes:
        before = change.before if isinstance(change.before, str) else json.dumps(change.before, ensure_ascii=False)
        yield f"--- {change.where}"
        yield shorten_base64(before)
        yield "+++"
        yield shorten_base64(change.after)
    for note in repaired.notes:
        yield f"note: {note.kind}: {note.text}"
