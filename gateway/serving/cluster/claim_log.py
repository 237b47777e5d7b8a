"""What replicas have claimed lately: a stream in Redis that all of them read, so that what one alone knew is not lost.

A replica that is killed cannot tell a Redis that comes back empty what it had. The others have read it, and do.
"""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from gateway.serving.cluster.keys import CLAIMS, OWNER
from gateway.serving.databases.shared_records import Pipe, SharedRecords

KEPT_SECONDS = 86_400
"""How long a claim lasts without a call; `session_idle` of an upstream is at most this."""
_LONGEST_STREAM = 100_000
_AT_ONCE = 1_000
_LONGEST_NAME = 64
_START = "0-0"

_CLAIM = f"""
if not redis.call('SET', KEYS[1], ARGV[1], 'NX', 'EX', {KEPT_SECONDS}) then return 0 end
redis.call('XADD', KEYS[2], 'MAXLEN', '~', {_LONGEST_STREAM}, '*', 'owner', KEYS[1], 'replica', ARGV[1])
return 1
"""
"""Claims what nobody has claimed, and notes that in the stream."""


class Claim(NamedTuple):
    """The key of an owner's state, and the replica that has it."""

    key: str
    replica: str


class ClaimLog:
    """The stream, read from where this replica has stopped reading."""

    def __init__(self, connection: SharedRecords) -> None:
        self._connection = connection
        self._last = _START

    async def claim(self, redis: Any, claim: Claim) -> bool:
        """Claim what nobody has claimed; false if somebody has."""
        return bool(await redis.eval(_CLAIM, 2, claim.key, CLAIMS, claim.replica))

    def claiming(self, claim: Claim) -> Callable[[Pipe], object]:
        """Return what adds the same to a pipeline."""
        return lambda pipe: pipe.eval(_CLAIM, 2, claim.key, CLAIMS, claim.replica)

    def note(self, pipe: Pipe, claim: Claim) -> None:
        """Note a claim that is there, in a pipeline."""
        said: Any = {"owner": claim.key, "replica": claim.replica}
        pipe.xadd(CLAIMS, said, maxlen=_LONGEST_STREAM, approximate=True)

    def restart(self) -> None:
        """Read it from its beginning: Redis has lost it, so it is another one."""
        self._last = _START

    async def read(self) -> Sequence[Claim]:
        """Return the claims that have been noted since the last time, oldest first; not all at once if they are many.

        Raises:
            StateUnavailable: Redis is away.
        """
        async with self._connection.reached() as redis:
            entries: list[tuple[str, dict[str, str]]] = await redis.xrange(CLAIMS, f"({self._last}", count=_AT_ONCE)
        if entries:
            self._last = entries[-1][0]
        read = (Claim(said.get("owner", ""), said.get("replica", "")) for _, said in entries)
        return [one for one in read if _is_one(one)]


def _is_one(claim: Claim) -> bool:
    return claim.key.startswith(OWNER) and len(claim.key) <= len(OWNER) + _LONGEST_NAME and 0 < len(claim.replica) <= 64
