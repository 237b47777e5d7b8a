"""The console of a real gateway in this process, with a real server behind it, before a client with a session."""

import json
import re
import sys
from collections.abc import AsyncGenerator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

import httpx2
import pytest
from starlette.applications import Starlette

from gateway.config.schema import Settings
from gateway.core.model.caller import Caller
from gateway.runtime import Gateway, run_gateway
from gateway.serving.console.admission import FORM_TOKEN, Identify
from gateway.serving.console.console import Console, open_console
from gateway.serving.console.routes import console_mounts
from gateway.system.background_tasks import background_tasks

SERVERS = Path(__file__).parents[2] / "servers"
PATIENCE = 60.0
HOST = Caller(revision="2025-11-25", client_name="claude-code", client_version="2.1.329")


async def nothing_to_report() -> dict[str, Any]:
    """A status in which nothing is running."""
    return {
        "upstreams": [],
        "hosts": [],
        "approvals": 0,
        "memory_bytes": 1,
        "store": {"bytes": 0},
        "configuration": {"problem": None},
    }


class Shown:
    """A gateway with its console: `get` and `post` are those of a browser that was let in."""

    def __init__(self, gateway: Gateway, console: Console, app: Starlette, browser: httpx2.AsyncClient) -> None:
        self.gateway = gateway
        self.console = console
        self.app = app
        self.browser = browser

    async def call(self, tool: str, **arguments: Any) -> dict[str, Any]:
        """A host calls a tool, once its server has started."""
        upstream = self.gateway.upstreams.get(tool.partition("__")[0])
        if upstream is not None:
            await upstream.ready(PATIENCE)
        return await self.gateway.router.respond("tools/call", {"name": tool, "arguments": arguments}, HOST)

    async def get(self, path: str, **headers: str) -> httpx2.Response:
        """A page or JSON of the console."""
        return await self.browser.get(f"/console{path}", headers=headers)

    async def json(self, path: str) -> Any:
        """JSON of the console, which has to be there."""
        answer = await self.get(f"/api{path}")
        assert answer.status_code == 200, answer.text
        return answer.json()

    async def enter(self) -> None:
        """The browser is let in, and sends the token of the console's own forms."""
        answer = await self.get(f"/enter?key={self.console.sessions.new_key()}")
        assert answer.status_code == 303
        page = await self.get("/calls")
        found = re.search(rf'"{FORM_TOKEN}": "([0-9a-f]+)"', page.text.replace("&#34;", '"'))
        assert found
        self.browser.headers[FORM_TOKEN] = found[1]


@asynccontextmanager
async def shown(upstreams: dict[str, Any], identify: Identify | None = None, **sections: Any) -> AsyncGenerator[Shown]:
    """Run a gateway with these upstreams, and its console."""
    async with AsyncExitStack() as stack:
        settings = Settings.model_validate({"upstreams": upstreams, **sections})
        gateway = await stack.enter_async_context(run_gateway(settings))
        tasks = await stack.enter_async_context(background_tasks())
        console = await open_console(gateway, nothing_to_report, tasks)
        app = Starlette(routes=console_mounts("/console", console, identify))
        transport = httpx2.ASGITransport(app)
        browser = await stack.enter_async_context(httpx2.AsyncClient(transport=transport, base_url="http://127.0.0.1"))
        yield Shown(gateway, console, app, browser)


@pytest.fixture
async def media() -> AsyncGenerator[Shown]:
    """The console of a gateway with the server of pictures, used by a browser that was let in."""
    server = {"command": sys.executable, "args": [str(SERVERS / "media_stdio.py")]}
    async with shown({"media": server}) as one:
        await one.enter()
        yield one


@pytest.fixture
def scripted(tmp_path: Path) -> Callable[[dict[str, Any]], dict[str, Any]]:
    """The settings of a server that does what a script says; see tests/servers/scripted_stdio.py."""

    def settings(script: dict[str, Any]) -> dict[str, Any]:
        path = tmp_path / "script.json"
        path.write_text(json.dumps(script))
        return {"command": sys.executable, "args": [str(SERVERS / "scripted_stdio.py"), str(path)]}

    return settings
