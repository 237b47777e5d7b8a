"""How large a result is, without serialising it."""

from collections.abc import Mapping
from typing import Any, cast


def characters(value: Any) -> int:
    """The characters of all texts and keys in a JSON value, and one for each other value."""
    total, waiting = 0, [value]
    while waiting:
        item = waiting.pop()
        if isinstance(item, str):
            total += len(item)
        elif isinstance(item, Mapping):
            members = cast("Mapping[str, Any]", item)
            total += sum(map(len, members))
            waiting.extend(members.values())
        elif isinstance(item, list):
            waiting.extend(cast("list[Any]", item))
        else:
            total += 1
    return total
