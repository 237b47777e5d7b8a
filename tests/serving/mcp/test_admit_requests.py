"""Requests beyond what can be done at once are refused: over HTTP by a status before the answer begins."""

import json
from collections.abc import Callable
from typing import Any

import anyio
import anyio.lowlevel
import httpx2
import pytest

from gateway.admission.admission import Admission
from gateway.admission.pressure import Pressure
from gateway.config.overload_settings import OverloadSettings
from gateway.core.model.wire import OVERLOADED
from gateway.system.memory_limit import MemoryUse
from tests.servers.downstream_service import SampleService
from tests.serving.mcp.conftest import Served, serve

pytestmark = pytest.mark.anyio

MODERN = "2026-07-28"
HANDSHAKE = "2025-11-25"
ACCEPT = {"accept": "application/json, text/event-stream"}


class Host:
    """A host over Streamable HTTP, of either era, that shows the answer as it is."""

    def __init__(self, client: httpx2.AsyncClient, era: str) -> None:
        self.client, self.era = client, era
        self.headers: dict[str, str] = {**ACCEPT, "mcp-protocol-version": era}
        self.count = 0

    async def begin(self) -> "Host":
        if self.era == HANDSHAKE:
            info = {"name": "h", "version": "1"}
            opened = await self.ask("initialize", {"protocolVersion": self.era, "capabilities": {}, "clientInfo": info})
            self.headers["mcp-session-id"] = opened.headers["mcp-session-id"]
            await self.post({"jsonrpc": "2.0", "method": "notifications/initialized"})
        return self

    async def ask(self, method: str, params: dict[str, Any]) -> httpx2.Response:
        self.count += 1
        headers = {}
        if self.era == MODERN:
            own = "io.modelcontextprotocol/"
            info = {"name": "h", "version": "1"}
            meta = {f"{own}protocolVersion": MODERN, f"{own}clientInfo": info, f"{own}clientCapabilities": {}}
            params = {**params, "_meta": meta}
            headers = {"mcp-method": method, **({"mcp-name": params["name"]} if "name" in params else {})}
        return await self.post({"jsonrpc": "2.0", "id": self.count, "method": method, "params": params}, headers)

    async def post(self, message: Any, headers: dict[str, str] | None = None) -> httpx2.Response:
        return await self.client.post("/mcp", json=message, headers={**self.headers, **(headers or {})})

    async def call(self, tool: str) -> httpx2.Response:
        return await self.ask("tools/call", {"name": tool, "arguments": {}})


class Percent:
    """Memory in use, in percent of its limit."""

    now = 10


def serving(percent: type[Percent] = Percent, **settings: Any) -> tuple[SampleService, Any]:
    service = SampleService()
    pressure = Pressure(read=lambda: [MemoryUse(percent.now, 100)])
    service.admission = Admission(OverloadSettings.model_validate(settings), pressure)
    return service, serve(service)


def client_of(served: Served) -> httpx2.AsyncClient:
    return httpx2.AsyncClient(base_url=served.url, timeout=30, trust_env=False)


async def until(condition: Callable[[], bool]) -> None:
    with anyio.fail_after(20):
        while not condition():  # noqa: ASYNC110 - what is waited for tells nobody
            await anyio.sleep(0.002)


@pytest.mark.parametrize("era", [MODERN, HANDSHAKE])
async def test_a_request_too_many_gets_a_status_and_the_seconds_to_wait(era: str) -> None:
    service, serving_it = serving(calls_at_once=1, queue=0)
    async with serving_it as served, client_of(served) as client, anyio.create_task_group() as tasks:
        host = await Host(client, era).begin()
        for _ in range(2):  # one place, and a spare one for whom none is worked on: both are of one principal
            tasks.start_soon(host.call, "wait")
            await anyio.lowlevel.checkpoint()
        await until(lambda: service.admission.running == 1 and service.admission.refused["full"] == 1)
        refused = await host.call("echo")
        assert refused.status_code == 503
        assert refused.headers["retry-after"] == "1"
        body = refused.json()
        assert body["id"] == host.count
        assert body["error"]["code"] == OVERLOADED
        assert body["error"]["data"] == {"retryAfter": 1}
        assert "at its limit" in body["error"]["message"]
        assert (await host.ask("ping", {})).status_code == 200 or era == MODERN  # which has no ping
        assert (await client.get("/mcp", headers={"accept": "text/html"})).status_code != 503
        tasks.cancel_scope.cancel()


@pytest.mark.parametrize("era", [MODERN, HANDSHAKE])
async def test_a_request_waits_for_its_turn_and_a_host_that_leaves_gives_it_up(era: str) -> None:
    service, serving_it = serving(calls_at_once=1, queue=2, queue_time=30)
    async with serving_it as served, client_of(served) as client, anyio.create_task_group() as tasks:
        host = await Host(client, era).begin()
        held = await service.admission.admit("local")
        with held:
            statuses = list[int]()

            async def ask() -> None:
                statuses.append((await host.call("echo")).status_code)

            tasks.start_soon(ask)
            with anyio.move_on_after(0.3):
                await (await Host(client, era).begin()).call("echo")
            await until(lambda: service.admission.waiting == 1)  # the one that left waits no more
            assert statuses == []
        await until(lambda: statuses == [200])
    assert (service.admission.running, service.admission.waiting) == (0, 0)


async def test_a_method_that_is_written_strangely_is_admitted_all_the_same() -> None:
    service, serving_it = serving(calls_at_once=1, queue=0)
    async with serving_it as served, client_of(served) as client:
        host = await Host(client, HANDSHAKE).begin()
        with await service.admission.admit("local"):
            raw = '{"jsonrpc":"2.0","id":7,"method":"tools\\/call","params":{"name":"echo","arguments":{}}}'
            answer = await client.post(
                "/mcp", content=raw, headers={**host.headers, "content-type": "application/json"}
            )
        assert answer.status_code == 200  # its stream had begun
        (event,) = [line for line in answer.text.splitlines() if line.startswith("data:") and "{" in line]
        assert json.loads(event[5:])["error"]["code"] == OVERLOADED


async def test_large_bodies_are_refused_while_memory_is_short_and_everything_when_it_is_used_up() -> None:
    class Short(Percent):
        now = 85

    service, serving_it = serving(Short)
    async with serving_it as served, client_of(served) as client:
        host = await Host(client, HANDSHAKE).begin()
        service.admission.pressure.look()
        large = {"name": "echo", "arguments": {"text": "x" * 2_000_000}}
        refused = await host.ask("tools/call", large)
        assert refused.status_code == 503
        assert "takes no 2.0 MB" in refused.text
        assert int(refused.headers["retry-after"]) >= 1
        assert (await host.call("echo")).status_code == 200
        Short.now = 95
        service.admission.pressure.look()
        assert (await host.call("echo")).status_code == 503
        assert (await host.ask("ping", {})).status_code == 200
        Short.now = 10
        service.admission.pressure.look()
        assert (await host.ask("tools/call", large)).status_code == 200
