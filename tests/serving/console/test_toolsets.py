"""Toolsets in the console: what each has, what it hides, and who uses it."""

from collections.abc import Callable
from typing import Any

import pytest

from gateway.core.model.caller import Caller
from tests.serving.console.conftest import PATIENCE, Shown
from tests.serving.console.test_hosts import connected

pytestmark = pytest.mark.anyio

HOSTILE = "<script>alert(1)</script>"


def tools(*names: str) -> dict[str, Any]:
    return {"tools": [{"name": name, "description": "x", "inputSchema": {"type": "object"}} for name in names]}


SECTIONS: dict[str, Any] = {
    "toolsets": {
        "work": {"upstreams": ["docs"], "exclude": ["docs__delete_*"]},
        "none": {"resources": ["docs__file:///*"]},
    },
    "access": {"tokens": {"ann": {"token": "a-token-of-ann-0123", "toolset": "work"}}},
}


async def ready(one: Shown) -> None:
    for upstream in one.gateway.upstreams.values():
        await upstream.ready(PATIENCE)


async def test_a_toolset_says_what_it_has_what_it_hides_and_who_uses_it(
    scripted: Callable[[dict[str, Any]], dict[str, Any]],
) -> None:
    server = scripted(tools("read", "write", "delete_all", HOSTILE))
    hosts = (Caller(client_name="cursor", toolsets=("work",)), Caller(client_name="codex"))
    upstreams = {"docs": server, "mail": server}
    async with connected(*hosts, upstreams=upstreams, **SECTIONS) as one:
        await ready(one)
        view = await one.json("/toolsets")
        work, none = view["toolsets"]
        (docs,) = work["servers"]
        assert (work["name"], work["tools"], view["tools"]) == ("work", 3, 8)
        assert [server["name"] for server in work["outside"]] == ["mail"]
        assert docs["has"] == {"count": 3, "names": ["read", "write", HOSTILE]}
        assert docs["hides"] == {"count": 1, "names": ["delete_all"]}
        assert (work["hosts"], work["users"]) == (["cursor"], [{"kind": "token", "name": "ann"}])
        assert work["tokens"] > 0
        assert (none["tools"], none["hosts"], none["users"]) == (0, [], [])
        page = (await one.get("/toolsets")).text
        assert HOSTILE not in page
        assert "/mcp/auto/work" in page
        assert "3 of 8 tools" in page
        assert "toolset <a" in (await one.get("/hosts")).text


async def test_try_offers_and_calls_what_is_in_the_chosen_toolset_alone(
    scripted: Callable[[dict[str, Any]], dict[str, Any]],
) -> None:
    server = scripted({**tools("read", "delete_all"), "results": {"read": {"content": []}}})
    async with connected(upstreams={"docs": server, "mail": server}, **SECTIONS) as one:
        await ready(one)
        for chosen, most in {"": 4, "auto/work": 1, "codex/work": 1}.items():
            view = await one.json(f"/try?profile={chosen}")
            offered = [tool["name"] for group in view["groups"] if not group["is_own"] for tool in group["tools"]]
            assert offered[:1] == ["docs__read"]
            assert len(offered) == most
            assert view["toolsets"] == ["work", "none"]
            page = (await one.get(f"/try?profile={chosen}")).text
            assert not chosen or f'value="{chosen}" selected' in page
        assert (await one.get("/try/tools/docs__read?profile=auto/work")).status_code == 200
        assert (await one.get("/api/try/tools/docs__delete_all?profile=auto/work")).status_code == 404
        sent = {"arguments": {}, "profile": "auto/work"}
        hidden = await one.browser.post("/console/api/try/tools/mail__read", json=sent)
        assert hidden.status_code == 400
        unknown = await one.get("/api/try?profile=auto/nowhere")
        assert "there is no toolset 'nowhere'" in unknown.json()["error"]


async def test_without_toolsets_it_says_how_to_write_one() -> None:
    async with connected() as one:
        assert (await one.json("/toolsets"))["toolsets"] == []
        assert "[toolsets.work]" in (await one.get("/toolsets")).text
