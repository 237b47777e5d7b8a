"""The sizes of results and of their parts, measured in a thread if they have many values."""

from collections.abc import Mapping
from typing import Any, NamedTuple

from anyio import to_thread

from gateway.core.model.json_size import MANY_VALUES, Size, size_of

_STRUCTURED = "structuredContent"


class Sizes(NamedTuple):
    """The size of a result, and that of its structured content, which shaping often leaves as it is."""

    whole: Size
    value: Any = None
    structured: Size | None = None


async def sizes_of_result(result: Mapping[str, Any], before: Sizes | None = None) -> Sizes:
    """Return the sizes of a result. What it has in common with the result measured `before` is not measured again."""
    if _STRUCTURED not in result:
        return Sizes(await size_in_thread(result))
    value = result[_STRUCTURED]
    known = before.structured if before is not None and before.value is value else None
    structured = known or await size_in_thread(value)
    rest = await size_in_thread({key: member for key, member in result.items() if key != _STRUCTURED})
    characters = rest.characters + structured.characters + len(_STRUCTURED)
    return Sizes(Size(characters, rest.values + structured.values), value, structured)


async def size_in_thread(value: Any) -> Size:
    """Return the size of a JSON value, measured in a thread if it has many values."""
    size = size_of(value, most_values=MANY_VALUES)
    return size if size.is_whole else await to_thread.run_sync(size_of, value)
