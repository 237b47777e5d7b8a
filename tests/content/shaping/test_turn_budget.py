"""The budget of a turn in tokens: `lower_turn(..., max_tokens=...)`, with real media workers."""

from base64 import b64decode, b64encode
from io import BytesIO
from typing import Any

import pytest
from PIL import Image

import gateway
from gateway.config.builtin_profiles import token_formulas
from gateway.core.model.media_types import PixelSize, inspect_base64
from gateway.core.tokens import Content, Medium, count_content, text_tokens
from gateway.errors import InvalidRequest

pytestmark = pytest.mark.anyio
LONG = "one line of many words\n" * 2_000


def picture(width: int, height: int) -> dict[str, Any]:
    written = BytesIO()
    Image.new("RGB", (width, height), "teal").save(written, "PNG")
    data = b64encode(written.getvalue()).decode()
    return {"content": [{"type": "image", "data": data, "mimeType": "image/png"}]}


def call(number: int, result: dict[str, Any]) -> dict[str, Any]:
    return {"id": f"c{number}", "name": "look", "result": result}


def text(words: str) -> dict[str, Any]:
    return {"content": [{"type": "text", "text": words}]}


def blocks(messages: list[Any]) -> list[dict[str, Any]]:
    """The blocks of all tool results of Anthropic's API."""
    return [block for message in messages for result in message["content"] for block in result["content"]]


def cost(block: dict[str, Any]) -> int:
    if block["type"] == "text":
        return text_tokens(block["text"])
    with Image.open(BytesIO(b64decode(block["source"]["data"]))) as image:
        content = Content(media=[Medium("image", PixelSize(*image.size))])
    return count_content(content, token_formulas()["claude"]).images


async def test_large_results_share_what_small_ones_leave() -> None:
    calls = [call(0, text("short")), call(1, text(LONG)), call(2, picture(1_900, 1_000)), call(3, text(LONG))]
    turn = await gateway.lower_turn(calls, "anthropic_messages", model="claude-opus-4-7", max_tokens=3_000)
    costs = [cost(block) for block in blocks(turn.messages)]
    assert sum(costs) <= 3_000
    assert max(costs) > 500
    assert blocks(turn.messages)[0]["text"] == "short"
    assert any(block["type"] == "image" for block in blocks(turn.messages))
    assert any("tokens to its budget of" in note.text for note in turn.notes)


async def test_without_a_budget_nothing_is_cut() -> None:
    turn = await gateway.lower_turn([call(0, text(LONG))], "anthropic_messages")
    assert blocks(turn.messages)[0]["text"] == LONG


async def test_a_turn_within_its_budget_is_not_touched() -> None:
    calls = [call(0, text("short")), call(1, picture(280, 280))]
    bounded = await gateway.lower_turn(calls, "anthropic_messages", max_tokens=500)
    assert bounded.messages == (await gateway.lower_turn(calls, "anthropic_messages")).messages


@pytest.mark.parametrize("most", [0, -5])
async def test_a_budget_of_nothing_is_refused(most: int) -> None:
    with pytest.raises(InvalidRequest, match="max_tokens cannot be"):
        await gateway.lower_turn([call(0, text("a"))], "anthropic_messages", max_tokens=most)


@pytest.mark.parametrize("target", ["openai_chat", "openai_responses", "anthropic_messages", "gemini", "ollama"])
@pytest.mark.parametrize("most", [1_200, 4_000])
async def test_captions_and_labels_of_a_turn_count_too(target: str, most: int) -> None:
    linked = {"content": [{"type": "resource_link", "uri": f"x://{'y' * 200}/{n}", "name": "link"} for n in range(20)]}
    calls = [call(0, picture(1_900, 1_000)), call(1, linked), call(2, text(LONG)), call(3, picture(800, 600))]
    turn = await gateway.lower_turn(calls, target, model="claude-opus-4-7", max_tokens=most)
    assert tokens_in(turn.messages) <= most


def tokens_in(value: Any) -> int:
    """Everything that a model reads of messages: texts, and images by their size."""
    if isinstance(value, dict):
        return sum(tokens_in(item) for key, item in value.items() if key not in _APART)
    if isinstance(value, list):
        return sum(map(tokens_in, value))
    if not isinstance(value, str):
        return 0
    data = value.rpartition(";base64,")[2]
    if len(data) > 200 and (size := inspect_base64(data).size):
        return count_content(Content(media=[Medium("image", size)]), token_formulas()["claude"]).images
    return text_tokens(value)


_APART = {"role", "type", "id", "name", "call_id", "tool_call_id", "tool_use_id", "media_type", "mimeType", "detail"}
