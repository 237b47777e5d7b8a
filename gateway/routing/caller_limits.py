"""How much each principal, and each token with limits of its own, may ask for: calls, bytes, tokens of images.

Everything is counted in memory, so a restart forgets it. Replicas of one gateway also count together (`SharedUse`).
"""

import time
from collections import OrderedDict, deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any, NamedTuple

from anyio import to_thread

from gateway.core.fact_words import counted, size_words
from gateway.core.model.caller import Caller
from gateway.core.model.grant import UNLIMITED, Quota
from gateway.core.model.json_size import MANY_VALUES, size_of
from gateway.errors import StateUnavailable, TooManyCalls
from gateway.routing.replica_port import Exceeded, SharedLimit, SharedUse

COUNTED = frozenset({"tools/call", "resources/read", "prompts/get", "tasks/get"})
"""The requests whose results are counted; of these, `tools/call` is a call."""

_MINUTE = 60.0
_DAY = 86_400
_REMEMBERED = 10_000
"""Maximum number of principals and tokens whose use is remembered; those that have not asked for longest are forgotten.

Whoever sends names of principals has been let in by a token, so nobody can make others be forgotten at will.
"""


class Window:
    """The moments within the last minute at which something happened."""

    def __init__(self) -> None:
        self._moments: deque[float] = deque()

    def wait(self, limit: int, now: float) -> float:
        """Return the seconds until it may happen again, if it may happen `limit` times a minute; 0: now."""
        while self._moments and self._moments[0] <= now - _MINUTE:
            self._moments.popleft()
        # The limit may have been lowered, so that more than one moment has to be forgotten first.
        over = len(self._moments) - limit
        return self._moments[over] + _MINUTE - now if over >= 0 else 0.0

    def add(self, now: float) -> None:
        """Count one more."""
        self._moments.append(now)


@dataclass
class _Use:
    """The use of one principal or token: calls within a minute, running calls, and what the day has cost."""

    window: Window = field(default_factory=Window)
    running: int = 0
    day: int = 0
    calls: int = 0
    bytes: int = 0
    pictures: int = 0
    """Tokens of images."""

    def on(self, day: int) -> "_Use":
        if self.day != day:
            self.day, self.calls, self.bytes, self.pictures = day, 0, 0, 0
        return self


class _Limit(NamedTuple):
    """A limit, the use that it is for, and whose that is."""

    most: int
    use: _Use
    who: tuple[str, str]


class CallerLimits:
    """Counts the requests of each caller against `quota`, which is for each principal, and against its token's own.

    A limit of the token's own replaces that for the principal, and is counted for the token alone.
    """

    def __init__(
        self,
        quota: Quota = UNLIMITED,
        clock: Callable[[], float] = time.monotonic,
        since_1970: Callable[[], float] = time.time,
    ) -> None:
        self.quota = quota
        self._clock = clock
        self._since_1970 = since_1970
        self._uses: OrderedDict[tuple[str, str], _Use] = OrderedDict()

    def begin(self, method: str, caller: Caller, *, is_wait: bool = False) -> "CountedRequest":
        """Count a request, to be entered while it runs. `is_wait`: it waits for a call that is counted already.

        Raises:
            TooManyCalls: it is one too many; it is not counted.
        """
        own = caller.grant.own_quota
        if method not in COUNTED or (own == UNLIMITED and self.quota == UNLIMITED):
            return _NOT_COUNTED
        limits = {kind: limit for kind in Quota._fields if (limit := self._limit(kind, caller, own)) is not None}
        if is_wait:
            limits.pop("calls_at_once", None)
        if (limit := limits.get("bytes_per_day")) is not None and limit.use.bytes >= limit.most:
            what = f"only results of {size_words(limit.most)} a day are allowed"
            raise _spent(what, self._until_tomorrow())
        if (limit := limits.get("picture_tokens_per_day")) is not None and limit.use.pictures >= limit.most:
            what = f"only images of {counted(limit.most, 'token')} a day are allowed"
            raise _spent(what, self._until_tomorrow())
        if method != "tools/call":
            return CountedRequest(limits, is_call=False)
        self._count_call(limits)
        return CountedRequest(limits, is_call=True)

    def _count_call(self, limits: Mapping[str, _Limit]) -> None:
        now = self._clock()
        at_once, in_minute, in_day = (limits.get(f"calls_{kind}") for kind in ("at_once", "per_minute", "per_day"))
        if at_once is not None and at_once.use.running >= at_once.most:
            what = _only(at_once.most, "at once")
            raise TooManyCalls(what, remedy="try again when one of those running has ended")
        if in_minute is not None and (seconds := in_minute.use.window.wait(in_minute.most, now)):
            raise _spent(_only(in_minute.most, "a minute"), seconds)
        if in_day is not None and in_day.use.calls >= in_day.most:
            raise _spent(_only(in_day.most, "a day"), self._until_tomorrow())
        if in_minute is not None:
            in_minute.use.window.add(now)
        if in_day is not None:
            in_day.use.calls += 1

    def _limit(self, kind: str, caller: Caller, own: Quota) -> _Limit | None:
        if (most := getattr(own, kind)) is not None:
            # Tokens and those who come without one, such as people, have names that may be the same.
            who = ("own", caller.principal) if caller.token is None else ("token", caller.token)
            return _Limit(most, self._use(who), who)
        if (most := getattr(self.quota, kind)) is not None:
            who = ("principal", caller.principal)
            return _Limit(most, self._use(who), who)
        return None

    def _use(self, key: tuple[str, str]) -> _Use:
        use = self._uses.setdefault(key, _Use())
        self._uses.move_to_end(key)
        if len(self._uses) > _REMEMBERED:
            self._uses.popitem(last=False)
        return use.on(int(self._since_1970() // _DAY))

    def _until_tomorrow(self) -> float:
        return _DAY - self._since_1970() % _DAY


class CountedRequest:
    """A request while it runs: enter it, and give it the result."""

    def __init__(self, limits: Mapping[str, _Limit], *, is_call: bool) -> None:
        self._limits = limits
        self._is_call = is_call
        self._shared: SharedUse | None = None
        self._at_once = limits.get("calls_at_once") if is_call else None
        self._bytes = limits.get("bytes_per_day")
        self._pictures = limits.get("picture_tokens_per_day")

    async def shared(self, use: SharedUse) -> "CountedRequest":
        """Count the request with those at other replicas, and return it. While they cannot be asked, it is enough here.

        Raises:
            TooManyCalls: it is one too many.
        """
        kinds = [kind for kind in self._limits if kind != "requests_per_minute"]
        if not self._is_call:
            kinds = [kind for kind in kinds if not kind.startswith("calls_")]
        if not kinds:
            return self
        try:
            exceeded = await use.begin([self._as_shared(kind) for kind in kinds])
        except StateUnavailable:
            return self
        if exceeded is not None:
            raise _exceeded(exceeded)
        self._shared = use
        return self

    def _as_shared(self, kind: str) -> SharedLimit:
        limit = self._limits[kind]
        return SharedLimit(kind, limit.most, limit.who)

    def _add(self, kind: str, amount: int) -> None:
        if self._shared is not None and kind in self._limits:
            self._shared.add(self._as_shared(kind), amount)

    def __enter__(self) -> "CountedRequest":
        if self._at_once is not None:
            self._at_once.use.running += 1
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._at_once is not None:
            self._at_once.use.running -= 1
            self._add("calls_at_once", -1)

    def keep_place(self) -> Callable[[], None]:
        """Count a call as running although its request is answered, until the function that this returns is called."""
        if (at_once := self._at_once) is None:
            return lambda: None
        at_once.use.running += 1
        self._add("calls_at_once", 1)

        def release() -> None:
            at_once.use.running -= 1
            self._add("calls_at_once", -1)

        return release

    async def returned(
        self, result: Mapping[str, Any], picture_tokens: Callable[[Mapping[str, Any]], int] = lambda _: 0
    ) -> None:
        """Count the result's size, and the tokens of its images if they are limited: `picture_tokens` returns them."""
        if self._pictures is not None:
            pictures = picture_tokens(result)
            self._pictures.use.pictures += pictures
            self._add("picture_tokens_per_day", pictures)
        if self._bytes is None:
            return
        size = size_of(result, most_values=MANY_VALUES)
        if not size.is_whole:
            size = await to_thread.run_sync(size_of, result)
        self._bytes.use.bytes += size.characters
        self._add("bytes_per_day", size.characters)


_NOT_COUNTED = CountedRequest({}, is_call=False)


def _exceeded(exceeded: Exceeded) -> TooManyCalls:
    kind, most, _ = exceeded.limit
    match kind:
        case "calls_at_once":
            return TooManyCalls(_only(most, "at once"), remedy="try again when one of those running has ended")
        case "calls_per_minute":
            return _spent(_only(most, "a minute"), exceeded.seconds)
        case "calls_per_day":
            return _spent(_only(most, "a day"), exceeded.seconds)
        case "bytes_per_day":
            return _spent(f"only results of {size_words(most)} a day are allowed", exceeded.seconds)
        case _:
            return _spent(f"only images of {counted(most, 'token')} a day are allowed", exceeded.seconds)


def _only(most: int, when: str) -> str:
    return f"only {counted(most, 'tool call')} {when} {'is' if most == 1 else 'are'} allowed"


def _spent(what: str, seconds: float) -> TooManyCalls:
    return TooManyCalls(what, remedy=f"try again in {_words(seconds)}")


def _words(seconds: float) -> str:
    """Format a wait, rounded to whole units: `40 s`, `5 min`, `7 h`. Never zero."""
    for unit, length in (("h", 3_600), ("min", 60)):
        if seconds >= 2 * length:
            return f"{-(-seconds // length):.0f} {unit}"
    return f"{max(1, round(seconds))} s"
