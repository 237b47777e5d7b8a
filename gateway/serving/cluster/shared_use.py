"""What callers have used of their limits at all replicas together, counted in Redis."""

import json
import secrets
from collections import Counter
from collections.abc import Callable, Sequence
from typing import cast

from gateway.routing.replica_port import AT_ONCE, Exceeded, SharedLimit
from gateway.serving.cluster.keys import use_key
from gateway.serving.cluster.soon import Soon
from gateway.serving.databases.shared_records import SharedRecords

_COUNT = """
local now = redis.call('TIME')
local seconds = now[1] + now[2] / 1000000
local by_minute = {calls_per_minute = true, requests_per_minute = true, registrations_per_minute = true}
local limits, living = cjson.decode(ARGV[1]), cjson.decode(ARGV[2])
local left_of_day = 86400 - seconds % 86400
local function running_at(key, replica)
  local number, at = string.match(redis.call('HGET', key, replica) or '', '^(%d+)@(%d+)$')
  return number and seconds - at < tonumber(ARGV[5]) and tonumber(number) or 0
end
for place, limit in ipairs(limits) do
  local key, most = KEYS[place], limit.most
  if by_minute[limit.kind] then
    redis.call('ZREMRANGEBYSCORE', key, '-inf', seconds - 60)
    local over = redis.call('ZCARD', key) - most
    if over >= 0 then
      local oldest = redis.call('ZRANGE', key, over, over, 'WITHSCORES')
      return {place, tostring(oldest[2] + 60 - seconds)}
    end
  elseif limit.kind == 'calls_at_once' then
    local running = limit.own
    for _, replica in ipairs(living) do running = running + running_at(key, replica) end
    if running > most then return {place, '1'} end
  else
    local used = tonumber(redis.call('HGET', key, tostring(math.floor(seconds / 86400)))) or 0
    if used >= most then return {place, tostring(left_of_day)} end
  end
end
for place, limit in ipairs(limits) do
  local key = KEYS[place]
  if by_minute[limit.kind] then
    redis.call('ZADD', key, seconds, ARGV[3])
    redis.call('EXPIRE', key, 120)
  elseif limit.kind == 'calls_at_once' then
    local most_yet = math.max(limit.own, running_at(key, ARGV[4]))
    redis.call('HSET', key, ARGV[4], most_yet .. '@' .. now[1])
    redis.call('EXPIRE', key, 86400)
  elseif limit.kind == 'calls_per_day' then
    redis.call('HINCRBY', key, tostring(math.floor(seconds / 86400)), 1)
    redis.call('EXPIRE', key, 172800)
  end
end
return {0, '0'}
"""
"""Counts one call against all limits, or none.

ARGV are the limits, the other replicas, an id of the call, this replica, and the seconds for which holds what a replica
says of the calls that it runs. One that is gone runs none, whatever it has said.
"""

_RUNNING = """
redis.call('HSET', KEYS[1], ARGV[1], ARGV[2] .. '@' .. redis.call('TIME')[1])
redis.call('EXPIRE', KEYS[1], 86400)
"""
"""Says how many calls a replica runs."""

_ADD = """
local today = tostring(math.floor(redis.call('TIME')[1] / 86400))
redis.call('HINCRBY', KEYS[1], today, ARGV[1])
redis.call('EXPIRE', KEYS[1], 172800)
"""
"""Counts more of what is counted by the day, in UTC."""


class RedisUse:
    """Counts in Redis (`gateway.routing.replica_port.SharedUse`). `living` returns the ids of the other replicas.

    Of running calls, each replica says how many it has, which holds for `lease` seconds: so what could not be said
    while Redis was away is neither counted twice nor for ever.
    """

    def __init__(
        self, connection: SharedRecords, soon: Soon, own: str, living: Callable[[], Sequence[str]], lease: float
    ) -> None:
        self._connection = connection
        self._soon = soon
        self._own = own
        self._living = living
        self._lease = lease
        self._running: Counter[str] = Counter()
        """How many calls run here, by the key of the limit that they count for."""

    async def begin(self, limits: Sequence[SharedLimit]) -> Exceeded | None:
        """Count a call (`SharedUse.begin`)."""
        keys = [use_key(*one.who, one.kind) for one in limits]
        places = [key for key, one in zip(keys, limits, strict=True) if one.kind == AT_ONCE]
        self._running.update(places)  # before it is asked, since others begin meanwhile
        is_begun = False
        try:
            exceeded = await self._counted(limits, keys)
            is_begun = exceeded is None
        finally:
            if not is_begun:
                self._less(places)
        return exceeded

    def add(self, limit: SharedLimit, amount: int) -> None:
        """Count more, soon (`SharedUse.add`)."""
        key = use_key(*limit.who, limit.kind)
        if limit.kind != AT_ONCE:
            self._soon.write(lambda pipe: pipe.eval(_ADD, 1, key, amount))
            return
        self._running[key] += amount
        self._say(key)
        self._less([])

    async def repeated(self, what: tuple[str, str], seconds: float) -> int:
        """Count that something has happened again (`SharedUse.repeated`)."""
        key = use_key(*what, "repeated")
        async with self._connection.reached() as redis, redis.pipeline(transaction=True) as pipe:
            pipe.incr(key)
            pipe.pexpire(key, round(seconds * 1_000))
            count, _ = await pipe.execute()
            return int(count)

    def renew(self) -> None:
        """Say again how many calls run (`SharedUse.renew`)."""
        for key in self._running:
            self._say(key)

    async def _counted(self, limits: Sequence[SharedLimit], keys: Sequence[str]) -> Exceeded | None:
        said = [
            {"kind": one.kind, "most": one.most, "own": self._running[key]}
            for one, key in zip(limits, keys, strict=True)
        ]
        living = json.dumps(list(self._living()))
        given = (json.dumps(said), living, secrets.token_hex(8), self._own, self._lease)
        async with self._connection.reached() as redis:
            place, seconds = cast("tuple[int, str]", await redis.eval(_COUNT, len(keys), *keys, *given))
            return None if not place else Exceeded(limits[place - 1], float(seconds))

    def _say(self, key: str) -> None:
        self._soon.write(lambda pipe: pipe.eval(_RUNNING, 1, key, self._own, self._running[key]))

    def _less(self, places: Sequence[str]) -> None:
        """Take these back, and forget where none are left."""
        self._running.subtract(places)
        self._running = +self._running
