import anyio
import pytest

from gateway.config.upstream_settings import Timeouts
from gateway.upstream.connection.deadlines import Deadline, ProgressRelay

pytestmark = pytest.mark.anyio


async def test_a_deadline_moves_with_every_sign_of_life_but_never_past_the_end() -> None:
    deadline = Deadline(Timeouts(call=10, idle=4))
    now = anyio.current_time()
    assert deadline.scope.deadline == pytest.approx(now + 10, abs=1)
    deadline.touch()
    assert deadline.scope.deadline == pytest.approx(now + 4, abs=1)
    short = Deadline(Timeouts(call=2, idle=60))
    short.touch()
    assert short.scope.deadline == pytest.approx(now + 2, abs=1)


async def test_a_slow_listener_gets_all_progress_in_order_and_is_never_called_twice_at_a_time() -> None:
    heard: list[float] = []
    go_on = anyio.Event()
    inside = 0

    async def listen(progress: float, total: float | None, message: str | None) -> None:
        nonlocal inside
        inside += 1
        assert inside == 1
        heard.append(progress)
        await go_on.wait()
        inside -= 1

    relay = ProgressRelay(Deadline(Timeouts()), listen)
    with anyio.fail_after(30):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(relay, 1.0, None, None)
            await anyio.wait_all_tasks_blocked()
            for step in (2.0, 3.0, 4.0):
                await relay(step, None, None)
            go_on.set()
            await relay.drain()
            assert heard == [1.0, 2.0, 3.0, 4.0]
            relay.close()
            await relay(5.0, None, None)
    assert heard == [1.0, 2.0, 3.0, 4.0]


async def test_nothing_is_heard_after_the_call_is_over_or_of_progress_that_is_no_number() -> None:
    heard: list[float] = []

    async def listen(progress: float, total: float | None, message: str | None) -> None:
        heard.append(progress)

    relay = ProgressRelay(Deadline(Timeouts()), listen)
    await relay(float("nan"), None, None)
    await relay(1, None, None)
    relay.close()
    await relay(2, None, None)
    assert heard == [1]
