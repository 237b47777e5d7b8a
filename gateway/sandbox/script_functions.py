"""The functions of a script, on the side of its process: what each is asked for, as JSON.

Those that need nothing from the gateway are answered here.
"""

import io
import tokenize
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from gateway.core.model.json_safe import is_finite
from gateway.core.model.json_shape import DEEPEST
from gateway.sandbox.faults import ScriptFault
from gateway.sandbox.media import Media
from gateway.sandbox.script_values import media_in, to_json, to_text

FIND = "find_tools"

_LONGEST_SLEEP = 60.0
_MOST_SHOWN = 1_000

Arguments = tuple[Any, ...]


class Asked(NamedTuple):
    """The arguments of a call, by position and by name, for the gateway."""

    args: list[Any]
    kwargs: dict[str, Any]


class Answered(NamedTuple):
    """What a function returns that needs nothing from the gateway."""

    value: Any


def asked_of_tool(args: Arguments, kwargs: Mapping[str, Any]) -> Asked:
    """Return the arguments of a tool.

    Raises:
        ScriptFault: they are not JSON.
    """
    positional, named = to_json([list(args), dict(kwargs)], DEEPEST + 2)
    return Asked(positional, named)


def show(args: Arguments, kwargs: Mapping[str, Any], longest: int) -> Asked:
    """Ask for each value as the handles of the media in it, or as text, of at most about `longest` characters."""
    if kwargs:
        raise TypeError("show() takes no arguments by name")
    if len(args) > _MOST_SHOWN:
        raise ScriptFault(f"show takes at most {_MOST_SHOWN:,} values at once: give it a list")
    return Asked([_shown(value, longest) for value in args], {})


def _shown(value: Any, longest: int) -> dict[str, Any]:
    if found := media_in(value):
        return {"media": [media.handle for media in found]}
    return {"text": to_text(value)[: longest + 1]}


def media(args: Arguments, kwargs: Mapping[str, Any]) -> Answered:
    """Answer with the media in a value."""
    return Answered(media_in(_only("media", args, kwargs)))


def open_media(args: Arguments, kwargs: Mapping[str, Any]) -> Asked:
    """Ask for the media with a handle."""
    handle = _only("open_media", args, kwargs)
    if not isinstance(handle, str):
        raise ScriptFault("open_media needs a handle, as a text")
    return Asked([to_json(handle)], {})


def read(name: str, args: Arguments, kwargs: Mapping[str, Any]) -> Asked:
    """Ask for the content of media."""
    found = _only(name, args, kwargs)
    if not isinstance(found, Media):
        raise ScriptFault("only the content of media can be read: media(result) returns those of a result")
    return Asked([found.handle], {})


def find_tools(args: Arguments, kwargs: Mapping[str, Any]) -> Asked:
    """Ask for the functions that are best for a query."""
    query = _only(FIND, args, {} if args else {"": kwargs.get("query")})
    if not isinstance(query, str) or not query.strip():
        raise ScriptFault("find_tools needs a few words that say what the tool should do")
    return Asked([to_json(query)], {})


HELPERS: Mapping[str, Callable[[Arguments, Mapping[str, Any]], Asked | Answered]] = {
    FIND: find_tools,
    "media": media,
    "open_media": open_media,
    "read_bytes": lambda args, kwargs: read("read_bytes", args, kwargs),
    "read_text": lambda args, kwargs: read("read_text", args, kwargs),
}
"""The functions that every script has, but `show`, which knows a limit."""


def _only(name: str, args: Arguments, kwargs: Mapping[str, Any]) -> Any:
    given = [*args, *kwargs.values()]
    if len(given) != 1:
        raise TypeError(f"{name}() takes 1 argument but {len(given)} were given")
    return given[0]


def sleep(args: Arguments) -> Asked:
    """Ask for an answer after so many seconds."""
    seconds = args[0] if args else 0
    if not is_finite(seconds):
        raise TypeError("a sleep needs a number of seconds")
    return Asked([min(float(seconds), _LONGEST_SLEEP)], {})


def does_await(code: str) -> bool:
    """Whether a script says `await` anywhere: then it waits for its calls itself, and they can run at the same time."""
    try:
        tokens = tokenize.generate_tokens(io.StringIO(code).readline)
        return any(token.type == tokenize.NAME and token.string == "await" for token in tokens)
    except (tokenize.TokenError, SyntaxError):  # the sandbox says what is wrong with it
        return False
