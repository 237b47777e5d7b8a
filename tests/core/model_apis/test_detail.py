"""What a client asked of an image, and what OpenAI's APIs take of one, holds when the image moves."""

import base64
import io
import json
from typing import Any

import numpy
import pytest
from PIL import Image

from gateway.config.builtin_profiles import model_profiles
from gateway.config.content_settings import MediaSettings
from gateway.config.model_proxy_settings import HistorySettings
from gateway.content.media import MediaWorkers
from gateway.content.shaping.repair_request import Repairer
from gateway.content.shaping.turns import lower_turn, lower_turn_now
from gateway.content.store import MemoryStore
from tests.core.model_apis import cases

pytestmark = pytest.mark.anyio
PNG = vars(cases)["PNG"]
URL = f"data:image/png;base64,{PNG}"


async def repaired(messages: list[dict[str, Any]]) -> list[dict[str, Any]]:
    async with MediaWorkers(MediaSettings()) as media:
        repairer = Repairer(MemoryStore(), media, HistorySettings())
        body = json.dumps({"model": "gpt-5.5", "messages": messages}).encode()
        return json.loads((await repairer.repair(body, "openai_chat", lambda _: model_profiles()["openai_chat"])).body)[
            "messages"
        ]


@pytest.mark.parametrize("detail", ["low", "high", "original"])
async def test_an_image_that_is_moved_out_of_a_tool_message_keeps_its_detail(detail: str) -> None:
    call = {"id": "call_1", "type": "function", "function": {"name": "look", "arguments": "{}"}}
    image = {"type": "image_url", "image_url": {"url": URL, "detail": detail}}
    messages = [
        {"role": "user", "content": "Look."},
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "call_1", "content": [{"type": "text", "text": "Here:"}, image]},
    ]
    moved = (await repaired(messages))[-1]
    assert moved["role"] == "user"
    assert [part["image_url"] for part in moved["content"] if part["type"] == "image_url"] == [image["image_url"]]


def test_a_tool_may_say_how_closely_to_look_and_nonsense_is_left_out() -> None:
    def shown(detail: Any, target: str) -> str:
        image = {"type": "image", "data": PNG, "mimeType": "image/png", "_meta": {"mcp-gateway/detail": detail}}
        call = {"id": "call_1", "name": "look", "result": {"content": [image]}}
        return json.dumps(lower_turn_now([call], target).messages)

    assert '"detail": "high"' in shown("high", "openai_chat")
    assert '"detail": "high"' in shown("high", "openai_responses")
    assert "detail" not in shown("closely", "openai_chat")
    assert '"detail": "auto"' in shown("closely", "openai_responses")
    assert "detail" not in shown("high", "anthropic_messages")


@pytest.mark.parametrize("target", ["openai_chat", "openai_responses"])
async def test_an_image_over_the_limit_of_openai_is_fitted(target: str) -> None:
    noise = numpy.random.default_rng(1).integers(0, 256, (2_600, 3_000, 3), dtype=numpy.uint8)
    written = io.BytesIO()
    Image.fromarray(noise).save(written, "PNG", compress_level=1)
    assert len(written.getvalue()) > 23_000_000
    image = {"type": "image", "data": base64.b64encode(written.getvalue()).decode(), "mimeType": "image/png"}
    turn = await lower_turn([{"id": "call_1", "name": "look", "result": {"content": [image]}}], target)
    (data,) = [
        text.partition(",")[2] for text in json.dumps(turn.messages).split('"') if text.startswith("data:image/")
    ]
    assert len(base64.b64decode(data)) <= 20_000_000
