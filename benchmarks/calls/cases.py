"""What is measured, and how one number of it comes about."""

import asyncio
import statistics
import time
from typing import Final, NamedTuple

from benchmarks.calls.driver import Client, NotAnswered, result_of

TEXT: Final = "text"
STRUCTURED: Final = "structured"
LIST: Final = "tools/list"

MEMORY: Final = "memory"
IDLE: Final = "idle"
PER_CALL: Final = "peak per 8 MB call in flight"
PER_UPSTREAM: Final = "per upstream"

START: Final = "start"
PORT_OPEN: Final = "port open"
FIRST_ANSWER: Final = "first answer"
IMPORTING: Final = "importing the SDK"

LOOP: Final = "loop"
LOOP_BLOCKED: Final = "longest block / 20 ms"
LOOP_COMPUTING: Final = "longest computing / 20 ms"
LOOP_AWAY: Final = "longest block, waiting for a core included / 20 ms"


class Case(NamedTuple):
    """One kind of call: which tool (none: the list of them), and how many at once."""

    name: str
    tool: str | None
    at_once: int = 1


CASES: Final = (
    Case(TEXT, "text"),
    Case("16 at once", "text", 16),
    Case("64 at once", "text", 64),
    Case("10 KB", "image_10k"),
    Case("1 MB", "image_1m"),
    Case("8 MB", "image_8m"),
    Case(STRUCTURED, "structured"),
    Case(LIST, None),
)
"""Sizes are those of the image; in base64 it is a third larger."""


async def seconds_per_call(client: Client, case: Case, window: float) -> float:
    """For calls one at a time, the median of them; for many at once, how long they took together, by their number."""
    # Connections that were idle have been closed meanwhile.
    await asyncio.gather(*(one_call(client, case) for _ in range(case.at_once)))
    if case.at_once > 1:
        return await _together(client, case, window)
    taken: list[float] = []
    end = time.perf_counter() + window
    while len(taken) < 3 or time.perf_counter() < end:
        began = time.perf_counter()
        await one_call(client, case)
        taken.append(time.perf_counter() - began)
    return statistics.median(taken)


async def one_call(client: Client, case: Case) -> bytes:
    """The answer, as it came."""
    return await (client.list_tools() if case.tool is None else client.call(case.tool))


async def check(client: Client, case: Case) -> None:
    """Raise NotAnswered unless the answer is a result that is not an error: what is fast must be right first."""
    result = result_of(await one_call(client, case))
    if result.get("isError") or not result["tools" if case.tool is None else "content"]:
        raise NotAnswered(f"{case.name}: {str(result)[:200]}")


async def _together(client: Client, case: Case, window: float) -> float:
    count, began = 0, time.perf_counter()

    async def host() -> None:
        nonlocal count
        while count < case.at_once or time.perf_counter() < began + window:
            count += 1
            await one_call(client, case)

    await asyncio.gather(*(host() for _ in range(case.at_once)))
    return (time.perf_counter() - began) / count
