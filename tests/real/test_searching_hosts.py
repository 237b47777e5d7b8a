"""Real hosts with a scripted model, which finds one of a thousand tools, calls it, and gets its picture, however late.

The hosts are those that `make lab HOSTS="codex opencode"` has installed; the others are skipped, in CI too, because
`make setup` installs none.
"""

import re
from pathlib import Path
from typing import Any

import pytest

from gateway.core.own_names import CALL_TOOL, FIND_TOOL
from gateway.testing.model_apis.read_request import Conversation
from gateway.testing.model_apis.scripts import Reply
from tests.real.scripted_hosts import (
    ask_host,
    bodies_of,
    call_offered,
    calls_of,
    colours_shown,
    installed_host,
    picture,
    stage,
)

COLOUR = (20, 160, 90)
WAIT_TOOL = "gateway_wait"
LIMIT = 6
"""Seconds that the hosts are said to wait for a call: they are answered after two thirds of them."""
THINGS = [f"{what} {where}" for what in ("invoice", "ticket", "parcel", "letter", "order") for where in range(200)]
_RUNNING = re.compile(r"call gateway_wait with call (c_[a-z0-9]{16})")
_SIGNATURE = re.compile(r"\b(shop__[a-z0-9_]+)\(")


def catalogue(seconds: float) -> dict[str, Any]:
    """A thousand tools, one of which draws a chart of the harvest in so many seconds."""
    schema = {"type": "object", "properties": {"id": {"type": "string"}}}
    tools = [
        {"name": thing.replace(" ", "_"), "description": f"Look up {thing} by its id.", "inputSchema": schema}
        for thing in THINGS[1:]
    ]
    years = {"type": "object", "properties": {"year": {"type": "integer"}}, "required": ["year"]}
    chart = {"name": "harvest_chart", "description": "Draws a chart of the pears of a year.", "inputSchema": years}
    content = [
        {"type": "text", "text": "The harvest:"},
        {"type": "image", "data": picture(COLOUR), "mimeType": "image/png"},
    ]
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
            return call_offered(conversation, WAIT_TOOL, {"call": running[-1]})
        if any(name.endswith(CALL_TOOL) for name in called):
            return Reply(text="This is the harvest.")
        if found:
            return call_offered(conversation, CALL_TOOL, {"name": found[0], "arguments": {"year": 2026}})
        return call_offered(conversation, FIND_TOOL, {"query": "draw a chart of pears"})


SETTINGS = f"""
    sets.tools.search = "always"
    sets.wait.call = {LIMIT}
    sets.wait.progress_resets = false
"""


@pytest.mark.parametrize("seconds", [0, LIMIT + 2], ids=["at-once", "late"])
@pytest.mark.parametrize("name", ["codex", "opencode"])
def test_the_model_finds_one_of_a_thousand_tools_and_gets_its_picture(
    name: str, seconds: float, tmp_path: Path
) -> None:
    host, api = installed_host(name)
    with stage(api, tmp_path, catalogue(seconds), SearchingModel(), SETTINGS) as (on, app):
        said = ask_host(host, api, on, "Please draw the harvest of 2026.")
    assert calls_of(tmp_path) == [["harvest_chart", {"year": 2026}]], said
    bodies = bodies_of(app)
    assert max(sum(thing.replace(" ", "_") in body for thing in THINGS) for body in bodies) < 20, "of a thousand"
    assert any(_RUNNING.search(body) for body in bodies) == (seconds > LIMIT)
    assert colours_shown(bodies) == [COLOUR], said
