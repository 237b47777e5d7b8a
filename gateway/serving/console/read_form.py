"""Reading a submitted form back into the JSON value that it stands for. Pure; it needs no schema.

Each control is named after its kind and its place, as `s:/path/to/it`:

- `s`: a text; `n`: a number; `j`: JSON; an empty one gives nothing;
- `o`: there is an object here, even without members; `a`: the same for an array;
- `m`: a JSON object whose members belong to the object here.

Places are JSON pointers (RFC 6901), in which `~r` and a number mean a row of an array, in the order in which rows
arrive. Names are escaped as in JSON strings, so that they are ASCII whatever members are called.
"""

import json
import math
import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from gateway.core.model.json_shape import DEEPEST, is_deep, may_be_deep
from gateway.core.model.json_values import is_dict
from gateway.errors import InvalidRequest

MOST_PAIRS = 5_000
_LONGEST_NUMBER = 400
_LEVELS = 24
_ROW = "~r"
_INTEGER = re.compile(r"[+-]?+\d++", re.ASCII)


class Mistake(NamedTuple):
    """What is wrong at a place of a form (encoded as in the names of controls), or of the whole: the empty place."""

    at: str
    text: str


@dataclass
class ReadForm:
    """The value that a form stands for, what could not be read, and where each value was in the form.

    `places` has the encoded place of the form for each path in the value.
    """

    value: Any = None
    mistakes: list[Mistake] = field(default_factory=list[Mistake])
    places: dict[tuple[str | int, ...], str] = field(default_factory=lambda: {(): ""})

    def place_of(self, path: tuple[str | int, ...]) -> str:
        """Return the place of the form for a path in the value; of the closest one around it, if it has none."""
        for end in range(len(path), -1, -1):
            if (at := self.places.get(path[:end])) is not None:
                rest = "".join(f"/{_escaped(str(step))}" for step in path[end:])
                return f"{at}{encoded(rest)}"
        return ""


def encoded(pointer: str) -> str:
    """Return a pointer in ASCII, as names of controls have it."""
    return json.dumps(pointer)[1:-1]


def joined(pointer: str, name: str) -> str:
    """Return the pointer to a member."""
    return f"{pointer}/{_escaped(name)}"


def row_token(number: str) -> str:
    """Return the part of a pointer that stands for a row."""
    return f"{_ROW}{number}"


def _escaped(name: str) -> str:
    return name.replace("~", "~0").replace("/", "~1")


class _Node:
    """A place with a value of its own, or with others below it."""

    def __init__(self) -> None:
        self.below: dict[str, _Node] = {}
        self.kind = ""
        self.value: Any = None
        self.more: dict[str, Any] = {}


def read_form(pairs: Iterable[tuple[str, str]]) -> ReadForm:
    """Return the value that the pairs of a submitted form stand for. Other pairs than those above are left alone.

    Raises:
        InvalidRequest: it is not a form of this kind, or too large.
    """
    read, root = ReadForm(), _Node()
    for count, (name, text) in enumerate(pairs):
        if count >= MOST_PAIRS:
            raise InvalidRequest(f"the form has more than {MOST_PAIRS:,} fields", remedy="give it as JSON")
        kind, colon, at = name.partition(":")
        if colon and kind in ("s", "n", "j", "o", "a", "m"):
            _put(root, kind, at, text, read.mistakes)
    read.value = _value(root, (), "", read)
    return read


def _put(root: _Node, kind: str, at: str, text: str, mistakes: list[Mistake]) -> None:
    try:
        found = _parsed(kind, text)
    except ValueError as error:
        mistakes.append(Mistake(at, str(error)))
        return
    if found is None:
        return
    node = root
    for token in _tokens(at):
        node = node.below.setdefault(token, _Node())
    if kind == "m":
        node.more |= found[0]
        return
    if kind in ("s", "n", "j"):
        node.value = found[0]
    node.kind = kind


def _tokens(at: str) -> list[str]:
    try:
        pointer = json.loads(f'"{at}"')
    except ValueError:
        raise _unknown_place(at) from None
    first, *tokens = pointer.split("/")
    if first or len(tokens) > _LEVELS:
        raise _unknown_place(at)
    return tokens


def _unknown_place(at: str) -> InvalidRequest:
    return InvalidRequest(f"{at[:100]!a} is not a place in a form", remedy="open the page again")


def _parsed(kind: str, text: str) -> tuple[Any] | None:
    """Return what a control gives, in a tuple; None if it gives nothing. Raises ValueError in words for people."""
    if kind in ("o", "a"):
        return ({} if kind == "o" else [],)
    if kind == "s":
        text = text.replace("\r\n", "\n")
        return (text,) if text else None
    text = text.strip()
    if not text:
        return None
    if kind == "n":
        return (_number(text),)
    value = parse_json(text)
    if kind == "m" and not is_dict(value):
        raise ValueError("this is not a JSON object")
    return (value,)


def _number(text: str) -> int | float:
    if len(text) > _LONGEST_NUMBER:
        raise ValueError("this is too long for a number")
    if _INTEGER.fullmatch(text):
        return int(text)
    try:
        number = float(text) if text.isascii() and "_" not in text else math.nan
    except ValueError:
        number = math.nan
    if not math.isfinite(number):
        raise ValueError("this is not a number")
    return number


def parse_json(text: str) -> Any:
    """Return the value of JSON text. Raises ValueError in words for people."""
    if may_be_deep(text) and is_deep_text(text):
        raise ValueError(f"this is nested deeper than {DEEPEST} levels")
    try:
        return json.loads(text, parse_constant=_refuse_constant)
    except json.JSONDecodeError as error:
        raise ValueError(f"this is not JSON: {error.msg}, in line {error.lineno}, column {error.colno}") from None
    except ValueError as error:
        raise ValueError(f"this is not JSON: {error}") from None


def is_deep_text(text: str) -> bool:
    """Whether the value of JSON text nests too deeply; text that is not JSON does if it cannot be parsed for that."""
    try:
        return is_deep(json.loads(text)) is True
    except RecursionError:
        return True
    except ValueError:
        return False


def _refuse_constant(name: str) -> Any:
    raise ValueError(f"{name} is not a number of JSON")


def _value(node: _Node, path: tuple[str | int, ...], at: str, read: ReadForm) -> Any:
    """Return the value of a node, and note its place; the root of an empty form is an empty object."""
    read.places[path] = at
    if node.kind in ("s", "n", "j") and not node.below and not node.more:
        return node.value
    rows = [token for token in node.below if token.startswith(_ROW)]
    if node.kind in ("s", "n", "j") or (rows and (len(rows) < len(node.below) or node.more or node.kind == "o")):
        raise InvalidRequest(f"the form gives {at[:100] or 'its whole'!a} twice", remedy="open the page again")
    if rows or (node.kind == "a" and not node.more and not node.below):
        return [
            _value(below, (*path, number), f"{at}{encoded('/' + token)}", read)
            for number, (token, below) in enumerate(node.below.items())
        ]
    members = {
        name: _value(below, (*path, name), f"{at}{encoded('/' + token)}", read)
        for token, below in node.below.items()
        for name in (token.replace("~1", "/").replace("~0", "~"),)
    }
    return {**node.more, **members}
