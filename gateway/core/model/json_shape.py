"""The nesting depth of JSON values: measure it, and remove what is too deep. Standard library only.

JSON comes from programs that we do not control. Nesting breaks parsers and serializers long before size does, each at a
depth of its own: System.Text.Json at 64 levels (by default), serde_json at 128, jiter (pydantic's parser) at 200,
pydantic's serializers at 254, Python's json at about 1,000. So nothing deeper than `DEEPEST` passes through. Sources:
https://docs.rs/serde_json/latest/serde_json/struct.Deserializer.html#method.disable_recursion_limit,
https://docs.pydantic.dev/latest/api/pydantic_core/, and measured with pydantic-core 2.46.
"""

import math
import re
from collections.abc import Callable, Collection, Mapping
from types import MappingProxyType, NoneType
from typing import Any, cast

from gateway.core.model.json_values import as_object, is_dict, is_list

DEEPEST = 100
"""Maximum levels of arrays and objects in one JSON value. The schemas of real tools nest about 30 levels deep."""

NESTED_TOO_DEEPLY = f"[left out: nested deeper than {DEEPEST} levels]"
"""The text that replaces a value nested too deeply."""

_CUT_AT = DEEPEST + 50
"""Depth at which text is cut before it is parsed: deep enough that the parsed value is still seen to be too deep."""

SCALARS = frozenset({str, int, float, bool, NoneType})
CONTAINERS = (dict, list, tuple, MappingProxyType)
"""The types of arrays and objects, those of our own results included."""
ARRAYS = (list, tuple)
"""The containers without keys."""

_BRACKETS = re.compile(r'(?:[^"\[\]{}]++|"(?:[^"\\]++|\\.)*+"?)*+([\[{]+|[\]}]+|\Z)', re.DOTALL)
"""Runs of opening or of closing brackets, with whatever precedes them; brackets within strings are skipped.

Linear: there is a match at every position of any text, and no character is examined twice.
"""

_ITEM_MEMBERS = frozenset(
    {
        *("tools", "resources", "resourceTemplates", "prompts", "content", "contents", "messages", "resource"),
        *("result", "capabilities"),
    }
)
"""Members of results that hold items, each usable without the others."""

_DEEPEST_ITEM = 4
"""Maximum nesting of such members that is searched: the deepest is the resource in a message's content.

Each level is measured again, so without a bound the work would be the depth times the size.
"""

_OPTIONAL = frozenset(
    {
        *("_meta", "annotations", "icons", "execution", "outputSchema", "structuredContent", "data", "title"),
        *("description", "experimental", "extensions"),
    }
)
"""Optional members of results and of their items."""

_OF_CONTENTS = ("uri", "text", "blob")
_OF_BLOCKS = ("type", "text", "data", "mimeType", "uri", "name", "resource")
"""Members of the contents of a resource, and of a block of content, without which there is nothing to show."""
_OF_DATA = ("image", "audio")
_SPEAKER = "user"
_NO_URI = "about:blank"
"""The URI of contents that have none of their own any more (RFC 6694); clients refuse what is not a URI."""


def is_container(value: Any) -> bool:
    """Whether a value is an array or object."""
    return isinstance(value, CONTAINERS)


def contents_of(container: Any) -> Collection[Any]:
    """Return the values in an array or object."""
    return cast("Collection[Any]", container) if isinstance(container, ARRAYS) else container.values()


def has_long_text(value: Any, least: int) -> bool:
    """Whether a JSON value contains a text of at least `least` characters, not counting keys."""
    level: list[Any] = [value]
    while level:
        below: list[Any] = []
        for item in level:
            if isinstance(item, str):
                if len(item) >= least:
                    return True
            elif type(item) not in SCALARS and isinstance(item, CONTAINERS):
                below += contents_of(item)
        level = below
    return False


def may_be_deep(data: bytes | str, deepest: int = DEEPEST) -> bool:
    """Whether JSON text has enough brackets to nest deeper than `deepest`. Very fast if it does not."""
    left = deepest + 1
    for bracket in (b"[", b"{") if isinstance(data, bytes) else ("[", "{"):
        at = -1
        while (at := data.find(bracket, at + 1)) >= 0:  # pyright: ignore[reportArgumentType]
            left -= 1
            if not left:
                return True
    return False


def is_deep(value: Any, deepest: int = DEEPEST, *, most_values: int | None = None) -> bool | None:
    """Whether a JSON value has more than `deepest` levels of arrays and objects. In linear time, never recursive.

    None if there are more than `most_values` values: looking at all of them takes long.
    """
    left = math.inf if most_values is None else most_values
    level = _containers_in([value])
    for _ in range(deepest):
        if not level:
            return False
        left -= sum(map(len, level))
        if left < 0:
            return None
        below: list[Any] = []
        for container in level:
            below += contents_of(container)
        level = _containers_in(below)
    return bool(level)


def _containers_in(values: list[Any]) -> list[Any]:
    return [value for value in values if type(value) not in SCALARS and isinstance(value, CONTAINERS)]


def cut_text(text: str) -> str:
    """Replace everything in JSON text that nests too deeply for any parser by `NESTED_TOO_DEEPLY`."""
    parts: list[str] = []
    done = depth = 0
    cut: int | None = None
    for match in _BRACKETS.finditer(text):
        start, end = match.span(1)
        if text[start:end][:1] in ("[", "{"):
            if cut is None and depth + end - start > _CUT_AT:
                cut = start + _CUT_AT - depth
            depth += end - start
            continue
        if cut is not None and depth - (end - start) <= _CUT_AT:
            parts += (text[done:cut], f'"{NESTED_TOO_DEEPLY}"')
            done, cut = start + depth - _CUT_AT, None
        depth -= end - start
    return "".join((*parts, text[done:])) if parts else text


def without_deep(result: Mapping[str, Any], deepest: int = DEEPEST) -> tuple[dict[str, Any], tuple[str, ...]]:
    """Return a result without the parts nested too deeply, and their places (`tools[3].inputSchema`).

    As little as possible is removed: for an item in a list, only the member that is too deep. A required member is
    replaced by `NESTED_TOO_DEEPLY`; contents of a resource, a message of a prompt and a completion stay what they are,
    since clients refuse a whole answer for one that is not (2025-11-25, ReadResourceResult, PromptMessage, Completion).
    """
    places: list[str] = []
    return _pruned(result, deepest, _DEEPEST_ITEM, "", places), tuple(places)


def _pruned(value: Mapping[str, Any], left: int, held: int, where: str, places: list[str]) -> dict[str, Any]:
    pruned: dict[str, Any] = {}
    for key, member in value.items():
        place = f"{where}.{key}" if where else key
        if not is_deep(member, left - 1):
            pruned[key] = member
        elif held and key in _ITEM_MEMBERS and isinstance(member, Mapping):
            pruned[key] = _pruned(cast("Mapping[str, Any]", member), left - 1, held - 1, place, places)
        elif held and key in _ITEM_MEMBERS and isinstance(member, list):
            kept = _KEPT_IN_FORM.get(key, _as_it_is)
            pruned[key] = [
                item
                if not is_deep(item, left - 2)
                else kept(_pruned_item(item, left - 2, held - 1, f"{place}[{at}]", places))
                for at, item in enumerate(cast("list[Any]", member))
            ]
        else:
            places.append(place)
            if key not in _OPTIONAL:
                pruned[key] = {"values": []} if key == "completion" else NESTED_TOO_DEEPLY
    return pruned


def _pruned_item(item: Any, left: int, held: int, place: str, places: list[str]) -> Any:
    if isinstance(item, Mapping):
        return _pruned(cast("Mapping[str, Any]", item), left, held, place, places)
    places.append(place)
    return NESTED_TOO_DEEPLY


def _as_it_is(item: Any) -> Any:
    return item


def _contents(item: Any) -> Any:
    """Return contents of a resource as such, with the text of what was left out if what they carry was."""
    if not _has_lost(item, _OF_CONTENTS):
        return item
    uri = as_object(item).get("uri", NESTED_TOO_DEEPLY)
    return {"uri": _NO_URI if uri == NESTED_TOO_DEEPLY else uri, "text": NESTED_TOO_DEEPLY}


def _message(item: Any) -> Any:
    """Return a message of a prompt as such, with the text of what was left out in place of lost content."""
    if not is_dict(item):
        return {"role": _SPEAKER, "content": _block(item)}
    edited: dict[str, Any] = {"role": _SPEAKER} if item.get("role") == NESTED_TOO_DEEPLY else {}
    if "content" in item:
        content = item["content"]
        edited["content"] = [_block(block) for block in content] if is_list(content) else _block(content)
    return {**item, **edited}


def _block(block: Any) -> Any:
    """Return a block of content, with the text of what was left out if it cannot do without that."""
    fields = as_object(block)
    is_lost = (
        _has_lost(block, _OF_BLOCKS)
        or _has_lost(fields.get("resource"), _OF_CONTENTS)
        or (fields.get("type") in _OF_DATA and "data" not in fields)
    )
    return {"type": "text", "text": NESTED_TOO_DEEPLY} if is_lost else block


def _has_lost(item: Any, needed: Collection[str]) -> bool:
    """Whether an item was replaced, or a member that it needs was."""
    return any(
        value == NESTED_TOO_DEEPLY or (is_list(value) and NESTED_TOO_DEEPLY in value)
        for value in (item, *(as_object(item).get(key) for key in needed))
    )


_KEPT_IN_FORM: Mapping[str, Callable[[Any], Any]] = {"contents": _contents, "messages": _message}
"""How an item of these lists becomes one again, once what is too deep is taken out of it."""
