"""A start that is given up half-way leaves no process behind that nobody waits for."""

import gc
import sys
from typing import Any

import anyio
import pytest

from gateway.config.upstream_settings import UpstreamSettings
from gateway.upstream.transports.processes import HURRIED, end, spawn

STEP = 0.0002


@pytest.mark.filterwarnings("error")
def test_a_start_that_is_cancelled_at_any_moment_is_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    settings = UpstreamSettings(command=sys.executable, args=("-c", "input()"))
    forgotten: list[Any] = []
    monkeypatch.setattr(sys, "unraisablehook", forgotten.append)

    async def give_up_after(seconds: float) -> None:
        with anyio.move_on_after(seconds):
            child = await spawn(settings)
            try:
                await anyio.sleep_forever()
            finally:
                with anyio.CancelScope(shield=True):
                    assert await end(child, HURRIED)

    for count in range(20):
        anyio.run(give_up_after, count * STEP)  # a loop of its own: what is left behind shows when it closes
        gc.collect()
    assert [str(one.exc_value) for one in forgotten] == []
