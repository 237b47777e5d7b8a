"""JSON as hosts' settings have it (comments, trailing commas, a byte order mark), read with the place of every value.

The places are what edits need, which may change nothing else in a file.
"""

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, cast

_TRIVIA = re.compile(r"(?:[ \t\r\n\ufeff]+|//[^\r\n]*|/\*.*?\*/)*", re.DOTALL)
_STRING = re.compile(r'"(?:[^"\\\x00-\x1f]|\\.)*"')
_PLAIN = re.compile(r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?|true|false|null")
_PIECE = re.compile(r'"(?:[^"\\]|\\.)*"|//[^\r\n]*|/\*.*?\*/|[\[\]{}]', re.DOTALL)
_DEPTH = 200


class Malformed(ValueError):
    """The text is no JSON: what was expected, and where (1-based line and column)."""

    def __init__(self, what: str, text: str, position: int) -> None:
        super().__init__(what)
        self.what = what
        self.line = text.count("\n", 0, position) + 1
        self.column = position - (text.rfind("\n", 0, position) + 1) + 1


@dataclass(frozen=True)
class Node:
    """A value and its place `[start, end)` in the text; an object's members with it."""

    start: int
    end: int
    value: Any
    members: "tuple[Member, ...] | None" = None

    def member(self, key: str) -> "Member | None":
        """The member of this key, if this is an object that has it; of twins the last, as JSON parsers take it."""
        return next((one for one in reversed(self.members or ()) if one.key == key), None)


@dataclass(frozen=True)
class Member:
    """A key (which begins at `start`) and its value."""

    key: str
    start: int
    node: Node


def read(text: str) -> Any:
    """The document's value; `{}` where the text is only blanks and comments.

    Raises:
        Malformed: the text is no JSON.
    """
    try:  # most files are plain JSON, some of several megabytes
        return json.loads(text.removeprefix("\ufeff"), parse_constant=_no_constant)
    except (ValueError, RecursionError):
        root = parse(text)
        return {} if root is None else root.value


def parse(text: str, path: Sequence[str] | None = None) -> Node | None:
    """The document's one value; nothing where the text is only blanks and comments.

    With a `path`, only the objects on it are looked into, the last one included: other objects and lists are passed
    over unread, and their value is `...`.

    Raises:
        Malformed: the text, as far as it is read, is no JSON.
    """
    start = after_trivia(text, 0)
    if start == len(text):
        return None
    node = _value(text, start, 0, path)
    end = after_trivia(text, node.end)
    if end != len(text):
        raise Malformed("nothing may follow the end of the document", text, end)
    return node


def after_trivia(text: str, position: int) -> int:
    """The position after blanks and comments."""
    found = _TRIVIA.match(text, position)
    assert found is not None  # an empty match is one
    return found.end()


def _no_constant(name: str) -> None:
    raise ValueError(name)


def _value(text: str, start: int, depth: int, path: Sequence[str] | None) -> Node:
    if depth > _DEPTH:
        raise Malformed("nested too deeply", text, start)
    first = text[start : start + 1]
    if first == "{":
        return _object(text, start, depth, path)
    if first == "[":
        return _array(text, start, depth) if path is None else _passed_over(text, start)
    if first == '"':
        return _string(text, start)
    found = _PLAIN.match(text, start)
    if found is None:
        raise Malformed("a value is expected here", text, start)
    return Node(start, found.end(), json.loads(found[0]))


def _string(text: str, start: int) -> Node:
    found = _STRING.match(text, start)
    if found is None:
        raise Malformed("a text in double quotes is expected here", text, start)
    try:
        return Node(start, found.end(), json.loads(found[0]))
    except ValueError:
        raise Malformed("a backslash that means nothing", text, start) from None


def _passed_over(text: str, start: int) -> Node:
    depth = 0
    for piece in _PIECE.finditer(text, start):
        depth += (piece[0] in ("{", "[")) - (piece[0] in ("}", "]"))
        if depth == 0:
            return Node(start, piece.end(), ...)
    raise Malformed("a bracket is not closed", text, start)


def _object(text: str, start: int, depth: int, path: Sequence[str] | None) -> Node:
    members: list[Member] = []
    position = after_trivia(text, start + 1)
    while text[position : position + 1] != "}":
        key = _string(text, position)
        position = after_trivia(text, key.end)
        if text[position : position + 1] != ":":
            raise Malformed("a colon is expected here", text, position)
        node = _member_value(text, after_trivia(text, position + 1), depth + 1, cast("str", key.value), path)
        members.append(Member(cast("str", key.value), key.start, node))
        position = _after_comma(text, node.end, "}")
    value = {member.key: member.node.value for member in members}
    return Node(start, position + 1, value, tuple(members))


def _member_value(text: str, start: int, depth: int, key: str, path: Sequence[str] | None) -> Node:
    if path is None or path[:1] == [key]:
        return _value(text, start, depth, None if path is None else path[1:])
    return _passed_over(text, start) if text[start : start + 1] in ("{", "[") else _value(text, start, depth, ())


def _array(text: str, start: int, depth: int) -> Node:
    items: list[Any] = []
    position = after_trivia(text, start + 1)
    while text[position : position + 1] != "]":
        node = _value(text, position, depth + 1, None)
        items.append(node.value)
        position = _after_comma(text, node.end, "]")
    return Node(start, position + 1, items)


def _after_comma(text: str, end: int, closing: str) -> int:
    """Where the next item begins, or the closing bracket stands."""
    position = after_trivia(text, end)
    if text[position : position + 1] == ",":
        return after_trivia(text, position + 1)
    if text[position : position + 1] != closing:
        raise Malformed(f"a comma or {closing} is expected here", text, position)
    return position
