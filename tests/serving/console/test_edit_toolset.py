"""Toolsets changed in the console: shown as a diff with what they would have, written, and in force at once."""

import json
import tomllib
from collections.abc import Generator
from pathlib import Path
from typing import Any

import pytest

from tests.serving.console.browser import Browser, opened
from tests.serving.console.test_servers import PYTHON, until
from tests.telemetry.conftest import SERVERS

ODD = 'say "\u202ehi"\n'
CONFIG = """\
[upstreams.mail]
command = {python}
args = [{server}, {script}]

[upstreams.docs]
command = {python}
args = [{server}, {script}]

# for the day
[toolsets.work]   # mine
upstreams = ["mail"]
exclude = ["mail__delete_*"]
"""


@pytest.fixture
def config(tmp_path: Path) -> Path:
    return tmp_path / "gateway.toml"


@pytest.fixture
def console(config: Path, tmp_path: Path) -> Generator[Browser]:
    names = ("send", "look", "delete_one", "delete_all", ODD)
    tools = [{"name": name, "description": "x", "inputSchema": {"type": "object"}} for name in names]
    script = tmp_path / "script.json"
    script.write_text(json.dumps({"tools": tools, "results": {}}), "utf-8")
    server = json.dumps(str(SERVERS / "scripted_stdio.py"))
    text = CONFIG.format(python=PYTHON, server=server, script=json.dumps(str(script)))
    with opened(config, text) as browser:
        until(lambda: all(browser.json(f"/servers/{name}")["state"] == "ready" for name in ("mail", "docs")))
        yield browser


def toolsets(config: Path) -> dict[str, Any]:
    return tomllib.loads(config.read_text("utf-8")).get("toolsets", {})


def test_ticks_put_single_tools_in_and_leave_them_out(console: Browser, config: Path) -> None:
    before = config.read_text("utf-8")
    listed = [f"{server}__{name}" for server in ("mail", "docs") for name in ("send", "look", "delete_one")]
    form = {"change": "toolset", "name": "work", "listed": listed}
    same = {**form, "offered": ["mail__send", "mail__look"]}
    assert console.post("/changes/show", same)["lines"] == []
    other = {**form, "offered": ["mail__look", "docs__look"]}
    shown = console.post("/changes/show", other)
    assert [line["text"] for line in shown["lines"] if line["kind"] == "added"] == [
        '+exclude = ["mail__delete_*", "mail__send"]',
        '+tools = ["docs__look"]',
    ]
    assert (shown["effect"]["tools"], shown["effect"]["servers"]) == (3, ["mail", "docs"])
    assert "It then has 3 of 10 tools" in console.part("/changes/show", other)
    assert config.read_text("utf-8") == before
    written = console.post("/changes/write", {**other, "mark": shown["mark"]})
    assert (written["problem"], written["applied"]) == (None, ["toolsets.work"])
    assert config.read_text("utf-8").startswith(before[: before.index("exclude")])
    (work,) = console.json("/toolsets")["toolsets"]
    mail, docs = work["servers"]
    assert (mail["has"]["count"], docs["has"]["names"]) == (2, ["look"])  # `look`, and the one that has no tick


def test_patterns_are_edited_as_lists(console: Browser, config: Path) -> None:
    form = {"change": "toolset", "name": "work", "upstreams": "", "tools": "*__look\n\n docs__send \n*__look"}
    console.change(**form)
    assert toolsets(config)["work"] == {"tools": ["*__look", "docs__send"], "exclude": ["mail__delete_*"]}


def test_a_toolset_is_added_and_removed(console: Browser, config: Path) -> None:
    before = config.read_text("utf-8")
    new = {"change": "toolset", "is_new": "true", "name": "play", "upstreams": "docs"}
    assert console.change(**new)["applied"] == ["toolsets.play"]
    assert toolsets(config)["play"] == {"upstreams": ["docs"]}
    assert "/mcp/auto/play" in console.page("/toolsets")
    assert "already" in console.post("/changes/show", new, 400)["error"]
    console.change(change="remove-toolset", name="play")
    assert config.read_text("utf-8").rstrip() == before.rstrip()
    console.change(change="remove-toolset", name="work")
    assert "toolsets" not in config.read_text("utf-8")
    assert "for the day" not in config.read_text("utf-8")


@pytest.mark.parametrize(
    ("form", "words"),
    [
        ({"name": "work", "upstreams": "nowhere", "exclude": ""}, "match no upstream; the upstreams are: mail, docs"),
        ({"name": "work", "upstreams": ""}, "names nothing: give upstreams"),
        ({"name": "work", "tools": "look"}, "'look' has no upstream"),
        ({"name": "a b", "is_new": "true", "upstreams": "mail"}, "is not a name for a toolset"),
        ({"name": "wrok", "upstreams": "mail"}, "there is no toolset 'wrok'"),
        ({"name": "work", "listed": "look", "offered": "look"}, "this is not a tool"),
    ],
)
def test_what_could_not_be_used_is_refused_and_says_why(
    console: Browser, config: Path, form: dict[str, Any], words: str
) -> None:
    before = config.read_text("utf-8")
    sent = {"change": "toolset", **form}
    assert words in console.post("/changes/show", sent, 400)["error"]
    assert words.split(";")[0].replace("'", "&#39;") in console.part("/changes/show", sent)
    console.post("/changes/write", {**sent, "mark": "x"}, 400)
    assert config.read_text("utf-8") == before


def test_a_name_that_a_form_would_change_has_no_tick(console: Browser) -> None:
    page = console.page("/toolsets")
    assert 'value="mail__send" checked' in page
    assert 'value="mail__delete_one">' in page
    assert page.count('name="listed"') == 8
