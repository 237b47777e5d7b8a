"""An image that breaks off costs only itself: a model API would refuse the whole request, and every one after it."""

import base64
import io
import json
import random
from typing import Any

import pytest
from PIL import Image

from gateway.config.builtin_profiles import builtin_profiles, model_profiles
from gateway.config.content_settings import MediaSettings
from gateway.config.model_proxy_settings import HistorySettings
from gateway.content.media import MediaWorkers
from gateway.content.shaping import Shaper
from gateway.content.shaping.repair_request import Repairer
from gateway.content.shaping.turns import lower_turn, lower_turn_now
from gateway.content.store import MemoryStore
from gateway.core.model.blocks import Found
from gateway.core.model.contents import may_be_cut_off
from gateway.testing.model_apis import seen
from gateway.testing.model_apis.histories import history

pytestmark = pytest.mark.anyio
FORMATS = ("PNG", "JPEG", "GIF", "WEBP")


def picture(image_format: str) -> bytes:
    image = Image.frombytes("L", (320, 200), random.Random(7).randbytes(320 * 200))
    written = io.BytesIO()
    image.convert("P" if image_format == "GIF" else "RGB").save(written, image_format)
    return written.getvalue()


def block(content: bytes, image_format: str) -> dict[str, Any]:
    media_type = f"image/{image_format.lower()}"
    return {"type": "image", "data": base64.b64encode(content).decode(), "mimeType": media_type}


def found(content: bytes, media_type: str) -> Found:
    return Found(data=base64.b64encode(content).decode(), byte_size=len(content), media_type=media_type)


def calls(*blocks: dict[str, Any]) -> list[dict[str, Any]]:
    return [{"id": "call00000", "name": "look", "arguments": {}, "result": {"content": list(blocks)}}]


@pytest.mark.parametrize("image_format", FORMATS)
@pytest.mark.parametrize("target", ["openai_chat", "anthropic_messages", "gemini", "bedrock_converse"])
async def test_half_an_image_is_a_line_and_the_other_is_shown(target: str, image_format: str) -> None:
    whole = picture(image_format)
    made = calls(
        block(whole[: len(whole) // 2], image_format), {"type": "text", "text": "and"}, block(whole, image_format)
    )
    turn = await lower_turn(made, target)
    assert len(seen(target, history(target, made, turn.messages))) == 1
    assert "[image 1: image/" in json.dumps(turn.messages)
    assert "failed" in [note.kind for note in turn.notes]


@pytest.mark.parametrize("image_format", FORMATS)
def test_the_end_is_missed_wherever_it_breaks_off(image_format: str) -> None:
    whole, media_type = picture(image_format), f"image/{image_format.lower()}"
    looks_like_the_end = [at + 1 for at in range(100, len(whole) - 12) if whole[at] == whole[-1]]
    lengths = [*range(100, len(whole) - 12, 997), *looks_like_the_end]
    cut = {length: found(whole[:length], media_type) for length in lengths}
    assert len(looks_like_the_end) > 20
    assert [length for length, image in cut.items() if not may_be_cut_off(image)] == []


@pytest.mark.parametrize("image_format", FORMATS)
async def test_a_whole_image_goes_on_untouched_whatever_follows_it(image_format: str) -> None:
    whole = picture(image_format)
    for content in (whole, whole + b"\0" * 7):
        turn = await lower_turn(calls(block(content, image_format)), "openai_chat")
        assert base64.b64encode(content).decode() in json.dumps(turn.messages)
        assert [note.kind for note in turn.notes] == ["moved"]
    assert base64.b64encode(whole).decode() in json.dumps(
        lower_turn_now(calls(block(whole, image_format)), "gemini").messages
    )


@pytest.mark.parametrize("profile", ["claude-code", "codex", "default"])
async def test_hosts_get_a_line_for_it_too(profile: str) -> None:
    whole = picture("PNG")
    async with MediaWorkers(MediaSettings()) as media:
        shaper = Shaper(MemoryStore(), media)
        result = {"content": [block(whole[:-400], "PNG"), block(whole, "PNG")]}
        shaped = await shaper.shape(result, builtin_profiles()[profile], owner="local")
    assert [one["type"] for one in shaped.result["content"]].count("image") == 1


async def test_the_proxy_keeps_it_out_of_a_request() -> None:
    call = {"id": "call_1", "type": "function", "function": {"name": "look", "arguments": "{}"}}
    half = base64.b64encode(picture("JPEG")[:3_000]).decode()
    image = {"type": "image_url", "image_url": {"url": f"data:image/jpeg;base64,{half}"}}
    messages = [
        {"role": "user", "content": "Look."},
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "call_1", "content": [image]},
    ]
    async with MediaWorkers(MediaSettings()) as media:
        repairer = Repairer(MemoryStore(), media, HistorySettings())
        body = json.dumps({"model": "gpt-5.5", "messages": messages}).encode()
        request = await repairer.repair(body, "openai_chat", lambda _: model_profiles()["openai_chat"])
    assert half not in request.body.decode()
    assert "[image 1: image/jpeg" in request.body.decode()
