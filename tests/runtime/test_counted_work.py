"""How often a call through a whole gateway does what is expensive: counted, not timed, so that it cannot flake.

The gateway serves over HTTP in this process, between the driver and the raw upstream of the benchmarks, whose own work
is not counted. A bound that is too low now is a step back; one that became too high should be lowered.
"""

import asyncio
import json
import sys
from collections import Counter
from collections.abc import AsyncGenerator, Callable, Generator
from contextlib import asynccontextmanager, contextmanager
from functools import partial
from types import CodeType, FrameType
from typing import Any

import anyio
import pytest

from benchmarks.calls.driver import HttpClient, result_of
from benchmarks.calls.upstream import HttpServer
from benchmarks.calls.wire import Era
from gateway.config.http_settings import HttpSettings
from gateway.config.schema import Settings
from gateway.config.upstream_settings import UpstreamSettings
from gateway.core.model.json_size import size_of
from gateway.core.model.wire import strip_hop_meta
from gateway.core.profiles.host_profiles import narrow
from gateway.core.profiles.match_profile import choose_profile
from gateway.core.results.decisions import decide
from gateway.core.results.lift_result import lift
from gateway.core.results.lower_mcp import lower
from gateway.core.tools.catalogue import build
from gateway.routing.profile_choices import ProfileChoices
from gateway.runtime import run_gateway
from gateway.serving.mcp.handshake import Identity
from gateway.serving.mcp.http import http_app, serve_http

pytestmark = pytest.mark.anyio

CALLS = 10
PARSED = {json.JSONDecoder.raw_decode: "parse"}
WRITTEN = {json.JSONEncoder.iterencode: "write"}
OF_C = {"from_json": "parse", "validate_json": "parse", "to_json": "write"}
"""Of pydantic's core; nothing else in the gateway reads and writes JSON."""

OURS: dict[Callable[..., Any], str] = {
    ProfileChoices.profile_of: "profile",
    choose_profile: "choose_profile",
    narrow: "choose_profile",
    build: "catalogue",
    strip_hop_meta: "strip_hop_meta",
    size_of: "size_of",
    lift: "lift",
    decide: "decide",
    lower: "lower",
}


class Counted:
    """Counts calls of functions while `counting`; nothing is replaced. Small results stay in one thread."""

    def __init__(self) -> None:
        self.counts = Counter[str]()
        self.counting = False
        self._names: dict[CodeType, str] = {
            function.__code__: name for function, name in (PARSED | WRITTEN | OURS).items()
        }

    def seen(self, frame: FrameType, event: str, argument: Any) -> None:
        """What the interpreter calls at each call."""
        if not self.counting:
            return
        if event == "call":
            name = self._names.get(frame.f_code)
        else:
            name = OF_C.get(getattr(argument, "__name__", "")) if event == "c_call" else None
        if name is not None and not _by_benchmarks(frame):
            self.counts[name] += 1


def _by_benchmarks(frame: FrameType | None) -> bool:
    """Whether the host or the upstream does it."""
    for _ in range(5):
        if frame is None:
            return False
        if frame.f_globals.get("__name__", "").startswith("benchmarks."):
            return True
        frame = frame.f_back
    return False


@contextmanager
def counter() -> Generator[Counted]:
    counted, before = Counted(), sys.getprofile()
    sys.setprofile(counted.seen)
    try:
        yield counted
    finally:
        sys.setprofile(before)


@asynccontextmanager
async def host(era: Era, profile: str) -> AsyncGenerator[HttpClient]:
    """A host in front of a gateway over HTTP, all in this process."""
    loop = asyncio.get_running_loop()
    raw = await loop.create_server(HttpServer, "127.0.0.1", 0)
    url = f"http://127.0.0.1:{raw.sockets[0].getsockname()[1]}/{era}/10"
    settings = Settings(upstreams={"raw": UpstreamSettings(url=url)}, http=HttpSettings(port=0))
    async with raw, run_gateway(settings, profile=profile, over_http=True) as gateway:
        assert await gateway.router.upstreams["raw"].ready(60)
        app = http_app(gateway.router, settings.http, Identity("counted", "1"))
        async with anyio.create_task_group() as tasks:
            bound = asyncio.Queue[int]()
            tasks.start_soon(partial(serve_http, app, settings.http, on_bound=bound.put_nowait))
            client = HttpClient(era, await bound.get(), "/mcp")
            await client.open()
            yield client
            await client.close()
            tasks.cancel_scope.cancel()


AT_MOST = {
    "parse": 4,
    "write": 6,
    "profile": 1,
    "choose_profile": 0,
    "catalogue": 0,
    "strip_hop_meta": 1,
    "size_of": 9,
    "lift": 1,
    "decide": 1,
    "lower": 1,
}
"""For one call. Chosen profiles and built catalogues are remembered."""


@pytest.mark.parametrize("era", Era)
@pytest.mark.parametrize("profile", ["passthrough", "default", "claude-code"])
@pytest.mark.parametrize("tool", ["text", "structured"])
async def test_a_small_call_does_nothing_more_often_than_it_must(era: Era, profile: str, tool: str) -> None:
    with counter() as counted:
        async with host(era, profile) as client:
            await client.call(tool)
            counted.counting = True
            for _ in range(CALLS):
                answer = await client.call(tool)
            counted.counting = False
            assert not result_of(answer).get("isError")
    assert counted.counts["lift"] == CALLS, "what is counted is not what runs"
    assert {name: count for name, count in counted.counts.items() if count > AT_MOST[name] * CALLS} == {}
