"""JSON too long to be parsed beside everything else: a media worker writes its shape, and a failure costs only that."""

import json
from typing import Any

import pytest

import gateway
from gateway.config.content_settings import MediaSettings
from gateway.content.media import MediaWorkers
from gateway.core.results.json_outline import MOST_CHARS

pytestmark = pytest.mark.anyio

ROWS = json.dumps({"rows": [{"id": number, "name": f"row {number}"} for number in range(80_000)], "next": None})


async def shown(text: str, **limits: Any) -> str:
    call = {"id": "a", "name": "t", "arguments": {}, "result": {"content": [{"type": "text", "text": text}]}}
    async with MediaWorkers(MediaSettings(workers=1, timeout=60, **limits)) as workers:
        turn = await gateway.lower_turn([call], "anthropic_messages", max_tokens=2_000, media=workers)
    return json.dumps(turn.messages, ensure_ascii=False)


async def test_a_long_json_text_is_cut_to_its_shape() -> None:
    assert len(ROWS) > MOST_CHARS
    text = await shown(ROWS)
    assert "the shape of JSON of" in text
    assert "80,000 in all" in text
    assert len(text) < 10_000


@pytest.mark.parametrize(
    ("text", "limits"),
    [(ROWS[:-2] + "]}}", {}), ("[" + ROWS, {}), (ROWS, {"max_input_bytes": 1_000_000})],
    ids=["not-json", "open", "too-large-for-a-worker"],
)
async def test_what_has_no_shape_keeps_its_head_and_tail(text: str, limits: dict[str, Any]) -> None:
    told = await shown(text, **limits)
    assert "the shape of JSON" not in told
    assert "row 79999" in told
    assert "row 0" in told
