"""Parsing JSON as used for settings (comments, trailing commas, a byte order mark), with the place of every value.

The places are for edits that must not change anything else in a file.
"""

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

_TRIVIA = re.compile(r"(?:[ \t\r\n\ufeff]+|//[^\r\n]*|/\*.*?\*/)*", re.DOTALL)
_STRING = re.compile(r'"(?:[^"\\\x00-\x1f]|\\.)*"')
_PLAIN = re.compile(r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?|true|false|null")
_PIECE = re.compile(r'"(?:[^"\\]|\\.)*"|//[^\r\n]*|/\*.*?\*/|[\[\]{}]', re.DOTALL)
_DEPTH = 200


class Malformed(ValueError):
    """The text is not JSON: what was expected, and where (1-based line and column)."""

    def __init__(self, what: str, text: str, position: int) -> None:
        super().__init__(what)
        self.what = what
        self.line = text.count("\n", 0, position) + 1
        self.column = position - (text.rfind("\n", 0, position) + 1) + 1


@dataclass(frozen=True)
class Node:
    """A value and its place `[start, end)` in the text; for an object, also its members."""

    start: int
    end: int
    value: Any
    members: "tuple[Member, ...] | None" = None

    def member(self, key: str) -> "Member | None":
        """Return the member with this key, if this object has it; of duplicates the last, as JSON parsers do."""
        return next((one for one in reversed(self.members or ()) if one.key == key), None)


@dataclass(frozen=True)
class Member:
    """A key (which begins at `start`) and its value."""

    key: str
    start: int
    node: Node


def parse_jsonc(text: str, *, strict: bool = False) -> Any:
    """Return the document's value; `{}` if the text has only blanks and comments.

    Raises:
        Malformed: the text is not JSON; or, with `strict`, it is empty or has a duplicate key in an object.
    """
    pairs = _unique if strict else None
    try:  # most files are plain JSON, some of several megabytes
        return json.loads(text.removeprefix("\ufeff"), parse_constant=_no_constant, object_pairs_hook=pairs)
    except (ValueError, RecursionError):
        root = _Parser(text, unique_keys=strict).document(None)
        if root is None and strict:
            raise Malformed("a value is expected here", text, len(text)) from None
        return {} if root is None else root.value


def parse(text: str, path: Sequence[str] | None = None) -> Node | None:
    """Parse the document's one value; None if the text has only blanks and comments.

    With a `path`, only the objects on it are parsed, including the last one: other objects and lists are skipped, and
    their value is `...`.

    Raises:
        Malformed: the text, as far as it is parsed, is not JSON.
    """
    return _Parser(text).document(path)


def after_trivia(text: str, position: int) -> int:
    """Return the position after blanks and comments."""
    found = _TRIVIA.match(text, position)
    assert found is not None  # an empty match is a match
    return found.end()


def _no_constant(name: str) -> None:
    raise ValueError(name)


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    table = dict(pairs)
    if len(table) < len(pairs):
        raise ValueError
    return table


class _Parser:
    def __init__(self, text: str, *, unique_keys: bool = False) -> None:
        self._text = text
        self._unique_keys = unique_keys

    def document(self, path: Sequence[str] | None) -> Node | None:
        start = self._after_trivia(0)
        if start == len(self._text):
            return None
        node = self._value(start, 0, path)
        end = self._after_trivia(node.end)
        if end != len(self._text):
            raise self._malformed("nothing may follow the end of the document", end)
        return node

    def _value(self, start: int, depth: int, path: Sequence[str] | None) -> Node:
        if depth > _DEPTH:
            raise self._malformed("nested too deeply", start)
        first = self._at(start)
        if first == "{":
            return self._object(start, depth, path)
        if first == "[":
            return self._array(start, depth) if path is None else self._passed_over(start)
        if first == '"':
            return self._string(start)
        found = _PLAIN.match(self._text, start)
        if found is None:
            raise self._malformed("a value is expected here", start)
        return Node(start, found.end(), json.loads(found[0]))

    def _string(self, start: int) -> Node:
        found = _STRING.match(self._text, start)
        if found is None:
            raise self._malformed("a string in double quotes is expected here", start)
        try:
            return Node(start, found.end(), json.loads(found[0]))
        except ValueError:
            raise self._malformed("an invalid backslash escape", start) from None

    def _passed_over(self, start: int) -> Node:
        depth = 0
        for piece in _PIECE.finditer(self._text, start):
            depth += (piece[0] in ("{", "[")) - (piece[0] in ("}", "]"))
            if depth == 0:
                return Node(start, piece.end(), ...)
        raise self._malformed("a bracket is not closed", start)

    def _object(self, start: int, depth: int, path: Sequence[str] | None) -> Node:
        members: list[Member] = []
        value: dict[str, Any] = {}
        position = self._after_trivia(start + 1)
        while self._at(position) != "}":
            member = self._member(position, depth, path)
            if self._unique_keys and member.key in value:
                raise self._malformed(f"the key {member.key!a} occurs twice in one object", position)
            members.append(member)
            value[member.key] = member.node.value
            position = self._after_comma(member.node.end, "}")
        return Node(start, position + 1, value, tuple(members))

    def _member(self, start: int, depth: int, path: Sequence[str] | None) -> Member:
        name = self._string(start)
        key: str = name.value
        colon = self._after_trivia(name.end)
        if self._at(colon) != ":":
            raise self._malformed("a colon is expected here", colon)
        at = self._after_trivia(colon + 1)
        if path is None or path[:1] == [key]:
            return Member(key, start, self._value(at, depth + 1, None if path is None else path[1:]))
        return Member(
            key, start, self._passed_over(at) if self._at(at) in ("{", "[") else self._value(at, depth + 1, ())
        )

    def _array(self, start: int, depth: int) -> Node:
        items: list[Any] = []
        position = self._after_trivia(start + 1)
        while self._at(position) != "]":
            node = self._value(position, depth + 1, None)
            items.append(node.value)
            position = self._after_comma(node.end, "]")
        return Node(start, position + 1, items)

    def _after_comma(self, end: int, closing: str) -> int:
        """Return the position of the next item, or of the closing bracket."""
        position = self._after_trivia(end)
        if self._at(position) == ",":
            return self._after_trivia(position + 1)
        if self._at(position) != closing:
            raise self._malformed(f"a comma or {closing} is expected here", position)
        return position

    def _at(self, position: int) -> str:
        return self._text[position : position + 1]

    def _after_trivia(self, position: int) -> int:
        return after_trivia(self._text, position)

    def _malformed(self, what: str, position: int) -> Malformed:
        return Malformed(what, self._text, position)
