"""Find the recorded exchange that answers a request. Pure: nothing is read here."""

import difflib
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Literal

from gateway.config.secrets import HIDDEN
from gateway.core.fact_words import plain
from gateway.core.model.canonical_json import canonical_json
from gateway.core.model.json_values import as_object, is_list, is_object
from gateway.upstream.recording.content_files import forget, with_files
from gateway.upstream.recording.lines import LISTS, OPENING, Exchange
from gateway.upstream.recording.read_recording import RecordedUpstream

Match = Literal["strict", "nearest"]

_COMPARED = 2_000
"""Characters of params that are compared to find the nearest ones."""
_MOST_COMPARED = 500
"""Exchanges among which the nearest is looked for."""
_NAMED = 10
_SHOWN = 300

_BY_ARGUMENTS = frozenset({"tools/call", "prompts/get", "completion/complete"})
"""Requests of which the nearest may be answered. Another resource is not near."""


class NotRecorded(Exception):
    """There is no such exchange; the message says what there is, and what to do."""


class ReplayedConnection:
    """A connection to a recorded upstream, which begins at the beginning of the recording.

    Lists are those that a host with the same capabilities was last given, or else any host. Equal requests are answered
    in the order in which they were recorded; when there are no more, with the last.
    """

    def __init__(self, upstream: RecordedUpstream, capabilities: Mapping[str, Any], match: Match = "strict") -> None:
        self._upstream = upstream
        self._match = match
        self._given: dict[int, int] = {}
        """How many of equal exchanges were answered, by the place of the first."""
        opened = [one.connection for one in upstream.exchanges if one.method in OPENING and one.result is not None]
        same = [one for one in opened if upstream.connections[one].capabilities == capabilities]
        self._number = next(reversed(same or opened), None)

    @property
    def transport(self) -> str:
        """The transport of the connection that was recorded."""
        return "stdio" if self._number is None else self._upstream.connections[self._number].transport

    @property
    def failure(self) -> Exchange | None:
        """The last failure to connect, if no connection was ever opened."""
        if self._number is not None:
            return None
        failed = (one for one in reversed(self._upstream.exchanges) if one.failure is not None)
        return next(failed, None)

    def find(self, method: str, params: Mapping[str, Any]) -> Exchange:
        """Return the exchange that answers a request. Raises NotRecorded."""
        wanted = with_files({key: value for key, value in params.items() if key != "_meta"}, forget)
        if method in OPENING:
            return self._last(method, [one for one in self._of(method) if one.result is not None])
        if method in LISTS:
            cursor = wanted.get("cursor")
            return self._last(method, [one for one in self._of(method) if one.params.get("cursor") == cursor])
        name = wanted.get("name", wanted.get("uri"))
        among = [(place, one) for place, one in self._placed(method) if one.name == name]
        equal = [(place, one) for place, one in among if fits(one.params, wanted)]
        if not equal and among:
            nearest = _nearest([one for _, one in among], wanted)
            if self._match == "strict" or method not in _BY_ARGUMENTS:
                raise NotRecorded(_unlike(method, name, nearest))
            equal = [(place, one) for place, one in among if fits(one.params, nearest.params)]
        if not equal:
            raise NotRecorded(self._unknown(method, name))
        first = equal[0][0]
        number = self._given.get(first, 0)
        self._given[first] = number + 1
        return equal[min(number, len(equal) - 1)][1]

    def _placed(self, method: str) -> Iterator[tuple[int, Exchange]]:
        return ((place, one) for place, one in enumerate(self._upstream.exchanges) if one.method == method)

    def _of(self, method: str) -> list[Exchange]:
        return [one for _, one in self._placed(method)]

    def _last(self, method: str, found: Sequence[Exchange]) -> Exchange:
        """Return the last of some exchanges: with a result if there is one, and of the same connection if possible."""
        for some in (
            [one for one in found if one.connection == self._number and one.result is not None],
            [one for one in found if one.result is not None],
            found,
        ):
            if some:
                return some[-1]
        raise NotRecorded(f"the recording has no {method}")

    def _unknown(self, method: str, name: Any) -> str:
        names = dict.fromkeys(one.name for one in self._of(method) if one.name is not None)
        shown = ", ".join(plain(one, 80) for one in list(names)[:_NAMED])
        there = f"; it has {shown}{', ...' if len(names) > _NAMED else ''}" if names else ""
        of = f" of {plain(name, 100)!r}" if isinstance(name, str) else ""
        return f"the recording has no {method}{of}{there}"


def fits(recorded: Any, given: Any) -> bool:
    """Whether a value is the recorded one. Where a secret was recorded, any value is."""
    if recorded == HIDDEN:
        return True
    if is_object(recorded) and is_object(given):
        return recorded.keys() == given.keys() and all(fits(item, given[key]) for key, item in recorded.items())
    if is_list(recorded) and is_list(given):
        return len(recorded) == len(given) and all(map(fits, recorded, given))
    if isinstance(recorded, str) and isinstance(given, str) and HIDDEN in recorded:
        return _fits_around_secrets(recorded.split(HIDDEN), given)
    return type(recorded) is type(given) and recorded == given


def _fits_around_secrets(parts: Sequence[str], given: str) -> bool:
    """Whether a text has the parts of a recorded one in their order, with anything between them."""
    first, *middle, last = parts
    if len(given) < len(first) + len(last) or not (given.startswith(first) and given.endswith(last)):
        return False
    at, end = len(first), len(given) - len(last)
    for part in middle:
        if (at := given.find(part, at, end)) < 0:
            return False
        at += len(part)
    return True


def _nearest(among: Sequence[Exchange], wanted: Mapping[str, Any]) -> Exchange:
    """Return the exchange with the most equal arguments, and of those the one with the most similar text."""
    text = _text(wanted)

    def score(one: Exchange) -> tuple[int, float]:
        theirs, ours = as_object(one.params.get("arguments")), as_object(wanted.get("arguments"))
        equal = sum(key in theirs and fits(theirs[key], value) for key, value in ours.items())
        return equal, difflib.SequenceMatcher(None, _text(one.params), text, autojunk=False).quick_ratio()

    return max(among[:_MOST_COMPARED], key=score)


def _text(params: Mapping[str, Any]) -> str:
    return canonical_json(params).decode("ascii")[:_COMPARED]


def _unlike(method: str, name: Any, nearest: Exchange) -> str:
    shown = plain(canonical_json(nearest.params.get("arguments", nearest.params)).decode("ascii"), _SHOWN)
    return (
        f"the recording has no {method} of {plain(str(name), 100)!r} with these arguments; the nearest that it has is "
        f"{shown} (record this call, or replay with --replay-match nearest)"
    )
