"""Bringing an upstream up to another version of its entry, with its user's own changes kept.

Three versions are compared: what the old entry would write, what the new one would, and what stands in the
configuration. What only one side has changed is taken from it. Answers are unknown here, so in the first two versions
each is the same mark, and what the user gave counts as a change of theirs.
"""

from collections.abc import Iterable, Mapping, Sequence
from difflib import SequenceMatcher
from typing import Any, NamedTuple

from gateway.core.model.json_values import as_list, as_object, is_list, is_object

_TABLES = ("env", "headers")
_MARK = "\x00"


class Merged(NamedTuple):
    """The new table, and the keys that were changed on both sides: there, the user's own version stays."""

    upstream: dict[str, Any]
    conflicts: tuple[str, ...]


def marks(names: Iterable[str]) -> dict[str, Sequence[str]]:
    """Return a mark for the answer to each question, the same in all versions of an entry."""
    return {name: (f"{_MARK}{name}{_MARK}",) for name in names}


def merge(old: Mapping[str, Any], new: Mapping[str, Any], mine: Mapping[str, Any]) -> Merged:
    """Return `mine` with what `new` changes in `old`."""
    merged, conflicts = dict(mine), list[str]()
    for key in dict.fromkeys([*old, *new]):
        if key == "args":
            given = [as_list(one.get(key)) for one in (old, new, mine)]
            words, fits = _merged_words(*given)
            merged |= {key: words} if words or key in mine else {}
            conflicts += [] if fits else [key]
        elif key in _TABLES:
            table = dict(as_object(mine.get(key)))
            _merge_values(f"{key}.", as_object(old.get(key)), as_object(new.get(key)), table, conflicts)
            merged |= {key: table} if table or key in mine else {}
        else:
            _merge_values("", _only(old, key), _only(new, key), merged, conflicts)
    return Merged(merged, tuple(conflicts))


def _only(table: Mapping[str, Any], key: str) -> Mapping[str, Any]:
    return {key: table[key]} if key in table else {}


def _merge_values(
    where: str, old: Mapping[str, Any], new: Mapping[str, Any], mine: dict[str, Any], conflicts: list[str]
) -> None:
    """Take over the changes of values, unless the user has changed them too."""
    for key in dict.fromkeys([*old, *new]):
        before, after, own = old.get(key), new.get(key), mine.get(key)
        if after in (before, own):
            continue
        if after is None and (own == before or _has_mark(before)):
            mine.pop(key, None)
        elif own == before and not _has_mark(after):
            mine[key] = after
        else:
            conflicts.append(f"{where}{key}")


def _merged_words(old: Sequence[Any], new: Sequence[Any], mine: Sequence[Any]) -> tuple[list[Any], bool]:
    """Return the user's words with the changes between two versions, and whether each had its place."""
    places = _places(old, mine)
    words, fits = list(mine), True
    changes = SequenceMatcher(None, old, new, autojunk=False).get_opcodes()
    for kind, start, end, begin, stop in reversed(changes):
        if kind == "equal":
            continue
        at = _place(start, end, places, len(old), len(mine))
        is_own = any(mine[places[one]] != old[one] for one in range(start, end) if one in places and _fixed(old[one]))
        if at is None or is_own or any(map(_has_mark, new[begin:stop])):
            fits = False
        else:
            words[at[0] : at[1]] = new[begin:stop]
    return words, fits


def _place(start: int, end: int, places: Mapping[int, int], before: int, now: int) -> tuple[int, int] | None:
    """Return where the words between two places are now; None if that is unknown."""
    if start < end:
        if any(place not in places for place in range(start, end)):
            return None
        first, last = places[start], places[end - 1] + 1
        return (first, last) if last - first == end - start else None
    at = places[start - 1] + 1 if start - 1 in places else places.get(start, now if before == 0 else None)
    return None if at is None else (at, at)


def _places(old: Sequence[Any], mine: Sequence[Any]) -> dict[int, int]:
    """Return where each word of the old version is now: the same word, or the answer in its place."""
    places: dict[int, int] = {}
    for kind, start, end, begin, stop in SequenceMatcher(None, old, mine, autojunk=False).get_opcodes():
        if kind == "equal" or (kind == "replace" and end - start == stop - begin):
            places |= {start + step: begin + step for step in range(end - start)}
    return places


def _fixed(word: object) -> bool:
    return not _has_mark(word)


def _has_mark(value: object) -> bool:
    if is_object(value):
        return any(map(_has_mark, value.values()))
    if is_list(value):
        return any(map(_has_mark, value))
    return isinstance(value, str) and _MARK in value
