"""Finding known names that are similar to an unknown one."""

from collections.abc import Collection
from difflib import get_close_matches

_LEAST = 3
"""Minimum characters for a name to count as a part of others: shorter ones are in nearly every name."""
_MOST = 3
_LOOKED_AT = 200


def near_names(given: str, names: Collection[str]) -> tuple[str, ...]:
    """Return at most three names that contain `given`, ignoring case, or else the most similar one.

    Whole words come before parts of them, and beginnings before the rest: `copilot-cli`, then `vscode-copilot`.
    """
    part = given[:_LOOKED_AT].casefold()
    if len(part) >= _LEAST and (found := [name for name in names if part in name.casefold()]):
        return tuple(sorted(found, key=lambda name: _distance(part, name.casefold()))[:_MOST])
    return tuple(get_close_matches(given[:_LOOKED_AT], names, n=1))


def did_you_mean(given: str, names: Collection[str]) -> str | None:
    """Return a question that suggests similar names; None if there are none."""
    near = [repr(name) for name in near_names(given, names)]
    if not near:
        return None
    return f"did you mean {', '.join(near[:-1])}{' or ' if near[1:] else ''}{near[-1]}?"


def _distance(part: str, name: str) -> tuple[bool, bool, str]:
    is_word = f"-{part}-" in f"-{name}-"
    return not is_word, not name.startswith(part), name
