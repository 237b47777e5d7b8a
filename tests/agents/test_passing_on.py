"""An agent loop in which the model passes what one tool has shown it on to another."""

import base64
import json
import re
import sys
from pathlib import Path

import anyio
import pytest

import gateway
from gateway.config.schema import Settings

pytestmark = pytest.mark.anyio

SERVER = Path(__file__).parents[1] / "servers" / "content_stdio.py"


async def test_a_picture_that_the_model_was_shown_is_given_to_another_tool_by_its_handle(chat, tmp_path: Path) -> None:
    log = tmp_path / "log"
    command = {"command": sys.executable, "args": [str(SERVER)]}
    upstreams = {"a": command, "b": {**command, "args": [str(SERVER), str(log)]}}
    with anyio.fail_after(60):
        async with gateway.open(Settings.model_validate({"upstreams": upstreams})) as gw:
            tools = gw.toolset(api="openai_chat")
            shown = await tools.respond(chat(("a__picture", {})))
            url = shown[-1]["content"][-1]["image_url"]["url"]
            named = re.search(r"its handle for tools is (img_\w{12})", json.dumps(shown))
            assert named is not None
            await tools.respond(chat(("b__see", {"photo": named[1]})))
    (received,) = map(json.loads, log.read_text("utf-8").splitlines())
    assert received["arguments"]["photo"] == url.removeprefix("data:image/png;base64,")
    assert base64.b64decode(received["arguments"]["photo"]).startswith(b"\x89PNG")
