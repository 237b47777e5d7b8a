"""Hosts in the console: who is connected, the matrix, one profile, and calibrating."""

import re
import time
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from starlette.applications import Starlette

from gateway.config.builtin_profiles import builtin_profiles
from gateway.core.model.caller import Caller
from gateway.core.profiles.calibrate_profile import REPORT_TOOL, SHOW_TOOL
from gateway.serving.console.responses import addresses
from gateway.serving.console.routes import console_mounts
from gateway.serving.control.reload_config import Reloader
from gateway.serving.control.status_report import Serving, report
from gateway.serving.mcp.presence import Presence
from gateway.upstream.connection.owners import host_of
from tests.serving.console.conftest import HOST, Shown, shown

pytestmark = pytest.mark.anyio

HOSTILE = "<script>alert(1)</script>\x1b[31m\u202e'\"><img src=x onerror=alert(1)>"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of the user's own profiles."""
    monkeypatch.setenv("MCP_GATEWAY_PROFILES", str(tmp_path))
    return tmp_path


@asynccontextmanager
async def connected(
    *callers: Caller, upstreams: dict[str, Any] | None = None, ago: float = 0.0, **sections: Any
) -> AsyncGenerator[Shown]:
    """The console of a gateway to which these hosts are connected, with a request so many seconds ago."""
    presence = Presence(lambda: time.time() - ago)
    for caller in callers:
        presence.asked(caller)
    async with shown(upstreams or {}, **sections) as one:
        serving = Serving(None, time.time(), connected_hosts=presence.connected_hosts)
        status = partial(report, one.gateway, serving, Reloader(None, one.gateway.apply))
        console = replace(one.console, report=status)
        one.app.router.routes[:] = Starlette(routes=console_mounts("/console", console)).routes
        await one.enter()
        yield one


async def test_a_connected_host_says_which_profile_it_has_and_why(folder: Path) -> None:
    other = Caller(revision="2026-07-28", client_name=HOSTILE, principal="ann")
    lost = Caller(client_name="x", profile="nowhere")
    async with connected(HOST, other, lost) as one:
        known, unknown, refused = (await one.json("/hosts"))["hosts"]
        assert (known["name"], known["version"], known["profile"]) == ("claude-code", "2.1.329", "claude-code")
        assert known["because"] == "the client calls itself 'claude-code'"
        assert (known["requests"], known["revision"], known["principal"]) == (1, "2025-11-25", "local")
        assert (unknown["profile"], unknown["principal"]) == ("default", "ann")
        assert "no profile matches" in unknown["because"]
        assert (refused["profile"], refused["because"]) == (None, "no profile is called 'nowhere'")
        page = (await one.get("/hosts")).text
        assert 'href="/console/hosts/claude-code"' in page
        assert "<script>alert" not in page
        assert "<img src=x" not in page
        assert "\x1b" not in page


async def test_a_host_without_an_open_stream_is_connected_only_for_a_while_after_its_last_request(folder: Path) -> None:
    for ago, is_connected in ((0.0, True), (200.0, False)):
        async with connected(HOST, ago=ago) as one:
            (host,) = (await one.json("/hosts"))["hosts"]
            assert host["connected"] is is_connected
            page = (await one.get("/")).text
            assert f"<b>{int(is_connected)}</b> connected" in page
            assert ("not connected, last seen at" in page) is not is_connected
            assert ("not connected, last seen at" in (await one.get("/hosts")).text) is not is_connected
            with one.gateway.upstreams.attending(host_of(HOST)):  # a stream is open
                assert (await one.json("/hosts"))["hosts"][0]["connected"] is True


async def test_home_says_since_when_calls_are_recorded(folder: Path) -> None:
    async with connected(HOST) as one:
        assert "recorded since" in (await one.get("/")).text
        one.console.history.started -= 4_000
        assert "recorded since" not in (await one.get("/")).text


async def test_the_matrix_has_every_profile_and_is_searched(folder: Path) -> None:
    own = {"mine": {"title": "My host", "extends": "codex", "match": [{"client_name": "mine"}]}}
    async with connected(profiles=own) as one:
        everything = await one.json("/hosts")
        assert (everything["of"], len(everything["profiles"])) == (len(builtin_profiles()) + 1,) * 2
        first = everything["profiles"][0]
        assert (first["name"], first["origin"], first["variant_of"]) == ("mine", "own", None)
        rows = {row["name"]: row for row in everything["profiles"]}
        assert rows["codex"]["origin"] == "builtin"
        assert rows["claude-code"]["images"].startswith("PNG, JPEG")
        assert rows["qwen-code-text"]["variant_of"] == "qwen-code"
        assert rows["qwen-code-text"]["origin"] == "builtin"
        assert set(everything["columns"]) <= set(first)
        for query, found in (("text=MY+HOST", {"mine"}), ("origin=own", {"mine"}), ("text=no+such+thing", set())):
            assert {row["name"] for row in (await one.json(f"/hosts?{query}"))["profiles"]} == found
        assert len((await one.json("/hosts?origin=%3Cscript%3E"))["profiles"]) == everything["of"]
        assert "Nothing fits." in (await one.get("/hosts?text=no+such+thing")).text


async def test_a_profile_shows_every_value_with_its_evidence(folder: Path) -> None:
    async with connected() as one:
        profile = await one.json("/hosts/claude-code")
        assert (profile["chosen_for"], profile["lineage"][0]["name"]) == (["claude-code"], "default")
        own = {value["path"]: value for value in profile["own"]}
        merge = own["text.merge"]
        assert (merge["value"], merge["parent_value"], merge["evidence"]["level"]) == ("false", "true", "measured")
        assert merge["evidence"]["checked"]
        assert "text.merge" not in {value["path"] for values in profile["inherited"].values() for value in values}
        page = (await one.get("/hosts/claude-code")).text
        assert "instead of true" in page
        assert (await one.json("/hosts/qwen-code"))["variants"][0]["name"].startswith("qwen-code-")
        missing = await one.get("/api/hosts/claude-cod")
        assert (missing.status_code, "claude-code" in missing.json()["remedy"]) == (404, True)
        for path in ("/hosts/%2e%2e%2fetc", "/hosts/a/b/c"):
            assert (await one.get(path)).status_code == 404


async def test_every_profile_has_a_page(folder: Path) -> None:
    async with connected() as one:
        for name in builtin_profiles():
            assert (await one.get(f"/hosts/{name}")).status_code == 200
            assert (await one.get(f"/edit/{name}")).status_code == 200


async def test_evidence_links_only_to_the_web(folder: Path) -> None:
    source = f"javascript:alert(1) {HOSTILE} see https://example.org/a?b=1&c=2, and data:text/html,x"
    fact = {"level": "measured", "source": source, "checked": "2026-11-20", "sets": {"text": {"max_chars": 7}}}
    async with connected(profiles={"mine": {"title": HOSTILE, "fact": [fact]}}) as one:
        page = (await one.get("/hosts/mine")).text
    links = re.findall(r'<a href="([^"]*)" rel="noreferrer noopener"', page)
    assert links == ["https://example.org/a?b=1&amp;c=2,"]
    assert "<script>alert" not in page


def test_addresses_are_found_in_texts() -> None:
    assert addresses("a http://x.example/(b) c") == [("a ", False), ("http://x.example/", True), ("(b) c", False)]
    assert addresses("") == []


async def test_a_host_is_calibrated_and_its_profile_shown(folder: Path) -> None:
    async with connected(HOST) as one:
        assert (await one.json("/calibration"))["connected"] == ["claude-code"]
        answer = await one.browser.post("/console/api/calibration/begin", data={"host": "claude-code"})
        assert (answer.json()["open"], answer.json()["host"], answer.json()["hosts"]) == (True, "claude-code", [])
        assert 'hx-trigger="every 2s"' in (await one.get("/calibration", **{"HX-Request": "true"})).text
        listed = await one.gateway.router.respond("tools/list", {}, HOST)
        assert SHOW_TOOL in {tool["name"] for tool in listed["tools"]}

        await read_texts(one)
        seen = (await one.json("/calibration"))["hosts"][0]
        assert (seen["reported"], seen["phase"]) == (1, "showing")
        assert "<progress" in (await one.get("/calibration")).text
        for _ in range(20):
            if (await one.json("/calibration"))["hosts"][0]["phase"] != "showing":
                break
            await read_texts(one)
        last = {"codes": [], "after_user_message": True}
        await one.gateway.router.respond("tools/call", {"name": REPORT_TOOL, "arguments": last}, HOST)

        done = (await one.json("/calibration"))["hosts"][0]
        assert (done["phase"], done["problem"], done["used"]) == ("over", None, True)
        assert done["learned"]
        assert f'href="/console/hosts/{done["profile"]}"' in (await one.get("/calibration")).text
        profile = await one.json(f"/hosts/{done['profile']}")
        assert (profile["origin"], profile["known_from"]) == ("measured", "measured")
        assert (await one.json("/hosts"))["hosts"][0]["profile"] == done["profile"]

        answer = await one.browser.post("/console/api/calibration/end")
        assert answer.json()["open"] is False


async def read_texts(one: Shown) -> None:
    """A model that sees text alone reports what it reads of one part."""
    shown_part = await one.gateway.router.respond("tools/call", {"name": SHOW_TOOL, "arguments": {}}, HOST)
    text = " ".join(block.get("text", "") for block in shown_part["content"])
    codes = re.findall(r"(?<!\d)\d{5}(?!\d)", text)
    await one.gateway.router.respond("tools/call", {"name": REPORT_TOOL, "arguments": {"codes": codes}}, HOST)


async def test_only_forms_of_the_console_begin_a_calibration(folder: Path) -> None:
    async with connected() as one:
        for path in ("/calibration/begin", "/calibration/end", "/save/codex", "/effect/codex"):
            for token in ("", "0" * 64):
                answer = await one.browser.post(f"/console{path}", headers={"X-Console-Token": token})
                assert answer.status_code == 403
        assert (await one.json("/calibration"))["open"] is False
        assert (await one.get("/calibration/begin")).status_code == 405


async def test_bad_forms_are_refused(folder: Path) -> None:
    async with connected() as one:
        for content, kind in (
            (b"x=" + b"y" * 5_000_000, "application/x-www-form-urlencoded"),
            (b"&".join(b"a%d=1" % number for number in range(20_000)), "application/x-www-form-urlencoded"),
            (b"\xff\xfe", "application/x-www-form-urlencoded"),
            (b"[1]", "application/json"),
            (b"[" * 100_000, "application/json"),
            (b'{"host": {"a": 1}}', "application/json; charset=utf-8"),
        ):
            answer = await one.browser.post(
                "/console/api/calibration/begin", content=content, headers={"Content-Type": kind}
            )
            assert (answer.status_code, bool(answer.json()["error"])) == (400, True)
        assert (await one.json("/calibration"))["open"] is False
