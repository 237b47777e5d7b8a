"""Work that goes on for a while after its task was cancelled."""

import anyio
import anyio.lowlevel
import pytest

from gateway.system.finish_soon import shielded_for

pytestmark = pytest.mark.anyio


async def test_a_block_ends_although_its_task_is_cancelled_and_then_the_task_does() -> None:
    done: list[str] = []

    async def work() -> None:
        async with shielded_for(60):
            tasks.cancel_scope.cancel()
            await anyio.sleep(0.05)
            done.append("the block")
        await anyio.lowlevel.checkpoint()
        done.append("more than the block")

    with anyio.fail_after(10):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(work)
    assert done == ["the block"]


async def test_a_block_that_does_not_end_is_given_up_after_its_seconds() -> None:
    done: list[str] = []

    async def work() -> None:
        async with shielded_for(0.05):
            tasks.cancel_scope.cancel()
            await anyio.sleep_forever()
        await anyio.lowlevel.checkpoint()
        done.append("more than the block")

    with anyio.fail_after(10):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(work)
    assert done == []


async def test_a_block_may_take_longer_while_nobody_cancels_it() -> None:
    async with shielded_for(0.01):
        await anyio.sleep(0.1)


async def test_an_error_is_raised_as_it_is() -> None:
    with pytest.raises(KeyError, match="x"):
        async with shielded_for(1):
            raise KeyError("x")
