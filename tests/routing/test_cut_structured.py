"""Big structured content of a real server, toward a host that checks it: in both eras, and read on from the handle."""

import json
import re
import sys
from pathlib import Path
from typing import Any

import anyio
import jsonschema_rs
import pytest

from gateway.config.schema import Settings
from gateway.config.upstream_settings import UpstreamSettings
from gateway.core.model.caller import Caller
from gateway.core.profiles.profile import ProfileSource
from gateway.runtime import open_gateway

pytestmark = pytest.mark.anyio

SERVER = Path(__file__).parents[1] / "servers" / "scripted_stdio.py"
ROWS = [{"id": number, "name": f"row {number}", "text": "words " * 10} for number in range(4_000)]
CLOSED = {
    "type": "object",
    "properties": {"rows": {"type": "array", "items": {"type": "object", "required": ["id", "name"]}}},
    "required": ["rows"],
    "additionalProperties": False,
}
ALL_ROWS = {**CLOSED, "properties": {"rows": {"type": "array", "minItems": 4_000}}}
PAGE = {"ui": {"resourceUri": "ui://shop/page"}}
TOOLS = {
    "rows": {"outputSchema": CLOSED},
    "no_schema": {},
    "all_rows": {"outputSchema": ALL_ROWS},
    "page": {"outputSchema": CLOSED, "_meta": PAGE},
}


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    tools = [{"name": name, "inputSchema": {"type": "object"}, **more} for name, more in TOOLS.items()]
    result = {"content": [{"type": "text", "text": "Rows."}], "structuredContent": {"rows": ROWS}}
    script = {"tools": tools, "results": dict.fromkeys(TOOLS, result)}
    (tmp_path / "script.json").write_text(json.dumps(script), "utf-8")
    args = (str(SERVER), str(tmp_path / "script.json"))
    return Settings(upstreams={"shop": UpstreamSettings(command=sys.executable, args=args)})


@pytest.fixture
def with_budget(settings: Settings) -> Settings:
    """The same with a budget in tokens for each tool, and a host that has no limit and reads structured content."""
    reads = ProfileSource.model_validate({"extends": "passthrough", "sets": {"structured": {"host": "replaces-text"}}})
    shop = settings.upstreams["shop"]
    tools = shop.tools.model_copy(update={"max_tokens": dict.fromkeys(TOOLS, 4_000)})
    upstreams = {"shop": shop.model_copy(update={"tools": tools})}
    return settings.model_copy(update={"upstreams": upstreams, "profiles": {"reads": reads}})


@pytest.mark.parametrize("revision", ["2025-06-18", "2026-07-28"])
async def test_a_budget_of_the_tool_alone_cuts_it_within_its_offered_schema(with_budget: Settings, revision: str):
    host = Caller(revision=revision, client_name="a-program", profile="reads")

    with anyio.fail_after(60):
        async with open_gateway(with_budget) as router:
            assert await router.upstreams["shop"].ready(30)
            listed = {tool["name"]: tool for tool in (await router.respond("tools/list", {}, host))["tools"]}
            for name in TOOLS:
                params = {"name": f"shop__{name}", "arguments": {}}
                sent = (await router.respond("tools/call", params, host))["structuredContent"]
                schema = listed[f"shop__{name}"].get("outputSchema", {})
                assert jsonschema_rs.validator_for(schema).is_valid(sent), name
                assert ("gateway_left_out" in sent) == (name != "all_rows"), name  # whose schema wants all


@pytest.mark.parametrize("revision", ["2025-06-18", "2025-11-25", "2026-07-28"])
async def test_it_is_cut_where_its_schema_allows_and_the_rest_is_a_query_away(settings: Settings, revision: str):
    host = Caller(revision=revision, client_name="openai-mcp")

    with anyio.fail_after(60):
        async with open_gateway(settings) as router:
            assert await router.upstreams["shop"].ready(30)

            async def call(name: str, **arguments: Any) -> dict[str, Any]:
                return await router.respond("tools/call", {"name": name, "arguments": arguments}, host)

            listed = {tool["name"]: tool for tool in (await router.respond("tools/list", {}, host))["tools"]}
            results = {name: (await call(f"shop__{name}"))["structuredContent"] for name in TOOLS}
            for name, sent in results.items():
                schema = listed[f"shop__{name}"].get("outputSchema", {})
                assert jsonschema_rs.validator_for(schema).is_valid(sent), name
            assert len(results["rows"]["rows"]) < 1_000
            assert results["rows"] == results["no_schema"]
            assert results["all_rows"] == results["page"] == {"rows": ROWS}
            assert listed["shop__page"]["outputSchema"] == CLOSED
            handle = re.search(r'handle "(\w+)"', results["rows"]["gateway_left_out"])
            assert handle is not None
            read = await call("gateway_read", handle=handle[1], query="rows[?id==`3999`].name | [0]")
            assert "row 3999" in read["content"][0]["text"]
            whole = await call("gateway_read", handle=handle[1], query="length(rows)")
            assert "4000" in whole["content"][0]["text"]
