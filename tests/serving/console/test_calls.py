"""Calls in the console: the list, one call, and what the models of hosts make of it."""

import base64
import io
import json
import re
import sys
from collections.abc import Callable
from typing import Any

import anyio
import pytest
from PIL import Image
from starlette.types import Message

from gateway.core.model.json_size import compact_json
from gateway.core.results.lift_result import lift
from gateway.core.tokens import TokenCount, text_tokens
from gateway.serving.console.home import today
from gateway.serving.console.media import MediaShelf
from gateway.serving.console.parts import envelope_parts
from gateway.telemetry.call_history import CallHistory
from gateway.telemetry.calls import CallRecord, Outcome
from tests.serving.console.conftest import HOST, SERVERS, Shown, shown

pytestmark = pytest.mark.anyio

HOSTILE = "<script>alert(1)</script>\x1b[31m\u202e'\"><img src=x onerror=alert(1)>"


async def test_calls_are_listed_the_newest_first(media: Shown) -> None:
    await media.call("media__picture")
    await media.call("media__failing")
    listed = await media.json("/calls")
    assert [(one["number"], one["tool"], one["outcome"]) for one in listed["calls"]] == [
        (2, "media__failing", "tool_error"),
        (1, "media__picture", "ok"),
    ]
    first = listed["calls"][1]
    assert (first["host"], first["host_version"], first["profile"]) == ("claude-code", "2.1.329", "claude-code")
    assert first["bytes_raw"] > 100
    assert (listed["before"], listed["kept"]) == (None, 2)
    page = (await media.get("/calls")).text
    assert page.index("media__failing") < page.index("media__picture")


async def test_calls_are_found_by_words_and_outcome(media: Shown) -> None:
    await media.call("media__picture")
    await media.call("media__failing")
    for query, found in (
        ("text=PICT", ["media__picture"]),
        ("text=claude", ["media__failing", "media__picture"]),
        ("outcome=failed", ["media__failing"]),
        ("outcome=ok", ["media__picture"]),
        ("text=picture&outcome=tool_error", []),
    ):
        listed = await media.json(f"/calls?{query}")
        assert [one["tool"] for one in listed["calls"]] == found
    assert "Nothing fits." in (await media.get("/calls?text=nowhere")).text


async def test_sizes_of_a_call_are_characters_by_name(media: Shown) -> None:
    await media.call("media__both", note="hello")
    assert re.search(r">in 9, raw [\d,]+, out [\d,]+ characters ", (await media.get("/calls/1")).text)
    assert re.search(r'class="size">[\d,]+ characters', (await media.get("/calls")).text)


async def test_handles_that_a_view_made_up_are_said_to_be(media: Shown) -> None:
    await media.call("media__picture")
    words = "Handles in this view are made up for it: its content was not kept, so they cannot be opened."
    seen = {name: await media.json(f"/calls/1/seen/{name}") for name in ("codex", "text-only")}
    for name, one in seen.items():
        assert (words in (await media.get(f"/calls/1/seen/{name}")).text) is one["has_own_handles"]
    assert seen["text-only"]["has_own_handles"]


async def test_long_lists_have_pages(media: Shown) -> None:
    for _ in range(105):
        await media.call("media__pid")
    first = await media.json("/calls?text=pid")
    assert (len(first["calls"]), first["before"]) == (100, 6)
    rest = await media.json(f"/calls?text=pid&before={first['before']}")
    assert ([one["number"] for one in rest["calls"]], rest["before"]) == ([5, 4, 3, 2, 1], None)
    assert len((await media.json("/calls?before=²"))["calls"]) == 100


async def test_a_call_shows_arguments_and_every_block(media: Shown) -> None:
    await media.call("media__both", note="hello", password="hunter22")
    call = await media.json("/calls/1")
    assert json.loads(call["arguments"]["text"]) == {"note": "hello", "password": "***"}
    kinds = [(part["kind"], part.get("form")) for part in call["parts"]]
    assert kinds == [("text", "text"), ("image", None), ("json", "structured")]
    picture = call["parts"][1]
    assert (picture["media_type"], picture["pixels"], picture["is_drawn_as_it_is"]) == ("image/png", [40, 30], True)
    answer = await media.get(f"/api/media/{picture['medium']}")
    assert Image.open(io.BytesIO(answer.content)).size == (40, 30)
    assert answer.headers["content-type"] == "image/png"
    assert answer.headers["content-security-policy"].startswith("sandbox")
    assert call["compared"][0] == "claude-code"
    page = (await media.get("/calls/1")).text
    assert f"/console/api/media/{picture['medium']}" in page
    assert "hunter22" not in page


async def test_what_a_model_sees_with_the_gateway_and_without_it(media: Shown) -> None:
    await media.call("media__failing")
    seen = await media.json("/calls/1/seen/claude-code")
    assert (seen["title"], seen["profile"], seen["is_simulated"]) == ("Claude Code", "claude-code", True)
    assert seen["through"]["tone"] in ("good", "kept")
    assert [part["kind"] for part in seen["direct"]["parts"]] == ["text"]  # it drops images beside errors
    assert seen["direct"]["tone"] == "bad"
    assert any("image/png" in problem for problem in seen["direct"]["problems"])
    page = await media.get("/calls/1/seen/claude-code", **{"HX-Request": "true"})
    assert page.text.lstrip().startswith("<article")
    assert "with the gateway" in page.text


async def test_a_profile_without_a_simulator_shows_what_is_sent(media: Shown) -> None:
    await media.call("media__large_picture")
    hosts = (await media.json("/calls/1"))["hosts"]
    other = next(host["name"] for host in hosts if not host["is_simulated"] and host["name"] != "passthrough")
    seen = await media.json(f"/calls/1/seen/{other}")
    assert seen["direct"] is None
    assert seen["through"]["parts"]
    as_it_is = await media.json("/calls/1/seen/passthrough")
    assert [part["pixels"] for part in as_it_is["through"]["parts"]] == [[2400, 800]]


async def test_a_call_is_tried_again_as_the_host_that_made_it(media: Shown) -> None:
    await media.call("media__failing")
    assert (await media.json("/calls/1"))["again_as"] == "claude-code"
    assert "/try/tools/media__failing?call=1&amp;profile=claude-code" in (await media.get("/calls/1")).text


async def test_no_two_hosts_to_compare_with_have_one_name(media: Shown) -> None:
    await media.call("media__failing")
    titles = [host["title"] for host in (await media.json("/calls/1"))["hosts"]]
    assert sorted(titles) == sorted(set(titles))


async def test_looking_stores_nothing(media: Shown) -> None:
    await media.call("media__large_picture")
    before = media.gateway.store.usage
    for host in ("claude-desktop", "codex"):
        await media.json(f"/calls/1/seen/{host}")
    assert media.gateway.store.usage == before


async def test_what_is_not_there_is_said(media: Shown) -> None:
    for path in ("/calls/7", "/calls/7/seen/codex", "/nowhere", "/api/media/0"):
        answer = await media.get(path)
        assert answer.status_code == 404
    assert "only the newest calls are kept" in (await media.get("/calls/7")).text
    assert (await media.get("/api/calls/7")).json()["remedy"]
    await media.call("media__picture")
    answer = await media.get("/api/calls/1/seen/nobody")
    assert (answer.status_code, answer.json()["error"]) == (404, "there is no host 'nobody'")


async def test_a_result_that_is_no_longer_kept_is_said() -> None:
    server = {"command": sys.executable, "args": [str(SERVERS / "media_stdio.py")]}
    async with shown({"media": server}, console={"max_bytes": 1}) as one:
        await one.enter()
        await one.call("media__picture")
        call = await one.json("/calls/1")
        assert (call["is_kept"], call["parts"], call["arguments"]) == (False, None, None)
        assert "no longer kept" in (await one.get("/calls/1")).text
        assert (await one.get("/api/calls/1/seen/codex")).json()["remedy"] == "[console] max_bytes keeps more"


async def test_hostile_content_is_only_shown(scripted: Callable[[dict[str, Any]], dict[str, Any]]) -> None:
    svg = base64.b64encode(b"<svg xmlns='http://www.w3.org/2000/svg' width='9' height='9'><script>1</script></svg>")
    html = base64.b64encode(b"<script>alert(1)</script>")
    script = {
        "tools": [{"name": "evil", "description": HOSTILE, "inputSchema": {"type": "object"}}],
        "results": {
            "evil": {
                "content": [
                    {"type": "text", "text": HOSTILE + "\ud800"},
                    {"type": "image", "data": svg.decode(), "mimeType": "image/svg+xml"},
                    {"type": "resource", "resource": {"uri": "ui://x", "mimeType": "text/html", "blob": html.decode()}},
                    {"type": "resource", "resource": {"uri": HOSTILE, "mimeType": "text/html", "text": HOSTILE}},
                    {"type": "resource_link", "uri": "javascript:alert(1)", "name": HOSTILE},
                    {"type": "image", "data": "!!", "mimeType": HOSTILE},
                    {"type": HOSTILE},
                ]
            }
        },
    }
    async with shown({"x": scripted(script)}) as one:
        await one.enter()
        await one.call("x__evil", **{HOSTILE: HOSTILE})
        call = await one.json("/calls/1")
        pages = [(await one.get(path)).text for path in ("/calls", "/calls/1", "/calls/1/seen/claude-code", "/")]
        for page in pages:
            assert "<script>alert" not in page
            assert "<img src=x" not in page
            assert "\x1b" not in page
            assert "\u202e" not in page
            assert not re.search(r'(href|src|action)="?javascript:', page)
        vector, document = call["parts"][1], call["parts"][2]
        assert not vector["is_drawn_as_it_is"]
        for medium in (vector["medium"], document["medium"]):
            answer = await one.get(f"/api/media/{medium}")
            assert answer.headers["content-type"] == "application/octet-stream"
            assert answer.headers["content-disposition"].startswith("attachment")
        drawn = await one.get(f"/api/media/{vector['medium']}/drawn")
        assert drawn.headers["content-type"] in ("image/png", "image/jpeg", "image/webp")
        refused = await one.get(f"/api/media/{document['medium']}/drawn")
        assert (refused.status_code, "error" in refused.json()) == (422, True)


async def test_many_blocks_and_many_arguments_are_not_all_drawn(
    scripted: Callable[[dict[str, Any]], dict[str, Any]],
) -> None:
    script = {
        "tools": [{"name": "many", "inputSchema": {"type": "object"}}],
        "results": {"many": {"content": [{"type": "text", "text": "x"}] * 5_000}},
    }
    async with shown({"x": scripted(script)}) as one:
        await one.enter()
        await one.call("x__many", rows=[{"a": number} for number in range(5_000)])
        call = await one.json("/calls/1")
        assert len(call["parts"]) == 1_001
        assert "4,000" in call["parts"][-1]["text"]
        assert "too long to be written here" in call["test"]
        assert len((await one.json("/calls/1/seen/passthrough"))["through"]["parts"]) == 1_001


async def test_a_long_text_and_a_picture_bomb_cost_little(scripted: Callable[[dict[str, Any]], dict[str, Any]]) -> None:
    bomb = io.BytesIO()
    Image.new("1", (20_000, 20_000)).save(bomb, "PNG")
    script = {
        "tools": [{"name": "huge", "inputSchema": {"type": "object"}}],
        "results": {
            "huge": {
                "content": [
                    {"type": "text", "text": "word " * 2_000_000},
                    {"type": "image", "data": base64.b64encode(bomb.getvalue()).decode(), "mimeType": "image/png"},
                ]
            }
        },
    }
    async with shown({"x": scripted(script)}) as one:
        await one.enter()
        await one.call("x__huge")
        call = await one.json("/calls/1")
        text, picture = call["parts"]
        assert text["characters"] == 10_000_000
        assert len(text["text"]) < 10_000
        assert not picture["is_drawn_as_it_is"]
        assert (await one.get(f"/api/media/{picture['medium']}")).headers["content-disposition"]
        drawn = await one.get(f"/api/media/{picture['medium']}/drawn")
        assert drawn.status_code in (200, 422)
        assert len(drawn.content) < 1_000_000
        assert len((await one.get("/calls/1")).content) < 200_000


async def test_calls_appear_as_they_happen(media: Shown) -> None:
    told, events = anyio.create_memory_object_stream[str](100)
    said = ""

    async def listen() -> None:
        # The client waits for whole answers, and this one has no end.
        cookies = "; ".join(f"{one.name}={one.value}" for one in media.browser.cookies.jar)
        scope = {
            "type": "http",
            "method": "GET",
            "path": "/console/events",
            "query_string": b"text=picture",
            "headers": [(b"cookie", cookies.encode())],
        }

        async def receive() -> dict[str, Any]:
            await anyio.sleep_forever()
            raise AssertionError

        async def send(message: Message) -> None:
            await told.send(message.get("body", b"").decode())

        await media.app(scope, receive, send)

    async def until(text: str) -> None:
        nonlocal said
        with anyio.fail_after(20):
            while text not in said:
                said += await events.receive()

    async with told, events, anyio.create_task_group() as tasks:
        tasks.start_soon(listen)
        await until("retry")
        await media.call("media__pid")
        await media.call("media__picture")
        await until('chip good">ok')
        with media.gateway.router.telemetry.call(HOST, "default", "media__picture", {}):
            await until('sse-swap="ended-3"')
        await until("event: ended-3")
        tasks.cancel_scope.cancel()
    begun = said[said.index("event: begun") :].split("\n\n")[0]
    assert "media__picture" in begun
    assert begun.count("\n") == 1
    assert said.count("event: begun") == 2
    assert "media__pid" not in said


async def test_a_page_that_was_away_misses_nothing(media: Shown) -> None:
    for tool in ("media__picture", "media__pid", "media__failing"):
        await media.call(tool)
    for known in ({"query": b"after=1"}, {"query": b"after=0", "id": b"1"}):
        said = await _first_events(media, **known)
        assert [line for line in said.splitlines() if line.startswith("event")] == [
            "event: ended-1",
            "event: begun",
            "event: begun",
        ]


async def test_home_has_what_happened_lately(media: Shown) -> None:
    await media.call("media__picture")
    await media.call("media__failing")
    home = await media.json("")
    assert (home["activity"]["calls"], home["activity"]["failed"]) == (2, 1)
    assert (len(home["activity"]["by_minute"]), home["activity"]["by_minute"][-1]) == (60, 2)
    assert [one["number"] for one in home["latest"]] == [2, 1]
    assert home["today"]["calls"] in (1, 2)  # midnight may pass
    page = (await media.get("/")).text
    assert re.search(r"[12] calls? today", page)


def test_today_begins_at_midnight_and_counts_what_results_cost() -> None:
    history = CallHistory(10, 10_000)
    outcomes: list[tuple[float, Outcome]] = [(86_399.0, "ok"), (86_400.0, "ok"), (90_000.0, "denied")]
    for began, outcome in outcomes:
        call = history.begin(CallRecord(HOST, "claude-code", "a__b"), HOST)
        call.began, call.record.outcome, call.is_running = began, outcome, False
        call.record.counted(TokenCount(text=10, images=5), "formula")
    assert today(history, 100_000.0) == {"calls": 2, "failed": 1, "tokens": 30}
    assert today(history, 200_000.0) == {"calls": 0, "failed": 0, "tokens": 0}


@pytest.mark.parametrize(
    ("text", "count"),
    [('{"a": [1, 2]}', 1), (" [1, 2, 3]", 3), ("[1, 2", None), ("words", None), ("7", None), ("[" * 5_000, None)],
)
def test_text_that_is_json_has_a_tree_as_well(text: str, count: int | None) -> None:
    [part] = envelope_parts(lift({"content": [{"type": "text", "text": text}]}), MediaShelf())
    assert part["text"] == text
    assert (part["tree"] and part["tree"]["count"]) == count


def test_a_large_value_is_shown_by_its_beginning() -> None:
    rows = [{"city": f"R{number}"} for number in range(50_000)]
    envelope = lift({"content": [], "structuredContent": {"rows": rows}})
    [part] = envelope_parts(envelope, MediaShelf())
    assert part["text"].startswith('{\n  "rows": [\n    {\n      "city": "R0"')
    assert len(part["text"]) < 7_000
    assert part["characters"] > 400_000
    assert "more characters" in part["text"]


@pytest.mark.parametrize(("count", "inexact"), [(3, 0.0), (500, 0.0), (50_000, 0.35)])
def test_json_costs_what_it_costs_as_it_is_sent_and_is_indented_for_people(count: int, inexact: float) -> None:
    value = {"rows": [{"city": f"R{number}", "warmest": [number, number / 8]} for number in range(count)]}
    [part] = envelope_parts(lift({"content": [], "structuredContent": value}), MediaShelf())
    sent = compact_json(value)
    assert part["text"].startswith('{\n  "rows": [\n')
    assert part["characters"] == pytest.approx(len(sent), rel=inexact)
    assert part["text_tokens"] == pytest.approx(text_tokens(sent), rel=inexact)


async def _first_events(shown: Shown, query: bytes, id: bytes = b"") -> str:
    """What a page is told at once; the response itself has no end."""
    cookies = "; ".join(f"{one.name}={one.value}" for one in shown.browser.cookies.jar)
    headers = [(b"cookie", cookies.encode()), *([(b"last-event-id", id)] if id else [])]
    scope = {"type": "http", "method": "GET", "path": "/console/events", "query_string": query, "headers": headers}
    said = ""

    async def receive() -> dict[str, Any]:
        await anyio.sleep_forever()
        raise AssertionError

    async def send(message: Message) -> None:
        nonlocal said
        said += message.get("body", b"").decode()

    with anyio.move_on_after(2):
        await shown.app(scope, receive, send)
    return said


async def test_what_a_call_costs_is_shown(media: Shown) -> None:
    await media.call("media__picture")
    (one,) = (await media.json("/calls"))["calls"]
    assert one["tokens"]["formula"] == "claude"
    assert one["tokens"]["images"] == 4  # 40x30 pixels: 2 x 2 patches
    assert "4 image tokens" in (await media.get("/calls")).text
    seen = await media.json("/calls/1/seen/cursor")
    assert [cost["model"].split()[0] for cost in seen["tokens"]] == ["Claude", "GPT-5.4", "Gemini"]
    assert "of them for images" in seen["tokens"][0]["sent"]


@pytest.mark.parametrize("digits", ["9" * 4_301, "9" * 16, "-1", "\u0661", "1.0"])
async def test_a_number_that_no_call_can_have_is_no_such_page(media: Shown, digits: str) -> None:
    for path in ("/calls/{}", "/calls/{}/seen/codex", "/calls/{}/page", "/calls/{}/page/given", "/calls/{}/result"):
        assert (await media.get(f"/api{path.format(digits)}")).status_code == 404, path
    assert (await media.get(f"/api/media/x/pages/{digits}")).status_code == 404
    for path in ("/calls?before={}", "/try?page={}"):
        assert (await media.get(f"/api{path.format(digits)}")).status_code == 200, path
