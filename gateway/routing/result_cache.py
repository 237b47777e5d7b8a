"""Results of read-only tools, kept for equal calls of the same principal.

Only tools that the configuration names and that declare `readOnlyHint` are asked from here. An equal call that runs
already is waited for. Whatever an upstream announces, and any call of a tool that may change something, forgets all
that is kept of it.
"""

import time
from collections import Counter, OrderedDict
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Any

import anyio

from gateway.config.result_cache_settings import ResultCacheSettings
from gateway.core.model.caller import Caller
from gateway.core.model.canonical_json import digest_of_json
from gateway.core.model.json_values import as_object
from gateway.core.tools.catalogue import Route
from gateway.core.tools.catalogue.hints import lifetime
from gateway.errors import UpstreamError
from gateway.routing.around_upstream import AroundUpstream
from gateway.routing.ports import UpstreamPort
from gateway.routing.result_sizes import size_in_thread
from gateway.telemetry.calls import CallRecord
from gateway.upstream import RequestContext
from gateway.upstream.bridging.bridge import BridgedUpstream
from gateway.upstream.connection.deadlines import CallLimits
from gateway.upstream.connection.owners import owner_of

META_KEY = "mcp-gateway/cache"
"""The key in the `_meta` of a result from the cache: `{"key", "ageMs", "ttlMs"}`."""

_RETRY = ("inputResponses", "requestState")


@dataclass
class _Kept:
    """A result, when it came and how long it is kept, in seconds, and about the bytes that it takes in memory."""

    result: dict[str, Any]
    upstream: str
    principal: str
    since: float
    lasts: float
    size: int


class _Flight:
    """A call that runs, for all that ask the same meanwhile."""

    def __init__(self) -> None:
        self.ended = anyio.Event()
        self.result: dict[str, Any] | None = None
        self.error: UpstreamError | None = None


class ResultCache:
    """The results of all upstreams. Nothing is kept on disk."""

    def __init__(
        self, settings: ResultCacheSettings | None = None, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._settings = settings or ResultCacheSettings()
        self._clock = clock
        self._kept: OrderedDict[str, _Kept] = OrderedDict()
        self._sizes: Counter[str] = Counter()
        self._generations: Counter[str] = Counter()
        self._flights: dict[str, _Flight] = {}

    def __len__(self) -> int:
        return len(self._kept)

    @property
    def size(self) -> int:
        """The size of all results together, in bytes of memory, approximately."""
        return self._sizes.total()

    def reconfigure(self, settings: ResultCacheSettings) -> None:
        """Apply changed settings, and forget everything: any setting may change what a call returns."""
        self._settings = settings
        for upstream in {kept.upstream for kept in self._kept.values()}:
            self.forget(upstream)

    def forget(self, upstream: str) -> None:
        """Forget the results of an upstream; those of calls that are running are not kept either."""
        self._generations[upstream] += 1
        for key in [key for key, kept in self._kept.items() if kept.upstream == upstream]:
            self._drop(key)

    def around(
        self, wrapped: BridgedUpstream, upstream: UpstreamPort, route: Route, caller: Caller, record: CallRecord
    ) -> BridgedUpstream:
        """Return what to ask for a call: the upstream itself, or one that may answer from the cache."""
        tools = upstream.settings.tools
        if not tools.cache:
            return wrapped
        if not _is_read_only(upstream, route.tool, caller):
            return _Changing(wrapped, self)
        is_cached = any(fnmatchcase(route.tool, glob) for glob in tools.cache)
        return _Cached(wrapped, self, record, tools.cache_ttl) if is_cached else wrapped

    def find(self, key: str) -> dict[str, Any] | None:
        """Return a kept result, with its age in `_meta`; None if there is none, or it is too old."""
        kept = self._kept.get(key)
        if kept is None:
            return None
        age = self._clock() - kept.since
        if age >= kept.lasts:
            self._drop(key)
            return None
        self._kept.move_to_end(key)
        said = {"key": key, "ageMs": round(age * 1_000), "ttlMs": round((kept.lasts - age) * 1_000)}
        return {**kept.result, "_meta": {**as_object(kept.result.get("_meta")), META_KEY: said}}

    def generation(self, upstream: str) -> int:
        """Return a number that changes whenever the results of an upstream are forgotten."""
        return self._generations[upstream]

    async def keep(
        self, key: str, result: dict[str, Any], upstream: str, principal: str, ttl: float, generation: int
    ) -> None:
        """Keep a result, if it is one that may be kept, and nothing was forgotten since the call began."""
        lasts = _lasts(result, ttl)
        if lasts <= 0:
            return
        size = (await size_in_thread(result)).memory
        if size > self._settings.max_result_bytes or generation != self._generations[upstream]:
            return
        self._drop(key)
        self._kept[key] = _Kept(result, upstream, principal, self._clock(), lasts, size)
        self._sizes[principal] += size
        while self._sizes.total() > self._settings.max_bytes:
            largest = self._sizes.most_common(1)[0][0]
            self._drop(next(key for key, kept in self._kept.items() if kept.principal == largest))

    def flight(self, key: str) -> tuple[_Flight, bool]:
        """Return the running call with this key, and whether it is the caller's own, which it has to end (`land`)."""
        if (running := self._flights.get(key)) is not None:
            return running, False
        own = self._flights[key] = _Flight()
        return own, True

    def land(self, key: str, flight: _Flight) -> None:
        """End a running call."""
        self._flights.pop(key, None)
        flight.ended.set()

    def _drop(self, key: str) -> None:
        if (kept := self._kept.pop(key, None)) is not None:
            self._sizes[kept.principal] -= kept.size
            if self._sizes[kept.principal] <= 0:
                del self._sizes[kept.principal]


class _Changing(AroundUpstream):
    """An upstream for a call that may change what others return."""

    def __init__(self, upstream: BridgedUpstream, cache: ResultCache) -> None:
        super().__init__(upstream)
        self._cache = cache

    async def request(
        self, method: str, params: Mapping[str, Any], context: RequestContext, timeout: CallLimits | None = None
    ) -> dict[str, Any]:
        """Ask the upstream, and forget its results before and after."""
        self._cache.forget(self.name)
        try:
            return await self._upstream.request(method, params, context, timeout)
        finally:
            self._cache.forget(self.name)


class _Cached(AroundUpstream):
    """An upstream for a call whose result may be known."""

    def __init__(self, upstream: BridgedUpstream, cache: ResultCache, record: CallRecord, ttl: float) -> None:
        super().__init__(upstream)
        self._cache = cache
        self._record = record
        self._ttl = ttl

    async def request(
        self, method: str, params: Mapping[str, Any], context: RequestContext, timeout: CallLimits | None = None
    ) -> dict[str, Any]:
        """Return the result that is kept for an equal call, or ask the upstream.

        Raises what the upstream raises, also for a call that another equal one has waited for.
        """
        if any(key in params for key in _RETRY) or context.outputs:
            return await self._upstream.request(method, params, context, timeout)
        key = self._key(params, context.caller)
        while True:
            if (found := self._cache.find(key)) is not None:
                return self._hit(found, context)
            flight, is_own = self._cache.flight(key)
            if is_own:
                return await self._asked(key, flight, method, params, context, timeout)
            await flight.ended.wait()
            if flight.error is not None:
                raise flight.error.with_traceback(None)
            if flight.result is not None and self._cache.find(key) is None:
                # It is not one to be kept: each caller gets its own.
                return await self._upstream.request(method, params, context, timeout)

    async def _asked(
        self,
        key: str,
        flight: _Flight,
        method: str,
        params: Mapping[str, Any],
        context: RequestContext,
        timeout: CallLimits | None,
    ) -> dict[str, Any]:
        generation = self._cache.generation(self.name)
        try:
            result = await self._upstream.request(method, params, context, timeout)
            flight.result = result
            await self._cache.keep(key, result, self.name, context.caller.principal, self._ttl, generation)
        except UpstreamError as error:
            flight.error = error
            raise
        finally:  # if it was cancelled, one of those that wait asks in its place
            self._cache.land(key, flight)
        return result

    def _hit(self, result: dict[str, Any], context: RequestContext) -> dict[str, Any]:
        self._record.from_cache = True
        context.audit.answered_from_cache()
        return result

    def _key(self, params: Mapping[str, Any], caller: Caller) -> str:
        """Return what the result depends on: content in the arguments is there already, in place of its handles."""
        rule = self.settings.session
        state = "" if rule is None else owner_of(rule, caller)  # said so, the state there belongs to them
        asked = {key: value for key, value in params.items() if key != "_meta"}
        return digest_of_json([caller.principal, state, caller.is_modern, self.name, asked])


def _is_read_only(upstream: UpstreamPort, tool: str, caller: Caller) -> bool:
    declared = (as_object(each) for each in upstream.lists_for(caller).tools)
    found = next((each for each in declared if each.get("name") == tool), None)
    return found is not None and as_object(found.get("annotations")).get("readOnlyHint") is True


def _lasts(result: Mapping[str, Any], ttl: float) -> float:
    """Return the seconds for which a result may be kept: at most `ttl`, less if it says so; 0: not at all."""
    if result.get("isError") is True or result.get("resultType", "complete") != "complete":
        return 0.0
    said = lifetime(result.get("ttlMs"))
    return ttl if said is None else min(ttl, said / 1_000)
