"""A call that is given up at any moment leaves nothing behind: no running call, no held seat, no changed answer."""

import sys
from pathlib import Path
from typing import Any

import anyio
import pytest
from anyio.lowlevel import checkpoint

from gateway.config.schema import Settings
from gateway.core.model.caller import Caller
from gateway.runtime import Gateway, run_gateway

pytestmark = pytest.mark.anyio

SERVER = Path(__file__).parents[1] / "servers" / "media_stdio.py"
HOST = Caller(revision="2025-11-25", client_name="claude-code", client_version="2.1.329")
TURNS = 48
"""Turns of the loop after which a call is cancelled, from none on: these reach past the first wait for its server."""
MOMENTS = 12
"""Moments of the rest of a call, spread over the time that it takes."""


async def _picture(gateway: Gateway) -> dict[str, Any]:
    params = {"name": "media__large_picture", "arguments": {}}
    return await gateway.router.respond("tools/call", params, HOST)


async def _given_up(gateway: Gateway, *, turns: int, seconds: float) -> None:
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(_picture, gateway)
        for _ in range(turns):
            await checkpoint()
        if seconds:
            await anyio.sleep(seconds)
        tasks.cancel_scope.cancel()


def _running(gateway: Gateway) -> int:
    return sum(upstream.counts.running for upstream in gateway.upstreams.values())


async def test_a_call_that_is_cancelled_at_any_moment_leaves_nothing_behind() -> None:
    upstream = {"command": sys.executable, "args": [str(SERVER)]}
    settings = Settings.model_validate({"upstreams": {"media": upstream}, "media": {"workers": 1}})
    async with run_gateway(settings) as gateway:
        await gateway.upstreams["media"].ready(60)
        wanted = await _picture(gateway)
        began = anyio.current_time()
        assert await _picture(gateway) == wanted
        takes = anyio.current_time() - began
        waits = [(turns, 0.0) for turns in range(TURNS)]
        waits += [(0, takes * moment / MOMENTS) for moment in range(1, MOMENTS + 1)]
        for turns, seconds in waits:
            await _given_up(gateway, turns=turns, seconds=seconds)
            assert _running(gateway) == 0, (turns, seconds)
        # One worker, whose seat would be missing if a cancelled call had kept it.
        with anyio.fail_after(60):
            assert await _picture(gateway) == wanted
            assert await gateway.upstreams["media"].request("ping", {}) == {}
