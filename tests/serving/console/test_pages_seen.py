"""What the console says of tools with a page (MCP Apps): who reads their results at each host, and in Try."""

import json
import sys
from pathlib import Path
from typing import Any

import anyio
import pytest

from gateway.core.model.caller import Caller
from tests.serving.console.conftest import PATIENCE, Shown, shown

pytestmark = pytest.mark.anyio

ROOT = Path(__file__).parents[3]
DAYLIGHT = {"command": sys.executable, "args": ["-m", "examples.daylight"], "cwd": str(ROOT)}
PAGES = {"extensions": {"io.modelcontextprotocol/ui": {"mimeTypes": ["text/html;profile=mcp-app"]}}}


def host(name: str, *, declares: bool) -> Caller:
    """A host of the handshake era, which declares that it shows pages or not."""
    return Caller(revision="2025-11-25", client_name=name, profile=name, capabilities=PAGES if declares else {})


async def called(one: Shown, tool: str, caller: Caller) -> tuple[int, dict[str, Any]]:
    """Let a host call a tool of the daylight server; return the number of the call, and what the host got."""
    await one.gateway.upstreams["daylight"].ready(PATIENCE)
    got = await one.gateway.router.respond("tools/call", {"name": tool, "arguments": {}}, caller)
    return (await one.json("/calls"))["calls"][0]["number"], got


def text_of(side: dict[str, Any]) -> str:
    return "".join(part.get("text") or "" for part in side["parts"])


@pytest.mark.parametrize("name", ["cursor", "claude-desktop"])
async def test_a_host_that_shows_pages_is_shown_with_its_page(name: str) -> None:
    async with shown({"daylight": DAYLIGHT}) as one:
        await one.enter()
        # The host of the call declared nothing, which says nothing about the others.
        number, _ = await called(one, "daylight__daylight", host("codex", declares=False))
        seen = await one.json(f"/calls/{number}/seen/{name}")
        assert seen["shows_pages"]
        assert seen["unseen"] is None
        assert any("structured content" in line for line in seen["readers"]["page"])
        assert seen["readers"]["model"]
        assert any("for the page" in note["text"] for note in seen["notes"])
        assert "Hours of daylight at 52.5" in text_of(seen["through"])
        page = (await one.get(f"/calls/{number}/seen/{name}")).text
        assert "the page reads" in page
        # The same as this host gets when it calls.
        _, got = await called(one, "daylight__daylight", host(name, declares=True))
        assert got["structuredContent"]["latitude"] == 52.5


async def test_what_a_view_says_of_its_readers_is_what_explain_says(tmp_path: Path) -> None:
    async with shown({"daylight": DAYLIGHT}) as one:
        await one.enter()
        number, _ = await called(one, "daylight__daylight", host("default", declares=True))
        page = (await one.get(f"/calls/{number}/seen/default")).text
        assert "It has a page, and the host of this call declared that it shows pages" in page
        assert "the model reads:" in page
        assert "the model reads</b>" not in page
        run = await tried(one, "daylight__daylight", arguments={}, profile="vscode-copilot")
        page = (await one.get(f"/calls/{run['call']}/seen/vscode-copilot")).text
        assert "It has a page, and this host shows it" in page  # it is played, and does not declare that
        seen = await one.json(f"/calls/{number}/seen/default")
        assert [heading for heading, _ in seen["readers"]["sections"]] == ["the model reads", "the page reads"]


async def test_what_a_model_does_not_read_is_counted_apart() -> None:
    async with shown({"daylight": DAYLIGHT}) as one:
        await one.enter()
        number, got = await called(one, "daylight__daylight", host("default", declares=True))
        through = (await one.json(f"/calls/{number}/seen/default"))["through"]
        texts = sum(len(block.get("text", "")) for block in got["content"])
        data = json.dumps(got["structuredContent"], separators=(",", ":"), ensure_ascii=False)
        assert (through["characters"], through["other_characters"]) == (texts, len(data))
        words = f"tokens of text for the model; {len(data)} more characters for the host or its page"
        assert words in (await one.get(f"/calls/{number}/seen/default")).text


async def test_a_host_without_pages_is_shown_without_one() -> None:
    async with shown({"daylight": DAYLIGHT}) as one:
        await one.enter()
        number, _ = await called(one, "daylight__daylight", host("cursor", declares=True))
        seen = await one.json(f"/calls/{number}/seen/codex")
        assert (seen["shows_pages"], seen["readers"], seen["unseen"]) == (False, None, None)
        assert "Hours of daylight at 52.5" in text_of(seen["through"])
        assert not any(note["kind"] == "app" for note in seen["notes"])


@pytest.mark.parametrize(("name", "declares"), [("claude-desktop", False), ("codex", True)])
async def test_the_host_of_a_call_is_shown_as_it_declared(name: str, declares: bool) -> None:
    async with shown({"daylight": DAYLIGHT}) as one:
        await one.enter()
        number, got = await called(one, "daylight__daylight", host(name, declares=declares))
        seen = await one.json(f"/calls/{number}/seen/{name}")
        assert seen["shows_pages"] is declares
        assert (seen["readers"] is not None) is declares
        assert seen["notes"] == (await one.json(f"/calls/{number}"))["result_notes"]
        assert got["content"][0]["text"].startswith("Hours")


async def test_what_only_a_page_gets_is_shown_as_no_models() -> None:
    async with shown({"daylight": DAYLIGHT}) as one:
        await one.enter()
        number, _ = await called(one, "daylight__days_of_month", host("claude-desktop", declares=True))
        for name in ("cursor", "claude-desktop"):
            seen = await one.json(f"/calls/{number}/seen/{name}")
            assert seen["unseen"] == "only its page gets this: no model sees it"
            assert (seen["through"], seen["direct"]) == (None, None)
            assert seen["unseen"] in (await one.get(f"/calls/{number}/seen/{name}")).text
        without = await one.json(f"/calls/{number}/seen/codex")
        assert "only pages call this tool, and this host shows none" in without["unseen"]
        assert (await one.json(f"/calls/{number}"))["page"] is None  # it is for a page that is open already


async def test_a_call_of_a_page_is_no_models_although_models_may_call_the_tool() -> None:
    async with shown({"daylight": DAYLIGHT}) as one:
        await one.enter()
        number, _ = await called(one, "daylight", host("claude-desktop", declares=True))  # the name that pages know
        assert "only its page" in (await one.json(f"/calls/{number}/seen/claude-desktop"))["unseen"]
        codex = await one.json(f"/calls/{number}/seen/codex")
        assert (codex["unseen"], codex["supposed"]) == (None, True)
        assert (
            "what its model would get if it called the tool itself"
            in (await one.get(f"/calls/{number}/seen/codex")).text
        )
        assert "by a page of daylight" in (await one.get("/calls")).text


async def test_whether_the_host_declared_pages_is_known_after_a_restart(tmp_path: Path) -> None:
    kept = {"calls": str(tmp_path / "calls.sqlite3")}
    async with shown({"daylight": DAYLIGHT}, console=kept) as one:
        await one.enter()
        await called(one, "daylight__daylight", host("codex", declares=True))
    async with shown({"daylight": DAYLIGHT}, console=kept) as one:
        await one.enter()
        await one.gateway.upstreams["daylight"].ready(PATIENCE)
        assert (await one.json("/calls/1/seen/codex"))["shows_pages"]


async def tried(one: Shown, path: str, **body: Any) -> dict[str, Any]:
    """Try a tool, and return the try when it has ended."""
    run = (await one.browser.post(f"/console/api/try/tools/{path}", json=body)).json()["run"]
    with anyio.fail_after(PATIENCE):
        while run["state"] == "running":
            await anyio.sleep(0.02)
            run = (await one.json(f"/try/runs/{run['id']}"))["run"]
    return run


@pytest.mark.parametrize("profile", ["", "claude-desktop", "cursor"])
async def test_tools_for_pages_are_listed_marked_and_tried(profile: str) -> None:
    async with shown({"daylight": DAYLIGHT}) as one:
        await one.enter()
        await one.gateway.upstreams["daylight"].ready(PATIENCE)
        listed = await one.json(f"/try?profile={profile}")
        tools = {tool["name"]: tool for group in listed["groups"] for tool in group["tools"]}
        marks = {name: [hint["words"] for hint in tool["hints"]] for name, tool in tools.items()}
        [name] = [name for name in marks if name.endswith("days_of_month")]
        assert "only for pages" in marks[name]
        assert "has a page" in marks["daylight__daylight"]
        assert "only for pages" in (await one.get(f"/try?profile={profile}")).text
        # Also by the name with its server in front, which a past call has; hosts may be listed another.
        for each in {name, "daylight__days_of_month"}:
            assert (await one.get(f"/try/tools/{each}?profile={profile}")).status_code == 200
            run = await tried(one, each, arguments={"month": 2}, profile=profile)
            assert run["state"] == "done", run
            assert len(json.loads(run["messages"][0]["parts"][0]["text"])["hours"]) == 28
            assert run["page"] is None


@pytest.mark.parametrize(
    ("profile", "words"),
    [
        ("codex", "is sent none: its model reads the content alone"),
        ("claude-desktop", "loses structured content on the way to it"),
        ("cursor", "in some sessions only"),
        ("qwen-code", "its model reads content and data"),
        ("vscode-copilot", None),
        ("", None),
    ],
)
async def test_beside_a_page_is_said_what_the_chosen_host_does_with_it(profile: str, words: str | None) -> None:
    async with shown({"daylight": DAYLIGHT}) as one:
        await one.enter()
        await one.gateway.upstreams["daylight"].ready(PATIENCE)
        await one.json(f"/try?profile={profile}")
        run = await tried(one, "daylight__daylight", arguments={}, profile=profile)
        assert run["page"] == "ui://daylight/daylight/page.html", run
        text = (await one.get(f"/try/runs/{run['id']}")).text
        if words is None:
            assert run["page_note"] is None
            assert "data-page-note" not in text
        else:
            assert words in run["page_note"]
            assert words in text


async def test_a_host_without_pages_is_said_to_lack_the_tools_for_them() -> None:
    async with shown({"daylight": DAYLIGHT}) as one:
        await one.enter()
        await one.gateway.upstreams["daylight"].ready(PATIENCE)
        listed = str(await one.json("/try?profile=codex"))
        assert "days_of_month" not in listed
        assert "has a page" not in listed
        refused = await one.get("/api/try/tools/daylight__days_of_month?profile=codex")
        assert refused.status_code == 404
        assert "only pages call this tool" in refused.json()["error"]
        unknown = await one.get("/api/try/tools/daylight__nothing?profile=codex")
        assert "not offered" in unknown.json()["error"]
        assert (await one.get("/api/try?profile=nowhere")).status_code == 404
