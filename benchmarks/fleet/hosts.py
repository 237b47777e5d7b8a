"""Hosts of the fleet: what each calls, what it expects of the answers, and what it notes in the ledger."""

import asyncio
import random
import re
import secrets
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Final

import httpx2

from benchmarks.fleet.clients import ASKS, REVISIONS, STATELESS, Client, CutOff, Message, Told, client, texts
from benchmarks.fleet.layout import HOST_NAME, PRINCIPALS, token_of
from benchmarks.fleet.ledger import Call, Ledger, Promise

SLOW_SECONDS: Final = 5.0
PATIENCE: Final = 90.0
"""Seconds after which a call that has no answer is lost."""
MIX: Final[Mapping[str, float]] = {"echo": 0.5, "picture": 0.2, "count": 0.15, "slow": 0.08, "ask": 0.07}
_TASKS: Final[dict[str, Any]] = {"elicitation": {}, "extensions": {"io.modelcontextprotocol/tasks": {}}}
_HANDLE: Final = re.compile(r"\bimg_[a-z0-9]{12}\b")
_LONG: Final = re.compile(r"with call (c_\w+)")
_HARMLESS: Final = frozenset({"echo", "picture", "slow", "ask"})
_MOST_REPEATS: Final = 3
_LATER: Final = "ry again in a moment"
_GOES_ON: Final = "is still running"
_NOT_KEPT: Final = "could not be kept: the store "
_STATE_LOST: Final = "its state is lost"


class FleetHost:
    """The host with a number, which calls one tool after another until it is stopped."""

    def __init__(self, number: int, http: httpx2.AsyncClient, url: str, ledger: Ledger, think: float) -> None:
        self.revision = REVISIONS[number % len(REVISIONS)]
        self.principal = PRINCIPALS[number % len(PRINCIPALS)]
        self._number = number
        self._ledger = ledger
        self._think = think
        self._random = random.Random(number)  # noqa: S311 - no secret
        self._serial = 0
        self._sessions = 0
        self._counted: int | None = None
        """The counter's last value; None when the host knows that it has been lost, or cannot know it."""
        self._client: Client = client(http, url, token_of(self.principal), f"{HOST_NAME}-{number}", self.revision)
        self._client.on_reopened = self._reopened

    async def open(self) -> None:
        """Be ready to call."""
        async with asyncio.timeout(PATIENCE):
            await self._client.open()

    async def behave(self, stopped: asyncio.Event) -> None:
        """Call until `stopped`, and then wait for the last answer."""
        kinds = [kind for kind in MIX if kind != "ask" or self.revision in ASKS]
        weights = [MIX[kind] for kind in kinds]
        while not stopped.is_set():
            think = self._random.expovariate(1 / self._think)
            try:
                async with asyncio.timeout(think):
                    await stopped.wait()
            except TimeoutError:
                (kind,) = self._random.choices(kinds, weights)
                await self._call(kind)

    async def close(self) -> None:
        """Leave."""
        await self._client.close()

    async def read(self, handle: str) -> Message:
        """Return what a handle stands for. Raises Told or CutOff."""
        return await self._client.ask("resources/read", {"uri": f"content://{handle}"})

    async def _call(self, kind: str) -> None:
        self._serial += 1
        loop = asyncio.get_running_loop()
        mark = f"mark-{self._number}-{self._serial}-{secrets.token_hex(4)}"
        call = Call(self._ledger.phase, kind, self.revision, mark, loop.time())
        self._client.on_retry = call.retried.append
        perform: Callable[[Call], Awaitable[None]] = getattr(self, f"_{kind}")
        try:
            async with asyncio.timeout(PATIENCE):
                await self._performed(call, perform)
        except Told as told:
            call.outcome, call.reason = "told why", str(told)
            self._ledger.look_for_others(mark, str(told), kind)
        except CutOff as cut:
            call.outcome, call.reason = "cut off", str(cut)
        except TimeoutError:
            call.outcome, call.reason = "lost", f"no answer within {PATIENCE:g} s"
        call.ended = loop.time()
        if call.outcome != "ok" or call.retried:  # what happens to a call, happens when it ends
            call.phase = self._ledger.phase
        self._ledger.calls.append(call)

    async def _performed(self, call: Call, perform: Callable[[Call], Awaitable[None]]) -> None:
        """Make a call; again if its connection breaks and the revision lets a host do that: where it does no harm."""
        while True:
            try:
                return await perform(call)
            except CutOff as cut:
                again = self.revision == STATELESS and call.kind in _HARMLESS and call.repeated < _MOST_REPEATS
                if not again:
                    raise
                call.repeated += 1
                call.retried.append(f"repeated: {cut}")

    async def _tool(self, call: Call, tool: str, capabilities: Message | None = None, **arguments: Any) -> Message:
        """Return the result of a call, also if it takes longer than the host waits."""
        params = {"name": tool, "arguments": {"mark": call.mark, **arguments}}
        return await self._collected(call, tool, await self._client.ask("tools/call", params, capabilities))

    async def _collected(self, call: Call, tool: str, result: Message) -> Message:
        """Return a result, or that of the long call that it names."""
        self._ledger.look_for_others(call.mark, repr(result), f"{tool} for {self.principal}")
        if (found := _LONG.search(texts(result))) is None:
            return result
        while _GOES_ON in texts(result):
            result = await self._waited(call, found[1])
        again = await self._waited(call, found[1])
        if texts(again) != texts(result):
            self._ledger.lost.append(f"{found[1]}: {texts(again)!r} after {texts(result)!r}")
        return result

    def _check(self, call: Call, result: Message) -> None:
        """Take a result that has the call's mark. Raises Told if it is an error; anything else is lost."""
        words = texts(result)
        if result.get("isError"):
            raise Told(words)
        if call.mark not in words:
            call.outcome, call.reason = "lost", f"another result: {words[:300]}"

    async def _echo(self, call: Call) -> None:
        self._check(call, await self._tool(call, "all__echo"))

    async def _picture(self, call: Call) -> None:
        result = await self._tool(call, "all__picture")
        words = texts(result)
        if result.get("isError"):
            raise Told(words)
        if found := _HANDLE.search(words):
            self._ledger.promises.append(Promise(found[0], self.principal, call.mark))
        elif _NOT_KEPT in words:  # a line that says why there is no handle
            self._ledger.not_kept[call.phase] += 1
            call.reason = words
        else:
            call.outcome, call.reason = "lost", f"neither a handle nor a reason: {result}"[:600]

    async def _count(self, call: Call) -> None:
        expected, self._counted, sessions = self._counted, None, self._sessions
        result = await self._tool(call, "own__count")
        words = texts(result)
        if result.get("isError"):
            if _STATE_LOST in words:
                self._counted = 0
            raise Told(words)
        self._counted = int(words.split()[0])
        if expected is not None and sessions == self._sessions and self._counted != expected + 1:
            call.outcome, call.reason = "lost", f"{call.mark} counted {self._counted} after {expected} without a word"

    async def _slow(self, call: Call) -> None:
        if self.revision == STATELESS and self._number % 2:
            return self._check(call, await self._as_task(call))
        return self._check(call, await self._tool(call, "slow__slow", seconds=SLOW_SECONDS))

    async def _waited(self, call: Call, long_call: str) -> Message:
        """Ask for a long call, again if the connection breaks: that does no harm."""
        params = {"name": "gateway_wait", "arguments": {"call": long_call}}
        while True:
            try:
                result = await self._client.ask("tools/call", params)
            except CutOff as cut:
                call.retried.append(f"gateway_wait again: {cut}")
                continue
            self._ledger.look_for_others(call.mark, repr(result), f"gateway_wait for {self.principal}")
            if not (result.get("isError") and _LATER in texts(result)):
                return result
            call.retried.append(texts(result))
            await asyncio.sleep(1)

    async def _as_task(self, call: Call) -> Message:
        result = await self._tool(call, "slow__slow", _TASKS, seconds=SLOW_SECONDS)
        if (task := result.get("taskId")) is None:
            return result
        while True:
            try:
                state = await self._client.ask("tasks/get", {"taskId": task}, _TASKS)
            except CutOff as cut:
                call.retried.append(f"tasks/get again: {cut}")
                continue
            except Told as told:
                if _LATER not in str(told):
                    raise
                call.retried.append(str(told))
                await asyncio.sleep(1)
                continue
            if state.get("status") == "completed":
                return state["result"]
            if state.get("status") != "working":
                raise Told(str(state.get("error") or state.get("statusMessage") or state.get("status")))
            await asyncio.sleep(1)

    async def _ask(self, call: Call) -> None:
        result = await self._tool(call, "asks__ask")
        if result.get("resultType") == "input_required":
            answers = {key: {"action": "accept", "content": {"answer": "yes"}} for key in result["inputRequests"]}
            params = {"name": "asks__ask", "arguments": {"mark": call.mark}, "inputResponses": answers}
            params |= {"requestState": result["requestState"]}
            result = await self._collected(call, "asks__ask", await self._client.ask("tools/call", params))
        self._check(call, result)

    def _reopened(self) -> None:
        """A new session has a counter of its own, and the host knows that."""
        self._counted, self._sessions = None, self._sessions + 1
        self._ledger.reopened[self._ledger.phase] += 1
