"""What results cost in tokens, through a whole gateway: in the log, the metrics, the console's calls, and limits."""

import logging
import sys
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import anyio
import pytest

from gateway.config.schema import Settings
from gateway.config.upstream_settings import UpstreamSettings
from gateway.core.model.caller import Caller
from gateway.errors import TooManyCalls
from gateway.routing.token_counts import TokenCounts
from gateway.runtime import Gateway, run_gateway
from gateway.telemetry.call_history import CallHistory

pytestmark = pytest.mark.anyio

SERVER = Path(__file__).parents[1] / "servers" / "media_stdio.py"
CODE = Caller(revision="2025-11-25", client_name="claude-code")


@asynccontextmanager
async def opened(**sections: Any) -> AsyncGenerator[Gateway]:
    upstreams = {"media": UpstreamSettings(command=sys.executable, args=(str(SERVER),))}
    settings = Settings.model_validate({**sections, "upstreams": upstreams})
    with anyio.fail_after(60):
        async with run_gateway(settings) as gateway:
            assert await gateway.upstreams.settled(30)
            yield gateway


async def call(gateway: Gateway, tool: str, caller: Caller = CODE, **arguments: Any) -> dict[str, Any]:
    return await gateway.router.respond("tools/call", {"name": f"media__{tool}", "arguments": arguments}, caller)


async def test_the_log_and_the_metrics_have_the_tokens_if_they_are_wanted(caplog: pytest.LogCaptureFixture) -> None:
    async with opened(tokens={"count": True}) as gateway:
        with caplog.at_level(logging.INFO, "gateway.telemetry.calls"):
            await call(gateway, "large_picture")
        metrics = gateway.router.telemetry.metrics
        # 2400x800 is sent as 2000x667 to this host: 72 x 24 patches of 28 pixels.
        assert metrics.result_tokens.value("claude-code", "images") == 72 * 24
        assert metrics.result_tokens.value("claude-code", "text") > 0
    (line,) = [record for record in caplog.records if "call media__large_picture" in record.getMessage()]
    assert "1,728 of them for images (claude)" in line.getMessage()


async def test_nothing_is_counted_unless_it_is_wanted(caplog: pytest.LogCaptureFixture) -> None:
    async with opened() as gateway:
        with caplog.at_level(logging.INFO, "gateway.telemetry.calls"):
            await call(gateway, "picture")
        assert gateway.router.telemetry.metrics.result_tokens.value("claude-code", "images") == 0
    assert "token" not in caplog.text


async def test_the_model_behind_the_hosts_decides() -> None:
    async with opened(tokens={"count": True}, gateway={"model": "gemini-3-pro"}) as gateway:
        await call(gateway, "picture")
        assert gateway.router.telemetry.metrics.result_tokens.value("claude-code", "images") == 1_120


async def test_a_call_that_the_console_keeps_has_its_tokens() -> None:
    async with opened() as gateway:
        history = gateway.router.telemetry.history = CallHistory(10, 1_000_000)
        await call(gateway, "picture")
        (past,) = history.newest_first()
        assert past.record.tokens is not None
        assert (past.record.tokens.images, past.record.token_formula) == (4, "claude")


async def test_the_images_of_a_day_are_limited_for_each_principal() -> None:
    async with opened(access={"limits": {"picture_tokens_per_day": 6}}) as gateway:
        await call(gateway, "words", lines=200)  # text costs nothing here
        for _ in range(2):  # 4 tokens each: the one that exceeds the limit is still given
            await call(gateway, "picture")
        said = r"only images of 6 tokens a day are allowed \(try again in \d+ (h|min|s)\)"
        for tool in ("picture", "words"):
            with pytest.raises(TooManyCalls, match=said):
                await call(gateway, tool, lines=1)
        await call(gateway, "picture", replace(CODE, principal="bob"))


async def test_where_a_host_offers_several_models_the_dearest_counts_towards_the_limit() -> None:
    async with opened(access={"limits": {"picture_tokens_per_day": 1_000}}) as gateway:
        unknown = Caller(revision="2025-11-25", client_name="something")
        await call(gateway, "picture", unknown)  # 1,120 by the formula of Gemini
        with pytest.raises(TooManyCalls, match=r"only images of 1,000 tokens a day"):
            await call(gateway, "picture", unknown)


PROFILES = {"frugal": {"extends": "claude-code", "sets": {"tokens.max_result": 300}}}


async def test_a_result_keeps_to_the_budget_of_its_profile_or_of_its_tool() -> None:
    upstream = {"command": sys.executable, "args": [str(SERVER)], "tools": {"max_tokens": {"words": 200}}}
    settings = Settings.model_validate({"profiles": PROFILES, "upstreams": {"media": upstream}})
    frugal = Caller(revision="2025-11-25", profile="frugal")
    with anyio.fail_after(60):
        async with run_gateway(settings) as gateway:
            assert await gateway.upstreams.settled(30)
            counted = TokenCounts(None)
            profile = gateway.router.profile_of(frugal)
            picture = await call(gateway, "large_picture", frugal)
            assert 100 < counted.picture_tokens(picture, profile, None) <= 300
            assert len((await call(gateway, "words", frugal, lines=5_000))["content"][0]["text"]) < 1_500
            # The tool's own budget holds for every host; other tools of this host have none.
            assert len((await call(gateway, "words", lines=5_000))["content"][0]["text"]) < 1_500
            assert counted.picture_tokens(await call(gateway, "large_picture"), profile, None) == 72 * 24
