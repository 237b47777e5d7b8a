"""Real hosts of the lab with a scripted model, before a gateway and a server that does what a file says."""

import base64
import dataclasses
import io
import json
import re
import sys
from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from PIL import Image

from gateway.testing.model_apis.read_request import Conversation
from gateway.testing.model_apis.scripts import Reply, ToolCall
from gateway.testing.model_apis.server import ModelServer, model_server
from lab.host_models import host_models
from lab.host_run import HostStage, start_host, write_program
from lab.hosts import Host, HostApi, hosts
from lab.serve_models import serve_models

_SERVER = Path(__file__).parents[1] / "servers" / "scripted_stdio.py"
_PATIENCE = 150

Model = Callable[[Conversation], Reply]


def installed_host(name: str) -> tuple[Host, HostApi]:
    """A host that `make lab` has installed, on OpenAI's Responses; the test is skipped without it, in CI too."""
    (host,) = hosts(name)
    if not host.programs.exists():
        pytest.skip(f'{name} is not installed: run `make lab HOSTS="{name}"`')
    return host, next(each for each in host.apis if each.name == "openai_responses")


def picture(colour: tuple[int, int, int]) -> str:
    buffer = io.BytesIO()
    Image.new("RGB", (64, 48), colour).save(buffer, "PNG")
    return base64.b64encode(buffer.getvalue()).decode()


def call_offered(conversation: Conversation, tool: str, arguments: Mapping[str, Any]) -> Reply:
    """Call a tool by the end of its name, as a host offers it, or ask the host for it if it defers tools."""
    for name in conversation.tools:
        if name.endswith(tool):
            return Reply(calls=(ToolCall(name, dict(arguments)),))
    for name in conversation.tools:
        if name.endswith("tool_search"):
            return Reply(calls=(ToolCall(name, {"query": tool}),))
    raise AssertionError(f"{tool} is not offered: {conversation.tools}")


@contextmanager
def stage(
    api: HostApi, folder: Path, script: Mapping[str, Any], model: Model, settings: str, *options: str
) -> Generator[tuple[HostStage, ModelServer]]:
    """A gateway before the server `shop`, with further settings and options of `serve`, and the model."""
    (folder / "script.json").write_text(json.dumps(script), "utf-8")
    config = folder / "mcp-gateway.toml"
    config.write_text(
        f"""
        [upstreams.shop]
        command = {json.dumps(sys.executable)}
        args = {json.dumps([str(_SERVER), str(folder / "script.json")])}

        [profiles.lab]
        extends = "{api.profile}"
        sets.wait.tools_list = "60s"
        {settings}
        """,
        "utf-8",
    )
    app = model_server(model)
    serve = [sys.executable, "-m", "gateway", "serve", "--config", str(config), "--profile", "lab", *options]
    with serve_models(host_models(app, (api.model,))) as models:
        yield HostStage(models, app, {"gateway": write_program(folder / "gateway", serve)}, folder), app


def ask_host(host: Host, api: HostApi, on: HostStage, asked: str) -> str:
    """Run the host once with a task; return the end of what it said."""
    return start_host(dataclasses.replace(host, seconds=_PATIENCE), api, "gateway", on, asked)


def calls_of(folder: Path) -> list[list[Any]]:
    """What the server was asked for: the tools with their arguments."""
    calls = folder / "script.json.calls"
    return [json.loads(line) for line in calls.read_text("utf-8").splitlines()] if calls.exists() else []


def bodies_of(app: ModelServer) -> list[str]:
    """What the host sent to the model API, request by request."""
    return [request.body.decode("utf-8", "replace") for request in app.requests]


def colours_shown(bodies: list[str]) -> list[tuple[int, int, int]]:
    """The colours of all pictures that the model was shown, each once, in order."""
    found = [data for body in bodies for data in re.findall(r"data:image/png;base64,([A-Za-z0-9+/=]+)", body)]
    images = (Image.open(io.BytesIO(base64.b64decode(data))).convert("RGB") for data in dict.fromkeys(found))
    return [image.getpixel((5, 5)) for image in images]  # pyright: ignore[reportReturnType] - of RGB
