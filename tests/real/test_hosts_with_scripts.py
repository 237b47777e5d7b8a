"""Real hosts with a scripted model, whose script calls the tools of a toolset and shows one picture of many.

The hosts are those that `make lab HOSTS="codex opencode"` has installed, as in test_searching_hosts.
"""

from pathlib import Path
from typing import Any

import pytest

from gateway.core.own_names import RUN_TOOL
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

COLOURS = {2021: (200, 40, 40), 2022: (40, 200, 40), 2023: (40, 40, 200)}
TASK = "compare the harvests"
SCRIPT = """\
results = [shop__chart_2021(), shop__chart_2022(), shop__chart_2023()]
pictures = [picture for result in results for picture in media(result)]
print(f"{len(pictures)} charts; this is the last")
show(pictures[-1])
"""
SETTINGS = """
    sets.tools.search = "never"

    [toolsets.garden]
    tools = ["shop__chart_*"]

    [code_mode]
    enabled = true
"""


def catalogue() -> dict[str, Any]:
    """A tool for the chart of each year, and one that is not in the toolset."""
    names = [*(f"chart_{year}" for year in COLOURS), "burn_the_garden"]
    schema, only_reads = {"type": "object"}, {"readOnlyHint": True}
    tools = [{"name": name, "description": name, "inputSchema": schema, "annotations": only_reads} for name in names]
    drawn = {
        f"chart_{year}": {
            "content": [
                {"type": "text", "text": f"The harvest of {year}:"},
                {"type": "image", "data": picture(colour), "mimeType": "image/png"},
            ]
        }
        for year, colour in COLOURS.items()
    }
    return {"tools": tools, "results": drawn}


def scripting(conversation: Conversation) -> Reply:
    """A model that writes the script, once."""
    if TASK not in " ".join(message.text for message in conversation.messages):
        return Reply(text="The lab")
    if any("charts; this is the last" in message.text for message in conversation.messages if message.answers):
        return Reply(text="They are the same.")
    return call_offered(conversation, RUN_TOOL, {"code": SCRIPT})


@pytest.mark.parametrize("name", ["codex", "opencode"])
def test_a_script_calls_the_tools_of_the_toolset_and_the_model_sees_the_one_picture_that_it_shows(
    name: str, tmp_path: Path
) -> None:
    host, api = installed_host(name)
    with stage(api, tmp_path, catalogue(), scripting, SETTINGS, "--toolset", "garden") as (on, app):
        said = ask_host(host, api, on, f"Please {TASK}.")
    assert calls_of(tmp_path) == [[f"chart_{year}", {}] for year in COLOURS], said
    bodies = bodies_of(app)
    assert colours_shown(bodies) == [COLOURS[2023]], said
    assert not any("burn_the_garden" in body for body in bodies)
