"""Lines for people at a terminal, which would break them in the middle of a word."""

import os
import textwrap
from typing import TextIO

_INDENT = "  "
_NARROWEST = 40


def wrapped(text: str, stream: TextIO) -> str:
    """Return the text with its long lines wrapped at blanks, if `stream` is a terminal; else as it is.

    A word that is wider than the terminal, such as a path, stays whole.
    """
    width = _width(stream)
    if width is None:
        return text
    return "\n".join(_wrapped(line, width) if len(line) > width else line for line in text.split("\n"))


def _wrapped(line: str, width: int) -> str:
    indent = line[: len(line) - len(line.lstrip(" "))]
    return textwrap.fill(
        line,
        width,
        subsequent_indent=indent + _INDENT,
        break_long_words=False,
        break_on_hyphens=False,
        expand_tabs=False,
        replace_whitespace=False,
    )


def _width(stream: TextIO) -> int | None:
    """Return the columns of the terminal at the other end of a stream; None if there is none, or a very narrow one."""
    try:
        columns = os.get_terminal_size(stream.fileno()).columns if stream.isatty() else 0
    except (OSError, ValueError):
        return None
    return columns if columns >= _NARROWEST else None
