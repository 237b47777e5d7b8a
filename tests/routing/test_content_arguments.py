"""Content in arguments, from end to end: a handle that a result named is given to another tool of a real server."""

import base64
import json
import logging
import re
import sys
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import pytest

from gateway.config.content_settings import LimitSettings
from gateway.config.schema import Settings
from gateway.config.upstream_settings import UpstreamSettings
from gateway.core.model.caller import Caller
from gateway.routing import Router
from gateway.runtime import open_gateway

pytestmark = pytest.mark.anyio

SERVER = Path(__file__).parents[1] / "servers" / "content_stdio.py"
ANN = Caller(revision="2025-11-25", client_name="claude-code", principal="ann")
BOB = Caller(revision="2025-11-25", client_name="claude-code", principal="bob")
PNG_START = b"\x89PNG\r\n\x1a\n"


def settings(tmp_path: Path, *, limits: dict[str, Any] | None = None, **b: Any) -> Settings:
    """Two of the same server: `a` gives content, `b` takes it and logs what it was given."""
    command = {"command": sys.executable, "args": [str(SERVER)]}
    taking = {"command": sys.executable, "args": [str(SERVER), str(tmp_path / "log")], **b}
    upstreams = {name: UpstreamSettings.model_validate(each) for name, each in (("a", command), ("b", taking))}
    return Settings(upstreams=upstreams, limits=LimitSettings(**limits or {}))


@asynccontextmanager
async def opened(chosen: Settings) -> AsyncGenerator[Router]:
    with anyio.fail_after(120):
        async with open_gateway(chosen) as router:
            for name in chosen.upstreams:
                assert await router.upstreams[name].ready(60)
            yield router


async def call(router: Router, name: str, caller: Caller = ANN, **arguments: Any) -> dict[str, Any]:
    return await router.respond("tools/call", {"name": name, "arguments": arguments}, caller)


def text(result: dict[str, Any]) -> str:
    return "\n".join(block["text"] for block in result["content"] if block["type"] == "text")


async def handle_of(router: Router, tool: str, caller: Caller = ANN) -> str:
    """The handle that the result of a tool names."""
    found = re.search(r"handle (?:for tools is )?\"?(\w{3}_\w{12})", text(await call(router, tool, caller)))
    assert found is not None
    return found[1]


def received(tmp_path: Path) -> list[dict[str, Any]]:
    log = tmp_path / "log"
    return [json.loads(line) for line in log.read_text("utf-8").splitlines()] if log.exists() else []


async def test_each_tool_gets_content_in_the_form_that_its_own_schema_asks_for(tmp_path: Path):
    async with opened(settings(tmp_path)) as router:
        handle = await handle_of(router, "a__picture")
        await call(router, "b__see", photo=handle)
        await call(router, "b__pair", image={"data": f"content://{handle}"})
        await call(router, "b__uri", file=handle.upper())
        await call(router, "b__typed", photo=handle)
        await call(router, "b__album", photos=[{"photo": handle, "title": handle}, {"photo": "aGk=", "title": "t"}])
        see, pair, uri, typed, album = (each["arguments"] for each in received(tmp_path))
    data = see["photo"]
    assert base64.b64decode(data, validate=True).startswith(PNG_START)
    assert pair == {"image": {"data": data, "mimeType": "image/png"}}
    assert uri == {"file": f"data:image/png;base64,{data}"}
    assert typed["photo"] == {
        "kind": "image",
        "handle_id": handle,
        "mime_type": "image/png",
        "byte_size": len(base64.b64decode(data)),
        "display_name": None,
        "source": {"type": "base64", "data": data},
    }
    # What is no parameter for content is never touched, though it holds a handle; nor is base64 that fits already.
    assert album == {"photos": [{"photo": data, "title": handle}, {"photo": "aGk=", "title": "t"}]}


async def test_hosts_are_told_where_handles_will_do_and_shown_everything_else_as_it_was(tmp_path: Path):
    async with opened(settings(tmp_path)) as router:
        tools = {tool["name"]: tool for tool in (await router.respond("tools/list", {}, ANN))["tools"]}
    see = tools["b__see"]["inputSchema"]["properties"]["photo"]
    assert see["type"] == "string"
    assert see["description"].startswith("What to look at. [Takes an image (image/*): its handle")
    assert "URL" not in see["description"]
    assert "contentEncoding" not in see
    assert tools["b__pair"]["inputSchema"]["properties"]["image"]["required"] == ["data"]
    assert tools["b__plain"]["inputSchema"] == {"type": "object", "properties": {"words": {"type": "string"}}}


async def test_a_model_can_be_told_what_there_is_to_give(tmp_path: Path):
    bare = Caller(revision="2025-11-25", client_name="inspector-client", principal="ann")
    async with opened(settings(tmp_path)) as router:
        handle = await handle_of(router, "a__picture")
        prompts = (await router.respond("prompts/list", {}, ANN))["prompts"]
        assert [prompt["name"] for prompt in prompts] == ["gateway_content"]
        asked = await router.respond("prompts/get", {"name": "gateway_content"}, ANN)
        note = asked["messages"][0]["content"]["text"]
        assert f"- {handle}: image/png, " in note
        read = await router.respond("resources/read", {"uri": "content://directory"}, ANN)
        assert read["contents"][0]["text"] == note
        ref = {"ref": {"type": "ref/prompt", "name": "gateway_content"}, "argument": {"name": "x", "value": ""}}
        assert (await router.respond("completion/complete", ref, ANN))["completion"]["values"] == []
        # A host that is shown everything as it is gets nothing of ours.
        assert (await router.respond("prompts/list", {}, bare))["prompts"] == []


async def test_results_name_no_handles_where_no_tool_takes_any(tmp_path: Path):
    chosen = settings(tmp_path, enabled=False)
    chosen = chosen.model_copy(update={"upstreams": {"a": chosen.upstreams["a"].model_copy(update={"accept": "none"})}})
    async with opened(chosen) as router:
        assert text(await call(router, "a__picture")) == ""


async def test_a_path_is_a_private_file_that_is_gone_after_the_call(tmp_path: Path):
    content = {"open": {"path": {"kind": "image", "as": "path"}}}
    async with opened(settings(tmp_path, tools={"content": content})) as router:
        handle = await handle_of(router, "a__picture")
        await call(router, "b__open", path=handle)
        await call(router, "b__open", path="/no/such/file.png")
        given, plain = received(tmp_path)
    path = Path(given["arguments"]["path"])
    assert path.name == f"{handle}.png"
    assert base64.b64decode(given["content"]).startswith(PNG_START)
    assert given["modes"] == [0o600, 0o700]
    assert not path.exists()
    assert not path.parent.parent.exists()
    assert plain["arguments"] == {"path": "/no/such/file.png"}


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"tool": "hear", "sound": "IMAGE"}, r"sound: audio of type audio/\* is required, and img_\w+ is an image"),
        ({"tool": "see", "photo": "img_000000000000"}, "photo: there is no content with the handle"),
        ({"tool": "see", "photo": "content://nonsense"}, "photo: there is no content with the handle"),
        ({"tool": "see", "photo": "img_123"}, None),
        ({"tool": "see", "photo": "img_1234567"}, "photo: there is no content with the handle"),
        ({"tool": "see", "photo": "data:image/png;base64,%%%"}, "photo: the data: URI is malformed"),
        ({"tool": "see", "photo": "data:audio/wav;base64,UklGRiQAAABXQVZFZm10IA=="}, "photo: an image .* is required"),
        ({"tool": "uri", "file": "data:audio/wav;base64,UklGRiQAAABXQVZFZm10IA=="}, "file: a file|an image"),
        ({"tool": "album", "photos": [{}, {"photo": "doc_000000000000"}]}, r"photos\[1\].photo: there is no content"),
    ],
)
async def test_what_cannot_be_given_is_told_with_its_argument_and_the_tool_is_not_called(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, arguments: dict[str, Any], words: str | None
):
    caplog.set_level(logging.INFO, "gateway.telemetry.calls")
    async with opened(settings(tmp_path)) as router:
        image = await handle_of(router, "a__picture")
        given: dict[str, Any] = {
            name: image if value == "IMAGE" else value for name, value in arguments.items() if name != "tool"
        }
        result = await call(router, f"b__{arguments['tool']}", **given)
    if words is None:  # too short to be meant as a handle: it is the tool's own business
        assert [each["arguments"] for each in received(tmp_path)] == [given]
        return
    assert result["isError"] is True
    assert re.search(words, text(result)), text(result)
    assert "was not called" in text(result)
    assert received(tmp_path) == []
    assert re.search(rf"call b__{arguments['tool']}: invalid in .*; cause .*{words}", caplog.messages[-1])


async def test_a_handle_of_somebody_else_does_not_exist(tmp_path: Path):
    async with opened(settings(tmp_path)) as router:
        handle = await handle_of(router, "a__picture", ANN)
        foreign = await call(router, "b__see", BOB, photo=handle)
        unknown = await call(router, "b__see", BOB, photo="img_000000000000")
    assert text(foreign).replace(handle, "img_000000000000") == text(unknown)
    assert received(tmp_path) == []


async def test_limits_on_one_argument_and_on_a_whole_call_are_kept(tmp_path: Path):
    async with opened(settings(tmp_path, limits={"argument_bytes": 150, "call_bytes": 250})) as router:
        handle = await handle_of(router, "a__picture")
        photos = [{"photo": handle}] * 3
        whole = await call(router, "b__album", photos=photos)
        large = await call(router, "b__any", blob="data:;base64," + "AAAA" * 51)
        one = await call(router, "b__see", photo=handle)
    assert "photos[2].photo: the content of this call has more than 250 bytes" in text(whole)
    assert "blob: what was given has 153 bytes, and at most 150 bytes are allowed" in text(large)
    assert text(one) == "see was called"


@pytest.mark.parametrize(("accept", "given"), [("any", True), ("own", False), ("none", False)])
async def test_an_upstream_may_be_barred_from_content_that_came_from_others(tmp_path: Path, accept: str, given: bool):
    async with opened(settings(tmp_path, accept=accept)) as router:
        foreign = await handle_of(router, "a__picture")
        own = await handle_of(router, "b__sound") if accept != "none" else foreign
        result = await call(router, "b__any", blob=foreign)
        await call(router, "b__any", blob=own)
        first, *_ = arrived = [each["arguments"]["blob"] for each in received(tmp_path)]
    if accept == "own":
        assert "blob: " in text(result)
        assert "came from a, and b accepts no content of other upstreams" in text(result)
        assert len(arrived) == 1  # its own
    else:
        # Barred from all of it, it is a server like any before: a handle is a text that it may make of what it can.
        assert (first != foreign) is given


async def test_a_failed_tool_that_was_given_a_handle_as_text_says_so_to_its_owner_alone(tmp_path):
    async with opened(settings(tmp_path)) as router:
        handle = await handle_of(router, "a__picture")
        told = f"[album[1] was passed on as the text {handle}: the schema of refuse does not mark album[1] as content"
        given = {"album": ["x", handle], "marked": handle}
        failed = text(await call(router, "b__refuse", **given))
        assert failed.startswith("that is not a picture")
        assert told in failed
        assert "marked" not in failed.replace("mark album", "")
        unknown: dict[str, Any] = {"photo": "img_000000000000"}
        assert text(await call(router, "b__refuse", **unknown)) == "that is not a picture"
        assert "passed on" not in text(await call(router, "b__refuse", BOB, album=[handle]))
        assert text(await call(router, "b__plain", words=handle)) == "plain was called", "it has not failed"
    async with opened(settings(tmp_path, accept="none")) as router:
        assert "passed on" not in text(await call(router, "b__refuse", photo=await handle_of(router, "a__picture")))
