"""Finding the tables of a TOML text: adding one, replacing one, removing some, without any other change."""

import re
import tomllib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, cast

from gateway.core.model.json_values import is_list

_HEADER = re.compile(
    r"[ \t]*(\[\[?(?:[^\"'\[\]#\r\n]|\"(?:\\.|[^\"\\\r\n])*\"|'[^'\r\n]*')+\]\]?)[ \t]*(?:#[^\r\n]*)?(?:\r?\n|\Z)"
)
_PIECE = re.compile(
    r'"""(?:\\.|[^\\])*?"""(?:"{0,2})'
    r"|'''.*?'''(?:'{0,2})"
    r'|"(?:\\.|[^"\\\n])*"'
    r"|'[^'\n]*'"
    r"|#[^\n]*"
    r"|\n|.",
    re.DOTALL,
)


@dataclass(frozen=True)
class Table:
    """A table with a header of its own: its key and lines, without the blanks and comments before the next table."""

    path: tuple[str, ...]
    start: int
    end: int


def tables(text: str) -> tuple[Table, ...]:
    """Return every table of a valid TOML text that has a header, in order."""
    found: list[Table] = []
    position = 1 if text.startswith("\ufeff") else 0
    while position < len(text):
        header = _HEADER.match(text, position)
        if header is not None:
            found.append(Table(_path(header[1]), position, header.end()))
            position = header.end()
            continue
        end = _line_end(text, position)
        line = text[position:end].strip()
        if found and line and not line.startswith("#"):
            found[-1] = Table(found[-1].path, found[-1].start, end)
        position = end
    return tuple(found)


def with_table(text: str, table: str) -> str:
    """Append a table (its header and lines, ending with a newline) to the text."""
    newline = "\r\n" if "\r\n" in text else "\n"
    table = table.replace("\n", newline)
    if not text.strip("\ufeff"):
        return text + table
    return text + ("" if text.endswith("\n") else newline) + newline + table


def replaced(text: str, belongs: Callable[[tuple[str, ...]], bool], table: str) -> str:
    """Replace the tables whose path `belongs` by `table`, in their place if they are consecutive."""
    ours = [one for one in tables(text) if belongs(one.path)]
    between = [one for one in tables(text) if ours and ours[0].start < one.start < ours[-1].start]
    if not ours or len(between) != max(len(ours) - 2, 0) or text[ours[0].start : ours[-1].end].count("#"):
        return with_table(without_tables(text, belongs), table)
    newline = "\r\n" if "\r\n" in text else "\n"
    return text[: ours[0].start] + table.replace("\n", newline) + text[ours[-1].end :]


def without_tables(text: str, belongs: Callable[[tuple[str, ...]], bool]) -> str:
    """Remove the tables whose path `belongs`, and the blank line before one at the end."""
    for table in reversed([one for one in tables(text) if belongs(one.path)]):
        before, after = text[: table.start], text[table.end :]
        if not after.strip():
            before = re.sub(r"(\n)[ \t]*\r?\n\Z", r"\1", before)
        elif re.search(r"(?:\A|\n)[ \t]*\r?\n\Z", before) and re.match(r"[ \t]*\r?\n", after):
            after = re.sub(r"\A[ \t]*\r?\n", "", after)
        text = before + after
    return text


def _path(header: str) -> tuple[str, ...]:
    def keys(value: Any) -> Iterator[str]:
        while value:
            if is_list(value):
                value = value[0]
                continue
            key, value = next(iter(cast("dict[str, Any]", value).items()))
            yield key

    return tuple(keys(tomllib.loads(header)))


def _line_end(text: str, position: int) -> int:
    """Return the end of the key and value, comment or blank line that begins here; values may span several lines."""
    depth = 0
    for piece in _PIECE.finditer(text, position):
        if piece[0] in ("[", "{"):
            depth += 1
        elif piece[0] in ("]", "}"):
            depth -= 1
        elif piece[0] == "\n" and depth <= 0:
            return piece.end()
    return len(text)


def begins_with(path: Sequence[str]) -> Callable[[tuple[str, ...]], bool]:
    """Return a predicate for the table at `path` and the tables below it."""
    wanted = tuple(path)
    return lambda key: key[: len(wanted)] == wanted
