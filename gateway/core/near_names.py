"""Names similar to an unknown one, and what to say of it: the one way in which every message suggests names."""

from collections.abc import Collection, Mapping
from difflib import get_close_matches
from itertools import islice

_LEAST = 3
"""Minimum characters for a name to count as a part of others: shorter ones are in nearly every name."""
_MOST = 3
_LOOKED_AT = 200
_COMPARED = 500
"""Names that are compared letter by letter: a server may list thousands, and each comparison takes quadratic time."""
_FEW = 8
"""As many names are listed even beside a suggestion."""
_LISTED = 60


def near_names(given: str, names: Collection[str]) -> tuple[str, ...]:
    """Return at most three names that contain `given`, ignoring case, or else the most similar one.

    Whole words come before parts of them, and beginnings before the rest: `copilot-cli`, then `vscode-copilot`.
    """
    part = given[:_LOOKED_AT].casefold()
    if len(part) >= _LEAST and (found := [name for name in names if part in name.casefold()]):
        return tuple(sorted(found, key=lambda name: _distance(part, name.casefold()))[:_MOST])
    return _most_similar(given, names, 1)


def did_you_mean(given: str, names: Collection[str]) -> str | None:
    """Return a question that suggests similar names; None if there are none."""
    near = [repr(name) for name in near_names(given, names)]
    if not near:
        return None
    return f"did you mean {', '.join(near[:-1])}{' or ' if near[1:] else ''}{near[-1]}?"


def which_name(given: str, names: Collection[str], *, none: str = "there are none") -> str:
    """Return the remedy for an unknown name: similar ones, and all that there are unless those are many.

    `none`: what to say if there are no names at all.
    """
    if not names:
        return none
    asked = did_you_mean(given, names)
    if asked is not None and len(names) > _FEW:
        return asked
    more = len(names) - _LISTED
    listed = ", ".join(islice(names, _LISTED)) + (f" and {more:,} more" if more > 0 else "")
    return f"{asked} there are: {listed}" if asked is not None and len(names) > 1 else asked or f"there are: {listed}"


def nearest_words(given: str, names: Collection[str], short: Mapping[str, str] | None = None) -> str:
    """Return the end of a sentence that names up to three similar names; empty if there are none.

    If none is similar, the short names of `names` are compared.
    """
    near = _most_similar(given, names, _MOST)
    if not near and short:
        similar = _most_similar(given, tuple(dict.fromkeys(short.values())), _MOST)
        near = tuple(islice((name for one in similar for name in names if short[name] == one), _MOST))
    return f"; the nearest: {', '.join(map(repr, near))}" if near else ""


def _most_similar(given: str, names: Collection[str], most: int) -> tuple[str, ...]:
    return tuple(get_close_matches(given[:_LOOKED_AT], list(islice(names, _COMPARED)), n=most))


def _distance(part: str, name: str) -> tuple[bool, bool, str]:
    is_word = f"-{part}-" in f"-{name}-"
    return not is_word, not name.startswith(part), name
