"""What is said of merged lists as a whole, uris that two upstreams claim, user interfaces, and introductions."""

import logging
import threading
from typing import Any

import pytest

from gateway.config.gateway_settings import GatewaySettings
from gateway.config.schema import Settings
from gateway.core.model.caller import Caller
from gateway.core.profiles.profile import InstructionRules, Match, Profile
from gateway.core.tools.catalogue.repair import repaired_resource
from gateway.core.tools.instructions import Introductions
from gateway.errors import UnknownResource, UpstreamRefused
from gateway.routing import resources as resources_module
from gateway.routing.upstream_instructions import introductions
from gateway.upstream import UpstreamState

pytestmark = pytest.mark.anyio

HOST = Caller(revision="2026-07-28", client_name="viewer-less")
MODERN = "2026-07-28"
TOOL = {"name": "x", "inputSchema": {"type": "object"}}
APP = "ui://board/main"


def hint(ttl: int | None, **meta: Any) -> dict[str, Any]:
    return {"ttlMs": ttl, "_meta": meta}


def modern(fake_upstream: Any, name: str, ttl: int | None, **more: Any) -> Any:
    hints = {"tools": hint(ttl, **more.pop("meta", {}))}
    return fake_upstream(name, [TOOL], hints=hints, revision=MODERN, **more)


async def listed(router: Any, *upstreams: Any, method: str = "tools/list") -> dict[str, Any]:
    return await router(*upstreams).respond(method, {}, HOST)


# -- hints ---------------------------------------------


async def test_a_merged_list_may_be_kept_as_long_as_its_shortest_part(router: Any, fake_upstream: Any):
    a = modern(fake_upstream, "a", 900, meta={"k": 1, "io.modelcontextprotocol/serverInfo": {"name": "a"}})
    b = modern(fake_upstream, "b", 500, meta={"k": 2, "l": 3})
    found = await listed(router, a, b)
    assert (found["ttlMs"], found["_meta"]) == (500, {"k": 1, "l": 3})


@pytest.mark.parametrize(
    "change",
    [
        {"revision": "2025-11-25"},
        {"state": UpstreamState.FAILED},
        {"state": UpstreamState.SLEEPING},
        {"hints": {}},
        {"hints": {"tools": hint(None)}},
        {"hints": {"tools": hint(0)}},
    ],
)
async def test_one_part_that_may_not_be_kept_is_enough(router: Any, fake_upstream: Any, change: Any):
    doubtful = modern(fake_upstream, "b", 500)
    for field, value in change.items():
        setattr(doubtful, field, value)
    assert "ttlMs" not in await listed(router, modern(fake_upstream, "a", 900), doubtful)


async def test_an_upstream_that_may_bring_something_yet_counts_and_one_that_cannot_does_not(
    router: Any, fake_upstream: Any
):
    a = modern(fake_upstream, "a", 900)
    coming = fake_upstream("coming", state=UpstreamState.STARTING)
    off = fake_upstream("off", state=UpstreamState.DISABLED)
    other = fake_upstream("other", resource_list=[{"uri": "x://", "name": "x"}])
    assert (await listed(router, a, off, other))["ttlMs"] == 900
    assert "ttlMs" not in await listed(router, a, coming)


@pytest.mark.parametrize(
    ("method", "kind", "key"),
    [("prompts/list", "prompts", "prompts"), ("resources/templates/list", "templates", "resourceTemplates")],
)
async def test_every_list_has_its_own_hints(router: Any, fake_upstream: Any, method: str, kind: str, key: str):
    template = {"uriTemplate": "x://{y}", "name": "x"}
    notes = fake_upstream("n", template_list=[template], prompt_list=[{"name": "x"}], revision=MODERN)
    notes.hints = {kind: hint(70, of=kind), "tools": hint(3)}
    found = await listed(router, notes, method=method)
    assert len(found[key]) == 1
    assert (found["ttlMs"], found["_meta"]) == (70, {"of": kind})


async def test_a_list_with_stored_content_in_it_may_not_be_kept(router: Any, fake_upstream: Any):
    notes = fake_upstream("n", resource_list=[{"uri": "x://", "name": "x"}], revision=MODERN)
    notes.hints = {"resources": hint(70, a=1)}
    found = await listed(router, notes, method="resources/list")
    assert "ttlMs" not in found
    assert found["_meta"] == {"a": 1}


# -- resources ---------------------------------------------


@pytest.mark.parametrize("size", [0, 40_000], ids=["small", "large"])
async def test_a_list_is_repaired_once_until_it_changes_and_a_large_one_beside_the_loop(
    router: Any, fake_upstream: Any, monkeypatch: pytest.MonkeyPatch, size: int
):
    threads: list[int] = []

    def noted(declared: Any, key: str) -> Any:
        threads.append(threading.get_ident())
        return repaired_resource(declared, key)

    monkeypatch.setattr(resources_module, "repaired_resource", noted)
    declared = [{"uri": "note://x", "name": "x", "description": "d" * size}]
    notes = fake_upstream("n", resource_list=declared)
    gateway = router(notes)
    for _ in range(3):
        first = (await gateway.respond("resources/list", {}, HOST))["resources"][0]
    assert len(threads) == 1
    assert (threads[0] != threading.get_ident()) is (size > 0)
    notes.resource_list = [{**declared[0], "name": "y"}]
    again = (await gateway.respond("resources/list", {}, HOST))["resources"][0]
    assert (first["name"], again["name"], len(threads)) == ("x", "y", 2)


async def test_of_two_upstreams_that_claim_a_uri_the_first_is_asked_and_it_is_said_once(
    router: Any, fake_upstream: Any, caplog: pytest.LogCaptureFixture
):
    one, two = (
        fake_upstream(
            name,
            resource_list=[{"uri": "note://x", "name": name, "size": 3, "later": 1}],
            template_list=[{"uriTemplate": "note://{x}", "name": name}],
            answer=lambda method, params, name=name: {"contents": [{"uri": "note://x", "text": name}]},
        )
        for name in ("one", "two")
    )
    gateway = router(one, two)
    with caplog.at_level(logging.WARNING):
        for _ in range(3):
            resources = (await gateway.respond("resources/list", {}, HOST))["resources"]
            templates = (await gateway.respond("resources/templates/list", {}, HOST))["resourceTemplates"]
    assert [each["name"] for each in resources if each["uri"] == "note://x"] == ["one"]
    assert resources[0] == {"uri": "note://x", "name": "one", "size": 3, "later": 1}
    assert [each["name"] for each in templates] == ["one"]
    assert [record.message for record in caplog.records] == [
        "resources: note://x of two is withheld: one lists it already",
        "resources: note://{x} of two is withheld: one lists it already",
    ]
    read = await gateway.respond("resources/read", {"uri": "note://x"}, HOST)
    assert read["contents"][0]["text"] == "one"


def refusing(method: str, params: Any) -> Any:
    raise UpstreamRefused("x", -32602, "no such resource")


@pytest.mark.parametrize(
    "meta", [{"ui": {"resourceUri": APP}}, {"ui/resourceUri": APP}, {"ui": 3, "ui/resourceUri": APP}]
)
async def test_a_tools_user_interface_is_read_from_its_upstream_though_it_is_not_listed(
    router: Any, fake_upstream: Any, meta: Any
):
    content = {
        "uri": APP,
        "mimeType": "text/html;profile=mcp-app",
        "text": "<html>",
        "_meta": {"ui": {"csp": {"a": []}}},
    }
    result = {"contents": [content], "ttlMs": 5}

    def answer(method: str, params: Any) -> Any:
        return result if params == {"uri": APP} else refusing(method, params)

    fits = fake_upstream("fits", template_list=[{"uriTemplate": "ui://{x}", "name": "x"}], answer=refusing)
    board = fake_upstream("board", [{**TOOL, "_meta": meta}, 3], answer=answer)
    gateway = router(fits, board)
    assert await gateway.respond("resources/read", {"uri": APP}, HOST) is result
    assert fits.asked == []
    assert board.asked[0][:2] == ("resources/read", {"uri": APP})
    assert board.asked_for == [(HOST, None)]
    with pytest.raises(UnknownResource):
        await gateway.respond("resources/read", {"uri": "ui://board/other"}, HOST)


VISIBLE = {"visibility": ["model", "app"]}


async def test_the_tool_that_a_host_is_offered_still_names_its_user_interface(router: Any, fake_upstream: Any):
    meta = {"ui": {"resourceUri": APP, "visibility": ["model", "app"]}}
    (tool,) = (await listed(router, fake_upstream("board", [{**TOOL, "_meta": meta}])))["tools"]
    assert tool["_meta"] == {"ui": {"resourceUri": f"ui://board/{APP.removeprefix('ui://')}", **VISIBLE}}


# -- introductions ---------------------------------------------


async def test_what_upstreams_say_is_told_when_it_changes(router: Any, fake_upstream: Any):
    charts = fake_upstream("charts", instructions="Draw.")
    off = fake_upstream("off", instructions="Never.", state=UpstreamState.DISABLED)
    gateway = router(charts, off)
    heard: list[Introductions] = []
    gateway.on_introductions(heard.append)
    assert gateway.introductions.parts == (("charts", "Draw."),)
    gateway.upstream_changed("charts", "state")
    charts.instructions = "Paint."
    gateway.upstream_changed("charts", "state")
    assert [each.parts for each in heard] == [(("charts", "Paint."),)]
    assert gateway.introductions == heard[0]


async def test_other_settings_may_change_how_much_is_told(router: Any, fake_upstream: Any, shaper: Any):
    gateway = router(fake_upstream("charts", instructions="Draw."))
    heard: list[Introductions] = []
    gateway.on_introductions(heard.append)
    profiles = {"default": Profile(name="default", instructions=InstructionRules(max_chars=99))}
    gateway.reconfigure(Settings(gateway=GatewaySettings()), profiles, shaper)
    assert [each.longest for each in heard] == [99]


def test_each_client_has_the_limit_of_its_profile_the_closest_first():
    def profile(name: str, limit: int | None, *matches: Match) -> Profile:
        return Profile(name=name, match=matches, instructions=InstructionRules(max_chars=limit))

    profiles = {
        each.name: each
        for each in (
            profile("default", 800),
            profile("family", None, Match(client_name="Cl*")),
            profile("one", 20, Match(client_name="claude_code"), Match(user_agent="x")),
        )
    }
    empty: Any = {}
    assert introductions(empty, profiles, None) == Introductions(
        (), (("claude-code", 20), ("cl*", None)), 800, skilled=()
    )
    assert introductions(empty, profiles, "one") == Introductions((), (), 20, skilled=())
