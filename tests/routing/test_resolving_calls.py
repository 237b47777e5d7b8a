"""Content in calls that come back: retried with answers, or parked until the host has answered."""

from collections.abc import Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import pytest

from gateway.config.content_settings import LimitSettings
from gateway.config.store_settings import StoreSettings
from gateway.config.upstream_settings import Timeouts, UpstreamSettings
from gateway.content.arguments import Arguments, TemporaryFiles
from gateway.content.store import MemoryStore
from gateway.core.model.caller import Caller
from gateway.core.tools.arguments import Parameter
from gateway.core.tools.catalogue import Route
from gateway.routing.resolve_arguments import WithContent
from gateway.upstream.bridging.bridge import Bridge
from gateway.upstream.bridging.suspended_calls import SuspendedCalls
from gateway.upstream.connection.request_context import RequestContext

pytestmark = pytest.mark.anyio

MODERN = Caller(revision="2026-07-28", client_name="x", principal="ann", capabilities={"elicitation": {"form": {}}})
PNG = b"\x89PNG\r\n\x1a\n"
ASKED = {"resultType": "input_required", "requestState": "s", "inputRequests": {}}
QUESTION = {"message": "Sure?", "requestedSchema": {"type": "object", "properties": {}}}


class AnUpstream:
    """Answers calls with the next of `results`, and remembers what it was given."""

    name = "studio"
    settings = UpstreamSettings(command="x")

    def __init__(self, *results: Any) -> None:
        self.results = list(results)
        self.given: list[Mapping[str, Any]] = []

    async def request(
        self, method: str, params: Mapping[str, Any], context: RequestContext, timeout: Any
    ) -> dict[str, Any]:
        self.given.append(params["arguments"])
        result = self.results.pop(0)
        if not callable(result):
            return result
        answer: Any = result(params, context.host)
        return await answer


class Silent:
    """A host that can be told things."""

    party = "a party"
    connection = None
    bounds_waiting = False

    async def ask(self, method: str, params: Mapping[str, Any]) -> dict[str, Any]:
        raise AssertionError("a stateless host cannot be asked")

    async def tell(self, method: str, params: Mapping[str, Any]) -> None:
        pass

    async def let_go(self) -> None:
        pass


@asynccontextmanager
async def bridged(tmp_path: Path, upstream: AnUpstream, form: Any):
    """A store, and a way to call the upstream with content through a bridge."""
    store, files = MemoryStore(StoreSettings()), TemporaryFiles(tmp_path)
    arguments = Arguments(store, LimitSettings(), files)
    route = Route("studio", "trace", (Parameter(("photo",), form),))
    with anyio.fail_after(30):
        async with anyio.create_task_group() as tasks:
            bridge = Bridge(SuspendedCalls(tasks))

            async def call(**params: Any) -> dict[str, Any]:
                front: Any = WithContent(upstream, route, arguments)  # pyright: ignore[reportArgumentType]
                passed = {"name": "trace", **params}
                host: Any = Silent()
                return await bridge.request(front, "tools/call", passed, RequestContext(MODERN, host=host), Timeouts())

            yield store, call
            tasks.cancel_scope.cancel()
    files.close()


async def test_a_retry_with_answers_resolves_its_handles_again(tmp_path: Path):
    upstream = AnUpstream(ASKED, {"content": []}, ASKED)
    async with bridged(tmp_path, upstream, "base64") as (store, call):
        stored = await store.put(PNG, owner="ann", media_type="image/png")
        given = {"photo": stored.handle}
        asked = await call(arguments=given)
        assert asked["resultType"] == "input_required"
        assert await call(arguments=given, requestState=asked["requestState"], inputResponses={}) == {"content": []}
        assert upstream.given == [{"photo": "iVBORw0KGgo="}] * 2
        again = await call(arguments=given)
        await store.delete(stored.handle, owner="ann")
        gone = await call(arguments=given, requestState=again["requestState"], inputResponses={})
        assert gone["isError"] is True
        assert "trace was not called: photo: there is no content with the handle" in gone["content"][0]["text"]
        assert len(upstream.given) == 3


async def test_a_file_lasts_as_long_as_a_call_that_is_parked_meanwhile(tmp_path: Path):
    async def asking(params: Mapping[str, Any], host: Any) -> dict[str, Any]:
        path = Path(params["arguments"]["photo"])
        before = path.read_bytes()
        await host.ask("elicitation/create", QUESTION)
        assert path.read_bytes() == before == PNG
        return {"content": [], "path": str(path)}

    upstream = AnUpstream(asking)
    async with bridged(tmp_path, upstream, "path") as (store, call):
        stored = await store.put(PNG, owner="ann", media_type="image/png")
        given = {"photo": stored.handle}
        asked = await call(arguments=given)
        assert list(asked["inputRequests"])
        assert Path(upstream.given[0]["photo"]).exists()
        answers = {key: {"action": "accept", "content": {}} for key in asked["inputRequests"]}
        result = await call(arguments=given, requestState=asked["requestState"], inputResponses=answers)
        assert not Path(result["path"]).exists()
        assert len(upstream.given) == 1
