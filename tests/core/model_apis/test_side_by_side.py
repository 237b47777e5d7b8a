"""Many turns lowered side by side share one pool of workers: every image arrives, and few processes are started."""

import base64
import io
from typing import Any

import anyio
import pytest
from PIL import Image

import gateway
from gateway.admission.fair_queue import FairQueue, NoSeat
from gateway.content.media.shared import shared_workers

pytestmark = pytest.mark.anyio
TURNS = 500


def picture(number: int) -> str:
    """Too wide for Anthropic's API, each one another."""
    written = io.BytesIO()
    Image.new("RGB", (2_400, 16), (number % 256, number // 256, 7)).save(written, "PNG")
    return base64.b64encode(written.getvalue()).decode()


def call(number: int) -> dict[str, Any]:
    image = {"type": "image", "data": picture(number), "mimeType": "image/png"}
    return {"id": f"call_{number}", "name": "look", "result": {"content": [image]}}


@pytest.mark.timeout(280)
async def test_five_hundred_turns_at_once_get_all_their_images() -> None:
    shown: dict[int, tuple[int, int]] = {}
    most = 0

    async def lower(number: int) -> None:
        turn = await gateway.lower_turn([call(number)], "anthropic_messages")
        (block,) = [one for one in turn.messages[0]["content"][0]["content"] if one["type"] == "image"]
        picture = Image.open(io.BytesIO(base64.b64decode(block["source"]["data"])))
        assert picture.convert("RGB").getpixel((0, 0)) == (number % 256, number // 256, 7)
        shown[number] = picture.size

    async with shared_workers() as media, anyio.create_task_group() as tasks:
        for number in range(TURNS):
            tasks.start_soon(lower, number)
        while len(shown) < TURNS:
            most = max(most, len(media.pids))
            await anyio.sleep(0.05)
    assert set(shown.values()) == {(2_000, 13)}
    assert 1 <= most <= 16, "the workers of one pool"
    assert media.pids == frozenset()


async def test_workers_that_are_handed_in_stay_from_turn_to_turn() -> None:
    async with gateway.MediaWorkers() as media:
        await gateway.lower_turn([call(1)], "anthropic_messages", media=media)
        first = media.pids
        await gateway.lower_turn([call(2)], "anthropic_messages", media=media)
        assert media.pids == first != frozenset()


async def test_one_who_is_cancelled_takes_nothing_from_the_others() -> None:
    async def lower(number: int) -> None:
        await gateway.lower_turn([call(number)], "anthropic_messages")

    async with anyio.create_task_group() as tasks:
        with anyio.move_on_after(0.01):
            await lower(1)
        tasks.start_soon(lower, 2)
        tasks.start_soon(lower, 3)


async def test_waiting_for_a_turn_has_a_limit_of_its_own() -> None:
    turns = FairQueue(1, spare=0)
    async with turns.seat("one"):
        with pytest.raises(NoSeat, match="late"):
            async with turns.seat("other", 0.01):
                pass
    assert turns.waiting == 0
    async with turns.seat("other", 0.01):
        pass
