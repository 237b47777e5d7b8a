"""The shape of a JSON value in few characters: keys, counts, types, and the first rows of each list. Pure."""

import json
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple, cast

from gateway.core.model.json_shape import is_container
from gateway.core.model.json_values import is_list, is_object

MOST_CHARS = 2_000_000
"""Longer texts are parsed in a worker: that would take too long beside everything else."""

LEAST_ROOM = 300
"""Characters below which a shape says nothing."""
_MOST_ROOM = 200_000
"""Characters of the longest shape of a long text."""
_ROWS_FOR_TYPES = 100
"""Rows of a list that are looked at for the types of their members."""
_MOST_MEMBERS = 30
"""Members whose types are named."""


class _Detail(NamedTuple):
    """How much is shown: rows of a list, keys of an object, characters of a text, and levels."""

    rows: int
    keys: int
    chars: int
    levels: int


_DETAILS = (
    _Detail(30, 60, 300, 8),
    _Detail(12, 60, 160, 8),
    _Detail(6, 40, 120, 6),
    _Detail(3, 30, 80, 5),
    _Detail(2, 20, 60, 4),
    _Detail(1, 12, 40, 3),
    _Detail(1, 8, 24, 2),
    _Detail(0, 8, 24, 2),
)
"""From much to little: the first that fits is taken."""


class _Full(Exception):
    """There is no room for more."""


def json_outline(text: str, room: int) -> str | None:
    """Return the shape of a JSON text in at most `room` characters.

    None if it is not an object or a list in JSON, is too long or nested too deeply to be looked at, or does not fit.
    """
    if room < LEAST_ROOM or len(text) > MOST_CHARS:
        return None
    return next(_outlines(text, room), None)


def json_outlines(text: str) -> tuple[str, ...]:
    """Return shapes of a JSON text of any length, from much to little; none if `json_outline` finds none either."""
    return tuple(_outlines(text, _MOST_ROOM))


def may_be_json(text: str) -> bool:
    """Whether a text begins and ends as an object or a list in JSON does."""
    return text[:100].lstrip()[:1] in ("{", "[") and text[-100:].rstrip()[-1:] in ("}", "]")


def _outlines(text: str, room: int) -> Iterator[str]:
    if not may_be_json(text):
        return
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return
    for detail in _DETAILS:
        try:
            yield _Outline(room, detail).of(value)
        except _Full:
            continue


class _Outline:
    """Writes one shape; raises _Full when it is longer than `room`."""

    def __init__(self, room: int, detail: _Detail) -> None:
        self._left = room
        self._detail = detail
        self._parts: list[str] = []

    def of(self, value: Any) -> str:
        self._value(value, 0)
        return "".join(self._parts)

    def _write(self, text: str) -> None:
        self._left -= len(text)
        if self._left < 0:
            raise _Full
        self._parts.append(text)

    def _value(self, value: Any, level: int) -> None:
        if not is_container(value):
            self._write(_scalar(value, self._detail.chars))
        elif not value:
            self._write("[]" if is_list(value) else "{}")
        elif level >= self._detail.levels:
            self._write(f"<{_kind(value)}>")
        elif is_list(value):
            self._list(value, level)
        elif is_object(value):
            self._object(value, level)

    def _object(self, value: Mapping[str, Any], level: int) -> None:
        self._write("{")
        for number, (key, member) in enumerate(value.items()):
            if number >= self._detail.keys:
                self._line(level + 1, f"… {len(value) - number:,} more keys")
                break
            self._line(level + 1, f"{_scalar(key, self._detail.chars)}: ")
            self._value(member, level + 1)
        self._line(level, "}")

    def _list(self, value: list[Any], level: int) -> None:
        self._write("[")
        rows = min(len(value), self._detail.rows)
        for member in value[:rows]:
            self._line(level + 1, "")
            self._row(member, level + 1)
        if rows < len(value):
            self._line(level + 1, f"… {len(value) - rows:,} more, {len(value):,} in all: {_types(value)}")
        self._line(level, "]")

    def _row(self, value: Any, level: int) -> None:
        """Write a row of a list on one line, if it is flat."""
        if is_object(value) and not any(is_container(member) for member in value.values()):
            members = list(value.items())[: self._detail.keys]
            shown = ", ".join(f"{json.dumps(key)}: {_scalar(each, self._detail.chars)}" for key, each in members)
            more = f", … {len(value) - len(members):,} more keys" if len(members) < len(value) else ""
            self._write("{" + shown + more + "}")
        else:
            self._value(value, level)

    def _line(self, level: int, text: str) -> None:
        self._write("\n" + "  " * level + text)


def _scalar(value: Any, most: int) -> str:
    if isinstance(value, str) and len(value) > most:
        return f"{json.dumps(value[:most], ensure_ascii=False)}… ({len(value):,} characters)"
    return json.dumps(value, ensure_ascii=False)


def _types(rows: list[Any]) -> str:
    """The kinds of a list's rows; of objects, their keys and the types of these."""
    looked_at = rows[:_ROWS_FOR_TYPES]
    objects = [row for row in looked_at if is_object(row)]
    if len(objects) < len(looked_at):
        return " or ".join(sorted({_kind(row) for row in looked_at}))
    found: dict[str, dict[str, None]] = {}
    for key, kind in _members(objects):
        found.setdefault(key, {})[kind] = None
    named = [f"{_scalar(key, 60)}: {' or '.join(kinds)}" for key, kinds in list(found.items())[:_MOST_MEMBERS]]
    more = ", …" if len(found) > _MOST_MEMBERS else ""
    return "{" + ", ".join(named) + more + "}"


def _members(objects: list[Mapping[str, Any]]) -> Iterator[tuple[str, str]]:
    return ((key, _kind(value).split(" ")[0]) for row in objects for key, value in row.items())


def _kind(value: Any) -> str:
    match value:
        case None:
            return "null"
        case bool():
            return "boolean"
        case str():
            return "text"
        case int() | float():
            return "number"
        case list():
            return f"list of {len(cast('list[Any]', value)):,}"
        case _:
            return f"object of {len(value):,}"
