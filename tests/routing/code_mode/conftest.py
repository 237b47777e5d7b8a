"""A gateway whose hosts may run scripts, in front of a server that takes screenshots."""

import json
import sys
from collections.abc import AsyncGenerator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import pytest

from gateway.config.code_mode_settings import CodeModeSettings
from gateway.config.schema import Settings
from gateway.config.upstream_settings import UpstreamSettings
from gateway.core.model.caller import Caller
from gateway.routing import Router
from gateway.runtime import open_gateway

SERVER = Path(__file__).parents[2] / "servers" / "screenshots_stdio.py"
HOST = Caller(revision="2025-11-25", client_name="claude-code", principal="ann", session="s1")


class ScriptingHost:
    """A host of a gateway with code mode. `calls` are the tool calls that reached the server."""

    def __init__(self, router: Router, log: Path, caller: Caller = HOST) -> None:
        self.router, self._log, self.caller = router, log, caller

    def as_(self, caller: Caller) -> "ScriptingHost":
        return ScriptingHost(self.router, self._log, caller)

    async def run(self, code: str, host: Any = None) -> dict[str, Any]:
        params = {"name": "gateway_run", "arguments": {"code": code}}
        return await self.router.respond("tools/call", params, self.caller, host=host)

    async def says(self, code: str) -> str:
        """The texts of a script's result, which has not failed."""
        result = await self.run(code)
        assert not result.get("isError"), texts(result)
        return texts(result)

    async def fails(self, code: str) -> str:
        result = await self.run(code)
        assert result.get("isError"), texts(result)
        return texts(result)

    async def tool(self) -> dict[str, Any]:
        """The tool as it is listed."""
        tools = (await self.router.respond("tools/list", {}, self.caller))["tools"]
        return next(tool for tool in tools if tool["name"] == "gateway_run")

    @property
    def calls(self) -> list[dict[str, Any]]:
        lines = self._log.read_text("utf-8").splitlines() if self._log.exists() else []
        logged = [json.loads(line) for line in lines]
        return [each["params"] for each in logged if each["method"] == "tools/call"]


def texts(result: dict[str, Any]) -> str:
    return "\n".join(block["text"] for block in result["content"] if block["type"] == "text")


Opened = Callable[..., AbstractAsyncContextManager[ScriptingHost]]


@pytest.fixture
def opened(tmp_path: Path) -> Opened:
    @asynccontextmanager
    async def opening(sections: dict[str, Any] | None = None, **code_mode: Any) -> AsyncGenerator[ScriptingHost]:
        log = tmp_path / "log"
        upstream = UpstreamSettings(command=sys.executable, args=(str(SERVER), str(log)))
        settings = CodeModeSettings.model_validate({"enabled": True, **code_mode})
        chosen = Settings(upstreams={"browser": upstream}, code_mode=settings, **(sections or {}))
        with anyio.fail_after(120):
            async with open_gateway(chosen) as router:
                assert await router.upstreams["browser"].ready(60)
                yield ScriptingHost(router, log)

    return opening
