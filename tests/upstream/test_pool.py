import subprocess
import sys
from typing import Any

import anyio
import pytest

from gateway.config.upstream_settings import Timeouts, UpstreamSettings
from gateway.errors import UpstreamUnavailable
from gateway.upstream import Upstreams, UpstreamState

pytestmark = pytest.mark.anyio

LIMITS = Timeouts(call=10, idle=10)


async def test_one_upstream_costs_the_others_nothing(stdio: Any, changes: Any) -> None:
    settings = {
        "hanging": stdio("silent"),
        "dead": stdio("die-at-start"),
        "missing": UpstreamSettings(command="no-such-mcp-server"),
        "refusing": stdio("refuse-initialize"),
        "off": stdio(enabled=False),
        "good": stdio(),
    }
    with anyio.fail_after(30):
        async with Upstreams(settings, on_change=changes) as upstreams:
            assert list(upstreams) == list(settings)
            assert await upstreams["good"].ready(20)
            assert upstreams["hanging"].state is UpstreamState.STARTING
            result = await upstreams["good"].request("tools/call", {"name": "odd"}, timeout=LIMITS)
            assert result["x-unknown"]
            for name in ("dead", "missing", "refusing"):
                assert not await upstreams[name].ready(20)
                assert upstreams[name].state is UpstreamState.FAILED
            assert "licence missing" in (upstreams["refusing"].cause or "")
            assert not await upstreams.settled(0)
        assert all(one.state is UpstreamState.STOPPED for name, one in upstreams.items() if name != "off")


async def test_a_disabled_upstream_is_never_started(stdio: Any, changes: Any) -> None:
    async with Upstreams({"off": stdio(enabled=False)}, on_change=changes) as upstreams:
        assert await upstreams.settled(1)
        assert upstreams["off"].state is UpstreamState.DISABLED
        with pytest.raises(UpstreamUnavailable, match="disabled"):
            await upstreams["off"].request("tools/list", {}, timeout=LIMITS)
    assert upstreams["off"].state is UpstreamState.DISABLED


async def test_a_request_waits_for_an_upstream_that_is_starting(stdio: Any, changes: Any) -> None:
    with anyio.fail_after(30):
        async with Upstreams({"raw": stdio()}, on_change=changes) as upstreams:
            assert upstreams["raw"].state is UpstreamState.STARTING
            assert (await upstreams["raw"].request("tools/call", {"name": "odd"}, timeout=LIMITS))["x-unknown"]


async def test_a_request_waits_no_longer_than_the_start_limit(stdio: Any, changes: Any) -> None:
    settings = {"raw": stdio("silent", timeout=Timeouts(start=1))}
    with anyio.fail_after(30):
        async with Upstreams(settings, on_change=changes) as upstreams:
            with pytest.raises(UpstreamUnavailable):
                await upstreams["raw"].request("tools/call", {"name": "odd"}, timeout=LIMITS)


async def test_nothing_can_be_asked_after_the_end(stdio: Any, changes: Any) -> None:
    async with Upstreams({"raw": stdio()}, on_change=changes) as upstreams:
        assert await upstreams["raw"].ready(20)
    with pytest.raises(UpstreamUnavailable, match="stopped"):
        await upstreams["raw"].request("tools/call", {"name": "odd"}, timeout=LIMITS)


async def test_one_that_keeps_failing_is_tried_again_without_being_called_starting(stdio: Any, changes: Any) -> None:
    with anyio.fail_after(30):
        async with Upstreams({"raw": stdio("die-at-start")}, on_change=changes) as upstreams:
            assert not await upstreams["raw"].ready(20)
            for _ in range(3):
                with pytest.raises(UpstreamUnavailable, match="API_KEY"):
                    await upstreams["raw"].request("tools/call", {"name": "odd"}, timeout=LIMITS)
                assert upstreams["raw"].state is UpstreamState.FAILED
    assert changes.all == [("raw", "state")] * 2  # failed, stopped


async def test_what_changes_is_announced_in_order(stdio: Any, changes: Any) -> None:
    async with Upstreams({"raw": stdio()}, on_change=changes) as upstreams:
        assert await upstreams["raw"].ready(20)
    assert [kind for _, kind in changes.all] == ["tools", "resources", "state", "state"]


async def test_the_stateless_era_over_stdio(connect: Any, stdio: Any, changes: Any) -> None:
    async with connect(stdio("modern")) as upstream:
        assert (upstream.era, upstream.revision) == ("modern", "2026-07-28")
        assert (await upstream.request("tools/call", {"name": "odd"}, timeout=LIMITS))["x-unknown"]
        seen = await upstream.request(
            "tools/call",
            {"name": "echo", "_meta": {"io.modelcontextprotocol/clientInfo": {"name": "a host"}}},
            timeout=LIMITS,
        )
        meta = seen["structuredContent"]["params"]["_meta"]
        assert meta["io.modelcontextprotocol/clientInfo"]["name"] == "mcp-gateway"
        assert meta["io.modelcontextprotocol/clientCapabilities"] == {}
    async with connect(stdio(), era="modern") as upstream:  # another server has taken its place
        assert upstream.era == "handshake"


def test_importing_the_room_loads_neither_the_sdk_nor_an_http_client() -> None:
    script = (
        "import gateway.upstream, sys; sys.exit(any(name in sys.modules for name in ('mcp', 'mcp_types', 'httpx2')))"
    )
    assert subprocess.run([sys.executable, "-c", script], check=False).returncode == 0
