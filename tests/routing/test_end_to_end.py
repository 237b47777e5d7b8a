"""The whole path with nothing faked but the host: real upstream processes, real stores, real media workers."""

import base64
import json
import os
import re
import sys
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from io import BytesIO
from pathlib import Path
from typing import Any

import anyio
import pytest
from PIL import Image

from gateway.config.gateway_settings import GatewaySettings
from gateway.config.schema import Settings
from gateway.config.upstream_settings import UpstreamSettings
from gateway.core.model.caller import Caller
from gateway.core.model.revisions import REVISIONS
from gateway.errors import ConfigError, ProfileError, UnknownResource, UnknownTool, UpstreamLost, UpstreamUnavailable
from gateway.routing import Router
from gateway.runtime import open_gateway

pytestmark = pytest.mark.anyio

SERVERS = Path(__file__).parents[1] / "servers"
CODEX = Caller(revision="2025-06-18", client_name="codex-mcp-client")
CLAUDE = Caller(revision="2025-11-25", client_name="claude-code")
CLINE = Caller(revision="2025-11-25", client_name="Cline")
INSPECTOR = Caller(revision="2025-11-25", client_name="inspector-client")
UNKNOWN = Caller(revision="2026-07-28", client_name="some-agent")
HOSTS = [CODEX, CLAUDE, CLINE, INSPECTOR, UNKNOWN, Caller(revision="2024-11-05", client_name="gemini-cli-mcp-client")]


def upstream(script: str) -> UpstreamSettings:
    return UpstreamSettings(command=sys.executable, args=(str(SERVERS / script),))


@asynccontextmanager
async def opened(profile: str | None = None, **more: UpstreamSettings) -> AsyncGenerator[Router]:
    upstreams = {"media": upstream("media_stdio.py"), "sums": upstream("sdk_stdio.py"), **more}
    with anyio.fail_after(120):
        async with open_gateway(Settings(upstreams=upstreams), profile=profile) as router:
            for name in ("media", "sums"):  # however slow the machine is
                assert await router.upstreams[name].ready(60)
            yield router


async def call(router: Router, caller: Caller, name: str, **arguments: Any) -> dict[str, Any]:
    return await router.respond("tools/call", {"name": name, "arguments": arguments}, caller)


def text(result: dict[str, Any]) -> str:
    return "\n".join(block["text"] for block in result["content"] if block["type"] == "text")


def images(result: dict[str, Any]) -> list[Image.Image]:
    blocks = [block for block in result["content"] if block["type"] == "image"]
    return [Image.open(BytesIO(base64.b64decode(block["data"]))).convert("RGB") for block in blocks]


async def test_every_host_is_offered_the_tools_of_all_upstreams_in_one_order():
    async with opened() as router:
        for caller in HOSTS:
            listed = (await router.respond("tools/list", {}, caller))["tools"]
            names = [tool["name"] for tool in listed if not tool["name"].startswith("gateway_")]
            assert names[:2] == ["media__picture", "media__large_picture"]
            assert names[-1] == "sums__add"
            assert [tool["name"] for tool in listed if "outputSchema" in tool] == (
                ["media__both"] if caller is INSPECTOR else []
            )


async def test_a_picture_reaches_every_host_that_shows_pictures_and_no_host_gets_base64_as_text():
    async with opened() as router:
        await router.respond("tools/list", {}, CLAUDE)
        for caller in HOSTS:
            for tool in ("picture", "both", "failing"):
                result = await call(router, caller, f"media__{tool}")
                if caller is CLINE:
                    assert images(result) == []
                    assert re.search(r"image/png, 40x30, .*handle img_\w{12}", text(result))
                else:
                    assert [image.getpixel((7, 9)) for image in images(result)] == [(7, 9, 0)]
                assert not re.search(r"[A-Za-z0-9+/]{200}", text(result))
                assert ("structuredContent" in result) == (tool == "both" and caller is INSPECTOR)


async def test_a_part_of_a_picture_that_was_scaled_down_can_be_looked_at_in_full_detail():
    async with opened() as router:
        result = await call(router, UNKNOWN, "media__large_picture")
        assert images(result)[0].size == (2000, 667)
        handle = re.search(r'gateway_view with handle "(\w+)"', text(result))
        assert handle is not None
        crop = {"left": 2100, "top": 400, "width": 200, "height": 100}
        part = await call(router, UNKNOWN, "gateway_view", handle=handle[1], crop=crop)
        assert images(part)[0].size == (200, 100)
        assert images(part)[0].getpixel((5, 6)) == (2105 % 256, 406 % 256, 2105 // 256)
        assert "add 2100 to x and 400 to y" in text(part)
        foreign = await call(router, Caller(principal="somebody else"), "gateway_view", handle=handle[1])
        assert foreign["isError"] is True
        explained = await call(router, CLINE, "gateway_view", handle=handle[1])
        assert "does not show images" in text(explained)


async def test_a_long_text_that_was_cut_can_be_read_to_its_end():
    whole = "".join(f"line {number}\n" for number in range(20_000))
    async with opened() as router:
        result = await call(router, CLINE, "media__words", lines=20_000)
        assert len(text(result)) < 7_500
        found = re.search(r'gateway_read, handle "(\w+)", offset (\d+)', text(result))
        assert found is not None
        pieces, offset = whole[: int(found[2])], int(found[2])
        assert text(result).startswith(pieces)
        while offset < len(whole):
            part = text(await call(router, CODEX, "gateway_read", handle=found[1], offset=offset))
            piece = part.rpartition("\n[characters ")[0]
            pieces, offset = pieces + piece, offset + len(piece)
        assert pieces == whole


async def test_a_crash_costs_the_running_call_and_the_next_one_finds_a_new_process():
    async with opened() as router:
        before = text(await call(router, CODEX, "media__pid"))
        with pytest.raises(UpstreamLost):
            await call(router, CODEX, "media__crash")
        assert text(await call(router, CODEX, "sums__add", a=2, b=3)) == "5"
        after = text(await call(router, CODEX, "media__pid"))
        assert after != before
    with pytest.raises(ProcessLookupError):
        os.kill(int(after), 0)


async def test_an_upstream_that_cannot_start_is_named_with_its_cause_and_costs_the_others_nothing():
    async with opened(broken=UpstreamSettings(command="no-such-program-anywhere")) as router:
        assert text(await call(router, CODEX, "sums__add", a=2, b=3)) == "5"
        with pytest.raises(UpstreamUnavailable) as caught:
            await call(router, CODEX, "broken__tool")
        assert "no-such-program-anywhere" in caught.value.message
        with pytest.raises(UnknownTool) as unknown:
            await call(router, CODEX, "media__pictures")
        assert "media__picture" in unknown.value.message


async def test_resources_are_listed_and_read_in_every_revision():
    async with opened() as router:
        await call(router, Caller(principal="ann"), "media__words", lines=20_000)
        for revision in REVISIONS:
            ann = Caller(revision=revision, principal="ann")
            listed = (await router.respond("resources/list", {}, ann))["resources"]
            templates = (await router.respond("resources/templates/list", {}, ann))["resourceTemplates"]
            assert listed[0]["uri"] == "file:///notes.txt"
            assert [template["uriTemplate"] for template in templates] == ["db://{table}"]
            for uri, expected in (("file:///notes.txt", "notes"), ("db://users", "ann, bob")):
                read = await router.respond("resources/read", {"uri": uri}, ann)
                assert read == {"contents": [{"uri": uri, "mimeType": "text/plain", "text": expected}]}
            stored = listed[-1]["uri"]
            assert stored.startswith("content://txt_")
            read = await router.respond("resources/read", {"uri": stored}, ann)
            assert read["contents"][0]["text"].endswith("line 19999\n")
            for uri, caller in ((stored, Caller(revision=revision, principal="bob")), ("file:///none", ann)):
                with pytest.raises(UnknownResource):
                    await router.respond("resources/read", {"uri": uri}, caller)


async def test_a_link_in_a_result_can_be_read_though_it_is_not_listed():
    async with opened() as router:
        line = text(await call(router, CODEX, "media__link"))
        assert "<made://unlisted>" in line
        assert text(await call(router, CODEX, "gateway_read", uri="made://unlisted")).startswith("made here\n")


async def test_an_explicit_profile_is_in_force_for_every_host_that_names_none():
    async with opened(profile="inspector") as router:
        assert "structuredContent" in await call(router, CODEX, "media__both")
        asked = Caller(revision="2025-11-25", profile="codex")
        assert "structuredContent" not in await call(router, asked, "media__both")


async def test_an_error_of_whoever_uses_the_gateway_leaves_it_as_it_is():
    with pytest.raises(UnknownTool):
        async with opened() as router:
            await call(router, CODEX, "no_such_tool")


async def test_what_cannot_be_opened_says_why():
    with pytest.raises(ProfileError):
        async with open_gateway(Settings(), profile="claude-cod"):
            pass
    with pytest.raises(ConfigError):
        async with open_gateway(Settings(gateway=GatewaySettings(profile="no-such"))):
            pass


@pytest.mark.parametrize("flags", [(), ("modern",)])
async def test_prompts_completions_and_user_interfaces_of_a_server_arrive_as_they_are(flags: tuple[str, ...]):
    raw = UpstreamSettings(
        command=sys.executable, args=(str(SERVERS / "raw_stdio.py"), "prompts", "apps", *flags), cwd=SERVERS
    )
    with anyio.fail_after(60):
        async with open_gateway(Settings(upstreams={"raw": raw}), profile="passthrough") as router:
            assert await router.upstreams["raw"].ready(30)
            listed = await router.respond("prompts/list", {}, UNKNOWN)
            review, greet = listed["prompts"]
            asked = {"name": "raw__review", "arguments": {"code": "x = 1"}}
            prompt = await router.respond("prompts/get", asked, UNKNOWN)
            ref = {"ref": {"type": "ref/prompt", "name": "raw__review"}, "argument": {"name": "code", "value": "x"}}
            completed = await router.respond("completion/complete", ref, UNKNOWN)
            tools = (await router.respond("tools/list", {}, UNKNOWN))["tools"]
            (uri,) = {tool["_meta"]["ui"]["resourceUri"] for tool in tools if "_meta" in tool}
            shown = await router.respond("resources/read", {"uri": uri}, UNKNOWN)
    assert (review["name"], review["icons"], review["_meta"]) == (
        "raw__review",
        [{"src": "data:image/png;base64,AAAA"}],
        {"a/b": 1},
    )
    assert review["arguments"] == [{"name": "code", "title": "The code", "required": True, "later": 1}]
    assert greet == {"name": "raw__greet"}
    assert listed["_meta"] == {"raw/page": 2, "raw/first": True}
    assert listed.get("ttlMs") == (5_000 if flags else None)
    assert [message["content"]["type"] for message in prompt["messages"]] == ["resource_link", "image", "video"]
    assert prompt["messages"][2]["later"] is None
    assert (prompt["later"], prompt["asked"]["name"]) == ({"kept": True}, "review")
    assert completed["completion"] == {"values": ["review"], "later": 1}
    assert completed["asked"]["argument"] == ref["argument"]
    assert shown["contents"] == [
        {
            "uri": "ui://raw/raw/board",
            "mimeType": "text/html;profile=mcp-app",
            "text": "<!doctype html><title>board</title>",
            "_meta": {"ui": {"csp": {"connectDomains": ["https://example.org"]}, "prefersBorder": True}},
        }
    ]
    assert shown["ttlMs"] == 700


@pytest.mark.parametrize("name", ["Visual Studio Code", "cursor-vscode", "claude-ai", "goose", "openai-mcp", "anybody"])
async def test_what_a_page_asks_for_arrives_whole_in_every_host(name: str):
    """Two of the same server: a page of one of them calls a tool by the name that both have."""
    raw = UpstreamSettings(command=sys.executable, args=(str(SERVERS / "raw_stdio.py"), "apps"), cwd=SERVERS)
    host = Caller(
        revision="2026-07-28", client_name=name, capabilities={"extensions": {"io.modelcontextprotocol/ui": {}}}
    )
    with anyio.fail_after(60):
        async with open_gateway(Settings(upstreams={"one": raw, "two": raw})) as router:
            for upstream in ("one", "two"):
                assert await router.upstreams[upstream].ready(30)
            with pytest.raises(UnknownTool):
                await call(router, host, "chunk")
            shown = await router.respond("resources/read", {"uri": "ui://two/raw/board"}, host)
            results = [await call(router, host, tool) for tool in ("chunk", "two__chunk")]
            with pytest.raises(UnknownTool):
                await call(router, host, "one__chunk")  # no page of `one` is open
    assert shown["contents"][0]["uri"] == "ui://two/raw/board"
    for result in results:
        assert len(json.loads(text(result))["bytes"]) == 200_000
        assert result["structuredContent"] == [1]
