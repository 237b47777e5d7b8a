"""Calls as they happen, as server-sent events: `begun` with the line of a call, `ended-<number>` with it afterwards.

https://html.spec.whatwg.org/multipage/server-sent-events.html
"""

from collections.abc import AsyncGenerator, Iterator
from contextlib import suppress
from itertools import islice

import anyio
from anyio.streams.memory import MemoryObjectReceiveStream
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse

from gateway.serving.console.calls import CallFilter, call_row, filter_in
from gateway.serving.console.console import Console
from gateway.serving.console.responses import PAGE_HEADERS, as_json, fragment
from gateway.serving.console.views import number_in
from gateway.telemetry.call_history import CallHistory, PastCall

_UNREAD = 500
_MISSED = 200
_HEARTBEAT_SECONDS = 15.0
_GATHERING_SECONDS = 0.15
"""Seconds for which calls are gathered: a page needs time to draw a line before it can be replaced."""


async def call_events(console: Console, request: Request) -> Response:
    """Return the response with the events of calls that fit the request's filter.

    They go on after the call that the page knew last (`after`, or the id of the last event): none is missed.
    """
    last = request.headers.get("last-event-id", "")
    is_number = last.isascii() and last.isdecimal() and len(last) < 16
    known = int(last) if is_number else number_in(request, "after")
    send, receive = anyio.create_memory_object_stream[PastCall](_UNREAD)

    def tell(call: PastCall) -> None:
        # Whoever does not read misses calls.
        with suppress(anyio.WouldBlock, anyio.BrokenResourceError, anyio.ClosedResourceError):
            send.send_nowait(call)

    try:
        stop = console.history.listen(tell)
    except OverflowError as error:
        return as_json({"error": str(error)}, 503)
    lines = _Lines(request.scope.get("root_path", ""), filter_in(request), known or 0)

    async def events() -> AsyncGenerator[str]:
        console.streams.add(send)
        try:
            yield "retry: 2000\n\n"
            for call in _missed(console.history, known):
                yield lines.event(call)
            with suppress(anyio.EndOfStream):
                while True:
                    gathered = await _gather(receive)
                    yield "".join(map(lines.event, gathered)) or ": still here\n\n"
        finally:
            console.streams.discard(send)
            stop()
            send.close()
            receive.close()

    headers = {**PAGE_HEADERS, "X-Accel-Buffering": "no"}
    return StreamingResponse(events(), headers=headers, media_type="text/event-stream")


class _Lines:
    """Writes events for one page, which has the lines of calls up to the number `drawn`."""

    def __init__(self, base: str, chosen: CallFilter, drawn: int) -> None:
        self._base = base
        self._chosen = chosen
        self._drawn = drawn

    def event(self, call: PastCall) -> str:
        """Return the event that a page needs for a call as it is now; empty for none."""
        if call.number > self._drawn:
            self._drawn = call.number
            return self._written("begun", call) if self._chosen.fits(call) else ""
        return "" if call.is_running else self._written(f"ended-{call.number}", call)

    def _written(self, kind: str, call: PastCall) -> str:
        row = fragment("call_row.html", {"base": self._base, "call": call_row(call)})
        return f"id: {self._drawn}\nevent: {kind}\ndata: {row}\n\n"


def _missed(history: CallHistory, known: int | None) -> Iterator[PastCall]:
    """Yield the newest calls, the oldest of them first, if the page may lack some."""
    if known is not None:
        yield from reversed(list(islice(history.newest_first(), _MISSED)))


async def _gather(receive: MemoryObjectReceiveStream[PastCall]) -> list[PastCall]:
    """Wait for a call, and return it with those that follow soon, each once; none if all is quiet for a while."""
    gathered: dict[int, PastCall] = {}
    with anyio.move_on_after(_HEARTBEAT_SECONDS):
        first = await receive.receive()
        gathered[first.number] = first
        await anyio.sleep(_GATHERING_SECONDS)
        with suppress(anyio.WouldBlock, anyio.EndOfStream):
            while True:
                call = receive.receive_nowait()
                gathered[call.number] = call
    return list(gathered.values())
