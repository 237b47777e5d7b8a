"""JSON values as trees that can be opened node by node, within bounds."""

from collections.abc import Iterable, Mapping
from typing import Any

from gateway.core.model.json_values import is_list, is_object

MOST_NODES = 400
DEEPEST = 12
_LONGEST = 200

Node = Mapping[str, Any]
"""A node: its `key` (null for the root), `value` in words for a leaf, or else `count` and `children`; `more`: the
number of children that are left out."""


def tree_of(value: Any) -> Node | None:
    """Return the tree of an object or a list; None for another value, which needs no tree."""
    if not (is_object(value) or is_list(value)):
        return None
    return _Grower().grow(None, value, DEEPEST)


class _Grower:
    def __init__(self) -> None:
        self._left = MOST_NODES

    def grow(self, key: str | None, value: Any, depth: int) -> Node:
        self._left -= 1
        if is_object(value):
            return self._branch(key, ((_cut(str(name)), one) for name, one in value.items()), len(value), "{}", depth)
        if is_list(value):
            return self._branch(key, ((str(place), one) for place, one in enumerate(value)), len(value), "[]", depth)
        return {"key": key, "value": _leaf(value)}

    def _branch(
        self, key: str | None, items: Iterable[tuple[str, Any]], count: int, form: str, depth: int
    ) -> dict[str, Any]:
        children: list[Node] = []
        for name, one in items:
            if self._left <= 0 or depth <= 0:
                break
            children.append(self.grow(name, one, depth - 1))
        return {"key": key, "form": form, "count": count, "children": children, "more": count - len(children)}


def _leaf(value: Any) -> str:
    if isinstance(value, str):
        return f'"{_cut(value)}"'
    if value is None or isinstance(value, bool):
        return {None: "null", True: "true", False: "false"}[value]
    return _cut(str(value)) if isinstance(value, float) or abs(value) < 10**_LONGEST else "a very large number"


def _cut(text: str) -> str:
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}… ({len(text):,} characters)"
