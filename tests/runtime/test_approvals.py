"""Real hosts over HTTP, in both eras, are asked for the approval of their users; each for its own calls."""

import asyncio
import sys
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any, Literal

import anyio
import pytest
from mcp import Client
from mcp.client.streamable_http import streamable_http_client
from mcp.types import ElicitResult

from gateway.config.http_settings import HttpSettings
from gateway.config.policy_settings import PolicySettings
from gateway.config.schema import Settings
from gateway.config.upstream_settings import UpstreamSettings
from gateway.runtime import run_gateway
from gateway.serving.access import Access
from gateway.serving.mcp.handshake import Identity
from gateway.serving.mcp.http import http_app, serve_http

pytestmark = pytest.mark.anyio

SERVER = Path(__file__).parents[1] / "servers" / "turncoat_stdio.py"
RULES = [{"name": "look-first", "effect": "approve", "destructive": True}]
YES = ElicitResult(action="accept", content={"decision": "allow"})
NO = ElicitResult(action="decline")


@asynccontextmanager
async def served() -> AsyncGenerator[str]:
    upstreams = {"mail": UpstreamSettings(command=sys.executable, args=(str(SERVER),))}
    policy = PolicySettings.model_validate({"rules": RULES})
    settings = Settings(upstreams=upstreams, http=HttpSettings(port=0), policy=policy)
    async with run_gateway(settings, over_http=True) as running:
        assert await running.router.upstreams["mail"].ready(60)
        access = Access(settings.http, settings.access)
        telemetry = running.router.telemetry
        app = http_app(running.router, settings.http, Identity("gateway", "1"), access=access, telemetry=telemetry)
        async with anyio.create_task_group() as tasks:
            bound = asyncio.Queue[int]()
            tasks.start_soon(partial(serve_http, app, settings.http, on_bound=bound.put_nowait))
            yield f"http://127.0.0.1:{await bound.get()}/mcp"
            tasks.cancel_scope.cancel()


@pytest.mark.parametrize("mode", ["auto", "legacy"])
async def test_a_host_shows_the_question_and_the_call_goes_on(mode: Literal["auto", "legacy"]) -> None:
    asked: list[str] = []
    answers = [YES, NO, YES]

    async def elicited(context: Any, params: Any) -> ElicitResult:
        asked.append(params.message)
        return answers[len(asked) - 1]

    with anyio.fail_after(60):
        async with (
            served() as url,
            Client(streamable_http_client(url), mode=mode, cache=None, elicitation_callback=elicited) as client,
        ):
            for number, answer in enumerate(answers, 1):
                result = await client.call_tool("mail__send", {"to": f"number {number}"})
                assert result.is_error is (answer is NO)
                assert f"number {number}" in asked[-1]
            assert not (await client.call_tool("mail__look", {})).is_error
            assert len(asked) == 3


@pytest.mark.parametrize("mode", ["auto", "legacy"])
async def test_a_host_that_cannot_ask_is_told_how_its_user_approves(mode: Literal["auto", "legacy"]) -> None:
    with anyio.fail_after(60):
        async with served() as url, Client(streamable_http_client(url), mode=mode, cache=None) as client:
            result = await client.call_tool("mail__send", {"to": "you"})
            assert result.is_error
            assert "mcp-gateway approvals approve" in result.content[0].model_dump()["text"]
