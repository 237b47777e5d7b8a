"""Problems in a configuration, in one line each: where, what, and what to do. Values never appear in them."""

import re
from collections.abc import Sequence
from typing import NamedTuple

from gateway.errors import ConfigError

Location = tuple[str | int, ...]
"""A place in the document: keys of tables and positions in lists."""


class Problem(NamedTuple):
    """One problem: its place in the document, a description, and the remedy if there is one."""

    location: Location
    what: str
    remedy: str | None = None


def dotted(location: Sequence[str | int]) -> str:
    """Format the location as a dotted key, as in TOML: `upstreams."my files".args[0]`."""
    text = ""
    for part in location:
        if isinstance(part, int):
            text += f"[{part}]"
        else:
            key = part if re.fullmatch(r"[A-Za-z0-9_-]+", part) else _quoted(part)
            text += f".{key}" if text else key
    return text


def config_error(source: str, problems: Sequence[Problem]) -> ConfigError:
    """Combine all problems of `source` (a file, a flag) into one error, with a line for each.

    With several problems, `where` and `remedy` of each are those of the error's `problems`.
    """
    errors = [
        ConfigError(problem.what, where=_where(source, problem.location), remedy=problem.remedy) for problem in problems
    ]
    if len(errors) == 1:
        return errors[0]
    return ConfigError("\n".join(map(str, errors)), problems=errors)


def _where(source: str, location: Location) -> str:
    return f"{source}: {dotted(location)}" if location else source


def _quoted(key: str) -> str:
    return '"' + key.encode("unicode_escape").decode("ascii").replace('"', '\\"') + '"'
