"""Upstreams over HTTP: Streamable HTTP, the legacy SSE transport, and finding out which of them it is."""

from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import Any

import anyio
import pytest

from gateway.config.upstream_settings import Timeouts, UpstreamSettings
from gateway.core.model.caller import Caller
from gateway.errors import UpstreamGarbage, UpstreamLost, UpstreamRefused, UpstreamTimeout, UpstreamUnavailable
from gateway.upstream import Upstream, UpstreamState
from gateway.upstream.connection.request_context import RequestContext

pytestmark = pytest.mark.anyio

LIMITS = Timeouts(call=10, idle=10)
Way = tuple[tuple[str, ...], str, dict[str, Any]]
"""Flags of the server, a path, and settings."""

SDK: dict[str, Any] = {"http_client": "sdk"}
WAYS: dict[str, Way] = {
    "http, JSON answers": ((), "/mcp", {}),
    "http, event streams": (("sse-answers",), "/mcp", {}),
    "http, sessions": (("sessions",), "/mcp", {}),
    "http, stateless era": (("modern",), "/mcp", {}),
    "http, JSON answers, the SDK's client": ((), "/mcp", SDK),
    "http, event streams, the SDK's client": (("sse-answers",), "/mcp", SDK),
    "http, sessions, the SDK's client": (("sessions",), "/mcp", SDK),
    "http, stateless era, the SDK's client": (("modern",), "/mcp", SDK),
    "legacy sse": ((), "/sse", {}),
}


@pytest.fixture(params=WAYS, ids=str)
def way(request: pytest.FixtureRequest) -> Way:
    return WAYS[request.param]


@pytest.fixture(params=["gateway", "sdk"])
def over(request: pytest.FixtureRequest) -> Callable[..., UpstreamSettings]:
    """Settings for an upstream over HTTP, with either client."""
    return partial(UpstreamSettings, http_client=request.param)


async def call(upstream: Upstream, tool: str, timeout: Timeouts = LIMITS, **arguments: Any) -> dict[str, Any]:
    return await upstream.request("tools/call", {"name": tool, "arguments": arguments}, timeout=timeout)


async def test_lists_and_results_arrive_as_they_were_sent(connect: Any, serve: Any, way: Any) -> None:
    flags, path, options = way
    async with serve(*flags) as origin, connect(UpstreamSettings(url=origin + path, **options)) as upstream:
        assert upstream.tools()[0]["futureField"] == {"of": ["odd"]}
        assert upstream.resources()[0]["later"] == 1
        result = await call(upstream, "odd")
        assert [block["type"] for block in result["content"]] == ["text", "video", "image"]
        assert result["content"][0]["futureField"] == {"deep": [1, 2.5, None]}
        assert result["structuredContent"] == {"n": 12345678901234567890, "text": "naïve \u2028 ☃"}
        assert result["x-unknown"] == {"kept": True}


async def test_a_three_megabyte_image_arrives_whole(connect: Any, serve: Any, way: Any) -> None:
    flags, path, options = way
    async with serve(*flags) as origin, connect(UpstreamSettings(url=origin + path, **options)) as upstream:
        result = await call(upstream, "big", size=4_000_000)
        assert len(result["content"][0]["data"]) == 4_000_000


async def test_an_answer_over_the_limit_is_named_and_the_next_call_works(connect: Any, serve: Any, way: Any) -> None:
    flags, path, options = way
    settings: dict[str, Any] = {"max_message_bytes": 1_000_000}
    async with serve(*flags) as origin, connect(UpstreamSettings(url=origin + path, **settings, **options)) as upstream:
        with pytest.raises(UpstreamGarbage, match=r"more than 1\.0 MB"):
            await call(upstream, "big", size=2_000_000)
        assert (await call(upstream, "odd"))["x-unknown"]


async def test_errors_and_limits_are_the_same_as_over_stdio(connect: Any, serve: Any, way: Any) -> None:
    flags, path, options = way
    async with serve(*flags) as origin, connect(UpstreamSettings(url=origin + path, **options)) as upstream:
        with pytest.raises(UpstreamRefused) as caught:
            await call(upstream, "refuse")
        assert caught.value.wire()["data"] == {"elicitations": [{"url": "https://example.org/x"}]}
        with pytest.raises(UpstreamTimeout, match="took longer"):
            await call(upstream, "hang", Timeouts(call=0.3, idle=10))
        heard: list[float] = []

        async def hear(progress: float, total: float | None, message: str | None) -> None:
            heard.append(progress)

        params = {"name": "tick", "arguments": {"count": 8, "delay": 0.15}}
        context = RequestContext(Caller(), on_progress=hear)
        await upstream.default.request("tools/call", params, context, Timeouts(call=20, idle=1))
        assert heard[-1] == 8


async def test_a_death_in_mid_call_is_noticed_and_the_next_call_finds_the_new_server(
    connect: Any, serve: Any, way: Any
) -> None:
    flags, path, options = way
    async with serve(*flags) as origin, connect(UpstreamSettings(url=origin + path, **options)) as upstream:
        with pytest.raises(UpstreamLost):
            await call(upstream, "die")
        # As long as the process is ending, its port takes connections and breaks them.
        with pytest.raises(UpstreamUnavailable, match=r"connection refused|broke the connection|no connection to"):
            await call(upstream, "odd")
        async with serve(*flags, "--port", origin.rpartition(":")[2]):
            assert (await found_again(upstream))["x-unknown"]
            assert upstream.state is UpstreamState.READY


async def found_again(upstream: Upstream) -> dict[str, Any]:
    """The result of a call of a server that is there again: the first may join an attempt from before it was."""
    with anyio.fail_after(60):
        while True:
            with suppress(UpstreamUnavailable):
                return await call(upstream, "odd")


async def test_a_body_without_end_is_cut_off_at_the_limit(connect: Any, serve: Any, over: Any) -> None:
    async with serve() as origin:
        async with connect(over(url=f"{origin}/huge", max_message_bytes=2_000_000)) as upstream:
            with pytest.raises(UpstreamGarbage, match=r"more than 2\.0 MB"):
                await call(upstream, "odd")
        huge = over(url=f"{origin}/declared-huge", max_message_bytes=2_000_000)
        async with connect(huge, ready=False) as upstream:
            assert "more than 2.0 MB" in upstream.cause


@pytest.mark.parametrize(
    ("path", "words"),
    [
        ("/status/401", "headers"),
        ("/status/403", "token"),
        ("/status/404", "HTTP 404"),
        ("/status/500", "HTTP 500"),
        ("/html", "neither JSON"),
        ("/squeezed", "compressed"),
        ("/redirect", "redirect"),
        ("/sse-elsewhere", "another origin"),
    ],
)
async def test_what_is_wrong_with_an_address_is_said(
    connect: Any, serve: Any, path: str, words: str, over: Any
) -> None:
    async with (
        serve() as origin,
        connect(over(url=origin + path), ready=False) as upstream,
    ):
        assert upstream.state is UpstreamState.FAILED
        assert words in upstream.cause


async def test_nobody_listening_is_named_by_origin_without_credentials(connect: Any) -> None:
    settings = UpstreamSettings(url="http://user:hunter22@127.0.0.1:9/path?key=s3cr3t", headers={"X-Key": "t0ps3cret"})
    async with connect(settings, ready=False) as upstream:
        assert "connection refused by http://127.0.0.1:9" in upstream.cause
        assert not any(secret in upstream.cause for secret in ("hunter22", "s3cr3t", "t0ps3cret"))


async def test_a_header_that_cannot_be_sent_is_refused_without_quoting_it(connect: Any, serve: Any, over: Any) -> None:
    async with serve() as origin:
        settings = over(url=f"{origin}/mcp", headers={"X-Key": "broken\nsecret"})
        async with connect(settings, ready=False) as upstream:
            assert "headers" in upstream.cause
            assert "secret" not in upstream.cause


async def test_a_redirect_within_the_origin_is_followed(connect: Any, serve: Any) -> None:
    async with serve() as origin, connect(UpstreamSettings(url=f"{origin}/moved")) as upstream:
        assert (await call(upstream, "odd"))["x-unknown"]


async def test_the_configured_headers_are_sent_and_compression_is_declined(connect: Any, serve: Any, over: Any) -> None:
    async with serve() as origin:
        settings = over(url=f"{origin}/mcp", headers={"Authorization": "Bearer sesame"})
        async with connect(settings) as upstream:
            sent = (await call(upstream, "headers"))["structuredContent"]
            assert sent["authorization"] == "Bearer sesame"
            assert sent["accept-encoding"] == "identity"
            assert sent["mcp-protocol-version"] == "2025-11-25"
            assert "mcp-method" not in sent


async def test_the_stateless_era_has_its_headers(connect: Any, serve: Any, over: Any) -> None:
    async with (
        serve("modern") as origin,
        connect(over(url=f"{origin}/mcp")) as upstream,
    ):
        assert (upstream.era, upstream.revision) == ("modern", "2026-07-28")
        assert upstream.server_info == {"name": "raw-modern", "version": "1"}
        sent = (await call(upstream, "headers"))["structuredContent"]
        assert sent["mcp-protocol-version"] == "2026-07-28"
        assert (sent["mcp-method"], sent["mcp-name"]) == ("tools/call", "headers")
        assert (await call(upstream, "headers", region="north"))["structuredContent"]["mcp-param-region"] == "north"


async def test_a_tool_with_invalid_header_annotations_is_left_out_where_headers_are_sent(
    connect: Any, serve: Any, stdio: Any
) -> None:
    async with serve("modern") as origin, connect(UpstreamSettings(url=f"{origin}/mcp")) as upstream:
        assert "bad_header" not in [tool["name"] for tool in upstream.tools()]
        assert "headers" in [tool["name"] for tool in upstream.tools()]
    async with connect(stdio("modern")) as upstream:
        assert "bad_header" in [tool["name"] for tool in upstream.tools()]


async def test_an_expired_session_is_named_and_the_next_call_opens_another(connect: Any, serve: Any, over: Any) -> None:
    async with (
        serve("sessions") as origin,
        connect(over(url=f"{origin}/mcp")) as upstream,
    ):
        with pytest.raises(UpstreamLost, match="session"):
            await call(upstream, "forget")
        assert (await call(upstream, "odd"))["x-unknown"]


async def test_auto_is_decided_once_and_an_explicit_transport_is_not_doubted(connect: Any, serve: Any) -> None:
    async with serve() as origin:
        async with connect(UpstreamSettings(url=f"{origin}/sse", transport="sse")) as upstream:
            assert (await call(upstream, "odd"))["x-unknown"]
        async with connect(UpstreamSettings(url=f"{origin}/sse", transport="http"), ready=False) as upstream:
            assert "HTTP 405" in upstream.cause
            assert "SSE" not in upstream.cause


@pytest.mark.parametrize("flags", [("get-stream", "sessions"), ("modern",)])
async def test_a_changed_list_is_listed_again(
    connect: Any, serve: Any, changes: Any, flags: tuple[str, ...], over: Any
) -> None:
    async with serve(*flags) as origin, connect(over(url=f"{origin}/mcp")) as upstream:
        before = len(upstream.tools())
        # The stream that tells of changes is opened beside the calls: until it is, a change is told to nobody.
        while len(upstream.tools()) == before:
            await call(upstream, "grow")
            with anyio.move_on_after(0.5):
                await changes.until(lambda: len(upstream.tools()) > before)
        assert upstream.tools()[-1]["name"].startswith("extra")


async def test_all_upstreams_share_one_tls_context() -> None:
    from gateway.upstream.transports.clients import client_options

    first, second = (client_options(UpstreamSettings(url=f"https://{name}.example")) for name in "ab")
    assert first["verify"] is second["verify"]
