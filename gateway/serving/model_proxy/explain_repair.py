"""What was repaired, before and after, for people: base64 shortened."""

import json
import re
from collections.abc import Iterator

from gateway.content.shaping.repair_request import RepairedRequest

_LONG = re.compile(r"[A-Za-z0-9+/_-]{80,}={0,2}")
_KEPT = 24


def explanation(repaired: RepairedRequest) -> str:
    """Each place of the request that was repaired, as it came and as it goes on, and every note."""
    return "\n".join(_lines(repaired))


def shorten_base64(text: str) -> str:
    """The text with runs of base64 cut to their beginning and their length."""
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
