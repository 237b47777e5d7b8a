"""Real clients and hosts whose model writes a script: twenty screenshots are taken, and it sees the two that differ.

The hosts with a scripted model are those that `make lab HOSTS="codex opencode"` has installed; the others are skipped.
"""

import base64
import dataclasses
import io
import re
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
from PIL import Image

from examples.screenshots.server import CHANGED, SIZE, drawn
from gateway.core.own_names import RUN_TOOL
from gateway.testing.model_apis.read_request import Conversation
from gateway.testing.model_apis.scripts import Reply, ToolCall
from gateway.testing.model_apis.server import model_server
from lab.host_models import host_models
from lab.host_run import HostStage, start_host, write_program
from lab.hosts import hosts
from lab.serve_models import serve_models
from tests.real.conftest import COMMAND, ROOT

SCRIPT = ROOT / "examples" / "screenshots" / "compare_pages.py"
FOUND = f"page {CHANGED}: "
BROWSER = {"command": sys.executable, "args": ["-m", "examples.screenshots"], "cwd": str(ROOT)}


def check(pictures: Sequence[str]) -> None:
    """The two versions of the page that has changed, to the pixel."""
    assert len(pictures) == 2
    for site, data in zip(("old", "new"), pictures, strict=True):
        seen, right = (Image.open(io.BytesIO(one)) for one in (base64.b64decode(data), drawn(site, CHANGED)))
        assert seen.size == SIZE
        assert seen.convert("RGB").tobytes() == right.convert("RGB").tobytes()


@pytest.mark.parametrize(
    ("client", "mode"),
    [("python_sdk", "2026-07-28"), ("typescript_sdk", "legacy"), ("ai_sdk", "auto"), ("pydantic_ai", "auto")],
)
def test_a_client_gets_what_a_script_has_printed_and_shown(
    run: Any, configure: Callable[..., Path], client: str, mode: str
) -> None:
    config = configure({"browser": BROWSER}, profile="patient", code_mode={"enabled": True})
    command = [*COMMAND, "--config", str(config)]
    outcome = run(
        client,
        mode=mode,
        transport="stdio",
        command=command,
        tool=RUN_TOOL,
        arguments={"code": SCRIPT.read_text("utf-8")},
    )
    assert RUN_TOOL in outcome.tools
    assert sum(FOUND in text for text in outcome.texts) == 1
    check([data for _, data in outcome.images])


class ScriptingModel:
    """A model that writes the script, once, for the tool that runs it."""

    def __call__(self, conversation: Conversation) -> Reply:
        if "which pages have changed" not in " ".join(message.text for message in conversation.messages):
            return Reply(text="The lab")
        called = [call.name for message in conversation.messages for call in message.calls]
        if any(name.endswith(RUN_TOOL) for name in called):
            return Reply(text="This page has changed.")
        for name in conversation.tools:
            if name.endswith(RUN_TOOL):
                return Reply(calls=(ToolCall(name, {"code": SCRIPT.read_text("utf-8")}),))
        for name in conversation.tools:
            if name.endswith("tool_search"):
                return Reply(calls=(ToolCall(name, {"query": RUN_TOOL}),))
        raise AssertionError(f"{RUN_TOOL} is not offered: {conversation.tools}")


@pytest.mark.parametrize("name", ["codex", "opencode"])
def test_the_model_of_a_host_sees_what_its_script_has_shown(
    configure: Callable[..., Path], name: str, tmp_path: Path
) -> None:
    (host,) = hosts(name)
    if not host.programs.exists():
        pytest.skip(f'{name} is not installed: run `make lab HOSTS="{name}"`')
    api = next(each for each in host.apis if each.name == "openai_responses")
    config = configure(
        {"browser": BROWSER},
        code_mode={"enabled": True},
        **{"profiles.lab": {"extends": api.profile}, "profiles.lab.sets": {"wait.tools_list": 60}},
    )
    app = model_server(ScriptingModel())
    serve = [*COMMAND, "--config", str(config), "--profile", "lab"]
    with serve_models(host_models(app, (api.model,))) as models:
        on = HostStage(models, app, {"gateway": write_program(tmp_path / "gateway", serve)}, tmp_path)
        patient = dataclasses.replace(host, seconds=150)
        said = start_host(patient, api, "gateway", on, "Please tell which pages have changed.")
    bodies = [request.body.decode("utf-8", "replace") for request in app.requests]
    last = next((body for body in reversed(bodies) if FOUND in body), None)
    assert last is not None, said
    check(re.findall(r"data:image/png;base64,([A-Za-z0-9+/=]+)", last))
