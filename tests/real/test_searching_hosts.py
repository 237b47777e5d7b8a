"""Real hosts with a scripted model, which finds one of a thousand tools, calls it, and gets its picture, however late.

The hosts are those that `make lab HOSTS="codex opencode"` has installed; the others are skipped, in CI too, because
`make setup` installs none.
"""

import base64
import dataclasses
import io
import json
import re
import sys
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from PIL import Image

from gateway.core.wording import CALL_TOOL, FIND_TOOL
from gateway.testing.model_apis.read_request import Conversation
from gateway.testing.model_apis.scripts import Reply, ToolCall
from gateway.testing.model_apis.server import ModelServer, model_server
from lab.host_models import host_models
from lab.host_run import HostStage, start_host, write_program
from lab.hosts import HostApi, hosts
from lab.serve_models import serve_models

SERVER = Path(__file__).parents[1] / "servers" / "scripted_stdio.py"
COLOUR = (20, 160, 90)
WAIT_TOOL = "gateway_wait"
LIMIT = 6
"""Seconds that the hosts are said to wait for a call: they are answered after two thirds of them."""
THINGS = [f"{what} {where}" for what in ("invoice", "ticket", "parcel", "letter", "order") for where in range(200)]
_RUNNING = re.compile(r"call gateway_wait with call (c_[a-z0-9]{16})")
_SIGNATURE = re.compile(r"\b(shop__[a-z0-9_]+)\(")


def picture() -> str:
    buffer = io.BytesIO()
    Image.new("RGB", (64, 48), COLOUR).save(buffer, "PNG")
    return base64.b64encode(buffer.getvalue()).decode()


def catalogue(seconds: float) -> dict[str, Any]:
    """A thousand tools, one of which draws a chart of the harvest in so many seconds."""
    schema = {"type": "object", "properties": {"id": {"type": "string"}}}
    tools = [
        {"name": thing.replace(" ", "_"), "description": f"Look up {thing} by its id.", "inputSchema": schema}
        for thing in THINGS[1:]
    ]
    years = {"type": "object", "properties": {"year": {"type": "integer"}}, "required": ["year"]}
    chart = {"name": "harvest_chart", "description": "Draws a chart of the pears of a year.", "inputSchema": years}
    content = [{"type": "text", "text": "The harvest:"}, {"type": "image", "data": picture(), "mimeType": "image/png"}]
    results = {"harvest_chart": {"content": content, "seconds": seconds}}
    return {"tools": [*tools[:500], chart, *tools[500:]], "results": results}


class SearchingModel:
    """A model that searches for a tool by what it should do, calls what it has read the name of, and waits for it.

    It asks its host for tools that the host defers.
    """

    def __call__(self, conversation: Conversation) -> Reply:
        if "draw the harvest" not in " ".join(message.text for message in conversation.messages):
            return Reply(text="The lab")
        called = [call.name for message in conversation.messages for call in message.calls]
        results = [message.text for message in conversation.messages if message.answers]
        found = [name for text in results for name in _SIGNATURE.findall(text)]
        running = [call for text in results for call in _RUNNING.findall(text)]
        if running and (results[-1].count(running[-1]) or called[-1].endswith("tool_search")):
            return self._call(conversation, WAIT_TOOL, {"call": running[-1]})
        if any(name.endswith(CALL_TOOL) for name in called):
            return Reply(text="This is the harvest.")
        if found:
            return self._call(conversation, CALL_TOOL, {"name": found[0], "arguments": {"year": 2026}})
        return self._call(conversation, FIND_TOOL, {"query": "draw a chart of pears"})

    def _call(self, conversation: Conversation, tool: str, arguments: dict[str, Any]) -> Reply:
        for name in conversation.tools:
            if name.endswith(tool):
                return Reply(calls=(ToolCall(name, arguments),))
        for name in conversation.tools:
            if name.endswith("tool_search"):
                return Reply(calls=(ToolCall(name, {"query": tool}),))
        raise AssertionError(f"{tool} is not offered: {conversation.tools}")


@contextmanager
def stage(api: HostApi, folder: Path, seconds: float) -> Generator[tuple[HostStage, ModelServer]]:
    """A gateway before the thousand tools, and the model."""
    (folder / "script.json").write_text(json.dumps(catalogue(seconds)), "utf-8")
    config = folder / "mcp-gateway.toml"
    config.write_text(
        f"""
        [upstreams.shop]
        command = {json.dumps(sys.executable)}
        args = {json.dumps([str(SERVER), str(folder / "script.json")])}

        [profiles.lab]
        extends = "{api.profile}"
        sets.wait.tools_list = "60s"
        sets.tools.search = "always"
        sets.wait.call = {LIMIT}
        sets.wait.progress_resets = false
        """,
        "utf-8",
    )
    app = model_server(SearchingModel())
    serve = [sys.executable, "-m", "gateway", "serve", "--config", str(config), "--profile", "lab"]
    with serve_models(host_models(app, (api.model,))) as models:
        yield HostStage(models, app, {"gateway": write_program(folder / "gateway", serve)}, folder), app


@pytest.mark.parametrize("seconds", [0, LIMIT + 2], ids=["at-once", "late"])
@pytest.mark.parametrize("name", ["codex", "opencode"])
def test_the_model_finds_one_of_a_thousand_tools_and_gets_its_picture(
    name: str, seconds: float, tmp_path: Path
) -> None:
    (host,) = hosts(name)
    if not host.programs.exists():
        pytest.skip(f'{name} is not installed: run `make lab HOSTS="{name}"`')
    api = next(each for each in host.apis if each.name == "openai_responses")
    with stage(api, tmp_path, seconds) as (on, app):
        patient = dataclasses.replace(host, seconds=150)
        said = start_host(patient, api, "gateway", on, "Please draw the harvest of 2026.")
    calls = tmp_path / "script.json.calls"
    assert calls.exists(), said
    assert [json.loads(line) for line in calls.read_text("utf-8").splitlines()] == [["harvest_chart", {"year": 2026}]]
    bodies = [request.body.decode("utf-8", "replace") for request in app.requests]
    assert max(sum(thing.replace(" ", "_") in body for thing in THINGS) for body in bodies) < 20, "of a thousand"
    assert any(_RUNNING.search(body) for body in bodies) == (seconds > LIMIT)
    shown = [image for body in bodies for image in re.findall(r"data:image/png;base64,([A-Za-z0-9+/=]+)", body)]
    assert shown, said
    assert Image.open(io.BytesIO(base64.b64decode(shown[-1]))).convert("RGB").getpixel((5, 5)) == COLOUR
