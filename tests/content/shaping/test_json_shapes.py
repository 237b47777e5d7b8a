"""A big JSON result reaches its host as its shape, and any part of it by a query."""

import json
from typing import Any

import pytest

from gateway.config.content_settings import MediaSettings
from gateway.config.store_settings import StoreSettings
from gateway.content.media import MediaWorkers
from gateway.content.shaping import Shaper
from gateway.content.store import MemoryStore
from gateway.core.profiles.profile import LimitRules, Profile, StructuredRules, TextRules, TokenRules, ToolRules
from gateway.core.tokens import text_tokens
from gateway.routing.own_tools import OwnToolsServer

pytestmark = pytest.mark.anyio

ROWS = [{"id": number, "name": f"row {number}", "tags": ["a", "b"]} for number in range(5_000)]
TEXT: dict[str, Any] = {"content": [{"type": "text", "text": json.dumps({"rows": ROWS})}]}
STRUCTURED: dict[str, Any] = {"content": [], "structuredContent": {"rows": ROWS}}
SMALL = Profile(
    name="small",
    text=TextRules(max_chars=2_000),
    tools=ToolRules(helpers=True),
    structured=StructuredRules(send="never"),
)
BUDGET = {"limits": LimitRules(result_chars=2_500), "tokens": TokenRules(max_result=600, formulas=("openai",))}


@pytest.mark.parametrize("raw", [TEXT, STRUCTURED], ids=["text", "structured"])
@pytest.mark.parametrize("update", [{}, *({key: rules, "text": TextRules()} for key, rules in BUDGET.items())])
async def test_a_result_over_the_limit_of_its_host_is_its_shape_and_a_query_reads_the_rest(raw, update):
    store, profile = MemoryStore(StoreSettings()), SMALL.model_copy(update=update)
    async with MediaWorkers(MediaSettings(workers=1)) as workers:
        shaped = await Shaper(store, workers).shape(raw, profile, owner="ann")
        (block,) = shaped.result["content"]
        first, shape = block["text"].split("\n", 1)
        assert first.startswith("[the shape of JSON of ")
        assert "query (JMESPath)" in first
        assert '5,000 in all: {"id": number, "name": text, "tags": list}' in shape
        assert len(block["text"]) <= 2_500
        assert text_tokens(block["text"]) <= 600 or "tokens" not in update
        (kept,) = await store.list(owner="ann")
        assert kept.handle in first
        arguments = {"handle": kept.handle, "query": "rows[4321].name"}
        answer = await OwnToolsServer(store, workers).request(
            "tools/call", {"name": "gateway_read", "arguments": arguments}, owner="ann", profile=profile
        )
        assert answer["content"][0]["text"].startswith('"row 4321"')


async def test_text_that_is_not_json_keeps_its_head_and_tail():
    text = "first line\n" + "words and more words\n" * 1_000 + "last line"
    raw: dict[str, Any] = {"content": [{"type": "text", "text": text}]}
    async with MediaWorkers(MediaSettings(workers=1)) as workers:
        shaped = await Shaper(MemoryStore(StoreSettings()), workers).shape(raw, SMALL, owner="ann")
    (block,) = shaped.result["content"]
    assert block["text"].startswith("first line\n")
    assert block["text"].endswith("last line")
