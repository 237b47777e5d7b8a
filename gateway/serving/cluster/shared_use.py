"""What callers have used of their limits at all replicas together, counted in Redis."""

import json
import secrets
from collections.abc import Callable, Sequence
from typing import cast

from gateway.routing.replica_port import Exceeded, SharedLimit
from gateway.serving.cluster.keys import use_key
from gateway.serving.cluster.soon import Soon
from gateway.serving.databases.shared_records import SharedRecords

_COUNT = """
local now = redis.call('TIME')
local seconds = now[1] + now[2] / 1000000
local by_minute = {calls_per_minute = true, requests_per_minute = true}
local limits, living = cjson.decode(ARGV[1]), cjson.decode(ARGV[2])
local left_of_day = 86400 - seconds % 86400
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
    local running = 0
    for _, replica in ipairs(living) do
      running = running + (tonumber(redis.call('HGET', key, replica)) or 0)
    end
    if running >= most then return {place, '1'} end
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
    redis.call('HINCRBY', key, ARGV[4], 1)
    redis.call('EXPIRE', key, 86400)
  elseif limit.kind == 'calls_per_day' then
    redis.call('HINCRBY', key, tostring(math.floor(seconds / 86400)), 1)
    redis.call('EXPIRE', key, 172800)
  end
end
return {0, '0'}
"""
"""Counts one call against all limits, or none: ARGV are the limits, the replicas, an id of the call, and this replica.

A replica that is gone runs no calls, whatever it has counted.
"""

_ADD = """
local today = tostring(math.floor(redis.call('TIME')[1] / 86400))
redis.call('HINCRBY', KEYS[1], today, ARGV[1])
redis.call('EXPIRE', KEYS[1], 172800)
"""
"""Counts more of what is counted by the day, in UTC."""


class RedisUse:
    """Counts in Redis (`gateway.routing.replica_port.SharedUse`). `living` returns the ids of the replicas."""

    def __init__(self, connection: SharedRecords, soon: Soon, own: str, living: Callable[[], Sequence[str]]) -> None:
        self._connection = connection
        self._soon = soon
        self._own = own
        self._living = living

    async def begin(self, limits: Sequence[SharedLimit]) -> Exceeded | None:
        """Count a call (`SharedUse.begin`)."""
        keys = [use_key(*one.who, one.kind) for one in limits]
        said = json.dumps([{"kind": one.kind, "most": one.most} for one in limits])
        living = json.dumps([self._own, *self._living()])
        async with self._connection.reached() as redis:
            found = await redis.eval(_COUNT, len(keys), *keys, said, living, secrets.token_hex(8), self._own)
        place, seconds = cast("tuple[int, str]", found)
        return None if not place else Exceeded(limits[place - 1], float(seconds))

    def add(self, limit: SharedLimit, amount: int) -> None:
        """Count more, soon (`SharedUse.add`)."""
        key = use_key(*limit.who, limit.kind)
        if limit.kind == "calls_at_once":
            self._soon.write(lambda pipe: pipe.hincrby(key, self._own, amount))
        else:
            self._soon.write(lambda pipe: pipe.eval(_ADD, 1, key, amount))
