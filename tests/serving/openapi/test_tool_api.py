"""The tools for programs without MCP: a gateway with real upstreams, asked over a real port."""

import email
import email.policy
import json
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, NamedTuple

import anyio
import anyio.lowlevel
import httpx2
import pytest
from openapi_spec_validator import validate

from gateway.config.access_settings import AccessSettings, TokenSettings
from gateway.config.openapi_settings import OperationSettings
from gateway.config.overload_settings import OverloadSettings
from gateway.config.schema import Settings
from gateway.config.tool_search_settings import ToolSearchSettings
from gateway.config.toolset_settings import ToolsetSettings
from gateway.config.upstream_settings import UpstreamSettings
from gateway.core.model.caller import Caller
from gateway.core.model.json_values import is_object
from gateway.runtime import Gateway, run_gateway
from gateway.serving.access import Access
from gateway.serving.mcp.drain import Drain
from gateway.serving.mcp.handshake import Identity
from gateway.serving.mcp.http import http_app, serve_http
from gateway.serving.mcp.running_requests import RunningRequests
from gateway.serving.openapi.describe_tools import document_of
from gateway.serving.openapi.routes import ToolApi
from tests.servers.http_api import PDF, PNG, Api, running_api

pytestmark = pytest.mark.anyio

MEDIA = Path(__file__).parents[2] / "servers" / "media_stdio.py"
EVERYTHING = OperationSettings(methods=("GET", "POST", "PUT", "DELETE"))
TOKEN = "a-token-of-sixteen-signs"
PARTS = {"Accept": "multipart/mixed, application/json"}


class Served(NamedTuple):
    gateway: Gateway
    client: httpx2.AsyncClient
    drain: Drain

    async def call(self, tool: str, arguments: Any = None, **headers: str) -> httpx2.Response:
        path = tool if tool.startswith("/") else f"/tools/{tool}"
        return await self.client.post(path, json={} if arguments is None else arguments, headers=headers)


@asynccontextmanager
async def served(settings: Settings) -> AsyncIterator[Served]:
    """The settings' gateway, with its tools at a free port."""
    http = settings.http.model_copy(update={"port": 0})
    with anyio.fail_after(120):
        async with run_gateway(settings, over_http=True) as gateway, anyio.create_task_group() as tasks:
            for upstream in gateway.upstreams.values():
                assert await upstream.ready(60)
            access = Access(http, settings.access)
            running = RunningRequests()
            api = ToolApi(
                gateway.router,
                gateway.store,
                gateway.links,
                "mine",
                "1.0",
                100_000,
                lambda: gateway.router.profile_names,
                lambda: gateway.router.toolsets,
                gateway.router.offered.all_tools,
                running,
                needs_token=lambda: access.needs_token,
            )
            app = http_app(
                gateway.router, http, Identity("mine", "1.0"), access=access, content=api.routes(), requests=running
            )
            bound: list[int] = []
            tasks.start_soon(lambda: serve_http(app, http, on_bound=bound.append))
            while not bound:  # noqa: ASYNC110
                await anyio.sleep(0.01)
            base = f"http://127.0.0.1:{bound[0]}"
            gateway.links.serve_at(base, b"a key of at least 16 characters")
            async with httpx2.AsyncClient(base_url=base, timeout=30, trust_env=False) as client:
                yield Served(gateway, client, app.state.drain)
            tasks.cancel_scope.cancel()


def of(api: Api, **more: Any) -> Settings:
    pets = UpstreamSettings(openapi=f"{api.url}/openapi.json", operations=EVERYTHING)
    return Settings(upstreams={"pets": pets}, **more)


@pytest.fixture
async def api() -> AsyncIterator[Api]:
    async with running_api() as api:
        yield api


def refs_in(value: Any) -> list[str]:
    if is_object(value):
        own = [value["$ref"]] if isinstance(value.get("$ref"), str) else []
        return own + [ref for one in value.values() for ref in refs_in(one)]
    return [ref for one in value for ref in refs_in(one)] if isinstance(value, list) else []


def at(document: Any, reference: str) -> Any:
    for step in reference.removeprefix("#/").split("/"):
        document = document[step.replace("~1", "/").replace("~0", "~")]
    return document


async def test_the_document_is_valid_and_all_its_references_lead_somewhere(api: Api) -> None:
    async with served(of(api)) as there:
        document = (await there.client.get("/openapi.json")).json()
        assert "/openapi.json   each tool as POST /tools/<name>" in (await there.client.get("/")).text
    validate(document)
    assert document["servers"] == [{"url": str(there.client.base_url).rstrip("/")}]
    assert document["info"] == {"title": "mine", "version": "1.0"}
    assert {"/tools/pets__getPet", "/tools/pets__uploadPhoto"} <= document["paths"].keys()
    adding = document["paths"]["/tools/pets__addPet"]["post"]
    assert adding["operationId"] == "pets__addPet"
    assert adding["requestBody"]["required"] is True
    assert "security" not in document
    references = refs_in(document)
    assert any("$defs" in reference for reference in references), "one schema contains itself"
    for reference in references:
        assert is_object(at(document, reference)), reference


def test_schemas_of_any_kind_make_a_valid_document() -> None:
    odd = {"$schema": "https://json-schema.org/draft/2020-12/schema", "$id": "https://x.example/a", "type": "object"}
    whole = {"properties": {"self": {"$ref": "#"}, "$id": {"type": "string"}, "more": {"$ref": "#/$defs/a~1b"}}}
    tools = [
        {"name": "a/b", "inputSchema": {**odd, **whole, "$defs": {"a/b": {"type": "null"}}}},
        {"name": "a_b", "description": "Other", "inputSchema": {"type": "object"}, "outputSchema": {"type": "object"}},
        {"name": "ünï", "annotations": {"title": "T", "readOnlyHint": True}},
        {"description": "nameless"},
    ]
    document = document_of(tools, "n", "1", "https://g.example", needs_token=True)
    validate(document)
    assert document["paths"].keys() == {"/tools/a%2Fb", "/tools/a_b", "/tools/%C3%BCn%C3%AF"}
    moved = document["components"]["schemas"]["a_b.arguments"]
    assert moved["properties"]["self"] == {"$ref": "#/components/schemas/a_b.arguments"}
    assert moved["properties"]["$id"] == {"type": "string"}
    assert at(document, moved["properties"]["more"]["$ref"]) == {"type": "null"}
    assert document["security"] == [{"token": []}]


async def test_text_and_json_are_answered_as_they_are(api: Api) -> None:
    async with served(of(api)) as there:
        answer = await there.call("pets__getPet", {"petId": 3})
    assert answer.status_code == 200
    assert answer.json()["structuredContent"] == {"id": 3, "name": None}
    assert json.loads(answer.json()["content"][0]["text"]) == {"id": 3, "name": None}


async def test_media_are_links_or_parts_with_the_very_bytes(api: Api) -> None:
    async with served(of(api)) as there:
        linked = (await there.call("pets__getPhoto", {"petId": 1})).json()["content"][0]
        parted = await there.call("pets__getPhoto", {"petId": 1}, **PARTS)
        report = await there.call("pets__getReport", **PARTS)
        text = await there.call("pets__getText", **PARTS)
        stored = await there.gateway.store.metadata(linked["handle"], owner=Caller().principal)
    assert linked["mimeType"] == "image/png"
    assert linked["size"] == stored.size == len(PNG)
    assert "data" not in linked
    assert linked["url"].startswith(f"{str(there.client.base_url).rstrip('/')}/content/")
    body, photo = parts_of(parted)
    assert body["content"][0]["url"] == "cid:part1"
    assert (photo.get_content_type(), photo["content-id"], photo.get_content()) == ("image/png", "<part1>", PNG)
    assert parts_of(report)[1].get_content() == PDF
    assert parts_of(report)[1].get_filename() == "annual_report.pdf"
    assert text.json()["content"] == [{"type": "text", "text": "Grüße"}]


def parts_of(answer: httpx2.Response) -> tuple[Any, Any]:
    head = f"content-type: {answer.headers['content-type']}\r\n\r\n".encode()
    message = email.message_from_bytes(head + answer.content, policy=email.policy.HTTP)
    first, second = message.iter_parts()
    return json.loads(str(first.get_payload())), second


async def test_a_handle_of_one_tool_is_the_file_that_another_uploads(api: Api) -> None:
    async with served(of(api)) as there:
        handle = (await there.call("pets__getPhoto", {"petId": 1})).json()["content"][0]["handle"]
        answer = await there.call("pets__uploadPhoto", {"petId": 2, "body": {"photo": handle}})
    assert answer.json()["structuredContent"]["photo"]["same"] is True


async def test_a_failed_tool_keeps_what_it_says(api: Api) -> None:
    async with served(of(api)) as there:
        answer = await there.call("pets__getStatus", {"code": "404"})
    assert answer.status_code == 422
    assert answer.json()["isError"] is True
    assert "that is how it is" in answer.json()["content"][0]["text"]


@pytest.mark.parametrize(
    ("path", "body", "content_type", "status"),
    [
        ("/tools/pets__nothing_of_this_name", b"{}", "application/json", 404),
        ("/tools/pets__getText", b"[]", "application/json", 400),
        ("/tools/pets__getText", b"{", "application/json", 400),
        ("/tools/pets__getText", b"[" * 100_000, "application/json", 400),
        ("/tools/pets__getText", b'{"a":' * 150 + b"1" + b"}" * 150, "application/json", 400),
        ("/tools/pets__getText", b"{}", "text/plain", 400),
        ("/tools/pets__getText", b'{"a": "' + b"x" * 200_000 + b'"}', "application/json", 400),
        ("/openapi/no-such-profile/tools/pets__getText", b"{}", "application/json", 404),
    ],
    ids=["unknown", "list", "half", "deep", "nested", "text", "large", "profile"],
)
async def test_what_cannot_be_called_is_said_with_its_status(
    api: Api, path: str, body: bytes, content_type: str, status: int
) -> None:
    async with served(of(api)) as there:
        asked = len(api.asked)
        answer = await there.client.post(path, content=body, headers={"content-type": content_type})
        assert len(api.asked) == asked
    assert answer.status_code == status
    assert answer.json()["error"]


async def test_tokens_reach_what_they_may_and_nothing_else(api: Api) -> None:
    access = AccessSettings(tokens={"reader": TokenSettings(token=TOKEN, tools=("pets__getText",))})
    async with served(of(api, access=access)) as there:
        assert (await there.client.get("/openapi.json")).status_code == 401
        assert (await there.call("pets__getText")).status_code == 401
        mine = {"Authorization": f"Bearer {TOKEN}"}
        document = (await there.client.get("/openapi.json", headers=mine)).json()
        assert (await there.call("pets__getText", **mine)).status_code == 200
        assert (await there.call("pets__getVoice", **mine)).status_code == 404
        foreign = await there.call("pets__getText", Origin="https://evil.example", **mine)
    assert [path for path in document["paths"] if "pets" in path] == ["/tools/pets__getText"]
    assert document["security"] == [{"token": []}]
    assert foreign.status_code == 403


async def test_toolsets_hold_as_they_do_for_hosts(api: Api) -> None:
    """What a token's toolset takes away cannot be had here either; a header can only take away more."""
    toolsets = {
        "texts": ToolsetSettings(tools=("pets__getText", "pets__getPhoto")),
        "photos": ToolsetSettings(tools=("pets__getPhoto",)),
    }
    access = AccessSettings(tokens={"reader": TokenSettings(token=TOKEN, toolset="texts")})
    async with served(of(api, access=access, toolsets=toolsets)) as there:
        mine = {"Authorization": f"Bearer {TOKEN}"}
        photos = mine | {"X-MCP-Toolset": "photos"}
        for before in ("", "/openapi/text-only"):
            asked = len(api.asked)
            document = (await there.client.get(f"{before}/openapi.json", headers=mine)).json()
            fewer = (await there.client.get(f"{before}/openapi.json", headers=photos)).json()
            hidden = await there.call(f"{before}/tools/pets__getVoice", {"petId": 1}, **mine)
            chosen = await there.call(f"{before}/tools/pets__getText", **photos)
            unknown = await there.call(f"{before}/tools/pets__getText", **mine, **{"X-MCP-Toolset": "none"})
            assert len(api.asked) == asked
            assert (hidden.status_code, chosen.status_code, unknown.status_code) == (404, 404, 400)
            names = {path.rpartition("/")[2] for path in document["paths"] if "pets" in path}
            assert names == {"pets__getText", "pets__getPhoto"}
            assert [path for path in fewer["paths"] if "pets" in path] == ["/tools/pets__getPhoto"]
            assert (await there.call(f"{before}/tools/pets__getText", **mine)).status_code == 200


async def test_the_document_has_what_a_model_would_have_to_search(api: Api) -> None:
    searched = ToolSearchSettings(mode="always")
    async with served(of(api, tool_search=searched)) as there:
        paths = (await there.client.get("/openapi.json")).json()["paths"].keys()
        of_a_host = (await there.client.get("/openapi/text-only/openapi.json")).json()["paths"].keys()
    assert "/tools/pets__getPet" in paths
    assert "/tools/gateway_find_tools" not in paths
    assert "/tools/pets__getPet" not in of_a_host
    assert "/tools/gateway_find_tools" in of_a_host


async def test_a_profile_in_the_path_shapes_the_results(api: Api) -> None:
    async with served(of(api)) as there:
        document = (await there.client.get("/openapi/text-only.json")).json()
        same = (await there.client.get("/openapi/Text-Only/openapi.json")).json()
        answer = await there.call("/openapi/text-only/tools/pets__getPhoto", {"petId": 1})
    assert document["servers"][0]["url"].endswith("/openapi/text-only")
    assert same == document
    assert {block["type"] for block in answer.json()["content"]} == {"text"}


async def test_a_call_takes_a_place_and_is_refused_without_one(api: Api) -> None:
    """Programs wait and are refused as hosts are; what is refused has reached nothing, so it may be sent again."""
    async with served(of(api, overload=OverloadSettings(calls_at_once=1, queue=0))) as there:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(there.call, "pets__getSlow")
            while not any(request.url.path.endswith("slow") for request in api.asked):  # noqa: ASYNC110
                await anyio.sleep(0.01)
            asked = len(api.asked)
            refused = [await there.call("pets__getText"), await there.client.get("/openapi.json")]
            assert len(api.asked) == asked
            tasks.cancel_scope.cancel()
        for answer in refused:
            assert answer.status_code == 503
            assert int(answer.headers["retry-after"]) >= 1
            assert "at its limit" in answer.json()["error"]
        with anyio.fail_after(10):
            while (await there.call("pets__getText")).status_code != 200:  # noqa: ASYNC110
                await anyio.sleep(0.01)


async def test_a_gateway_that_is_told_to_stop_lets_a_call_end(api: Api) -> None:
    async with served(of(api)) as there, anyio.create_task_group() as tasks:
        tasks.start_soon(there.call, "pets__getSlow")
        while not any(request.url.path.endswith("slow") for request in api.asked):  # noqa: ASYNC110
            await anyio.sleep(0.01)
        there.drain.ask()
        with anyio.move_on_after(0.5):
            await there.drain.over(anyio.lowlevel.checkpoint)
            raise AssertionError("the gateway has not waited for the call")
        tasks.cancel_scope.cancel()


async def test_a_call_ends_when_its_program_leaves(api: Api) -> None:
    async with served(of(api)) as there:
        with pytest.raises(httpx2.ReadTimeout):
            await there.client.post("/tools/pets__getSlow", json={}, timeout=1)
        with anyio.fail_after(10):
            await api.cancelled.wait()


async def test_a_gateway_may_stand_behind_another(api: Api) -> None:
    settings = of(api)
    media = UpstreamSettings(command=sys.executable, args=(str(MEDIA),))
    both = settings.model_copy(update={"upstreams": {**settings.upstreams, "media": media}})
    async with served(both) as inner:
        base = str(inner.client.base_url).rstrip("/")
        outer = UpstreamSettings(
            openapi=f"{base}/openapi.json", operations=OperationSettings(also=("pets__*", "media__*"))
        )
        async with run_gateway(Settings(upstreams={"inner": outer})) as gateway:
            assert await gateway.upstreams["inner"].ready(30), gateway.upstreams["inner"].cause
            caller = Caller(revision="2025-11-25", profile="passthrough", client_name="a")
            listed = await gateway.router.respond("tools/list", {}, caller)
            names = {tool["name"] for tool in listed["tools"]}
            params = {"name": "inner__pets__addPet", "arguments": {"body": {"body": {"name": "Rex"}}}}
            added = await gateway.router.respond("tools/call", params, caller)
    assert {"inner__pets__getPet", "inner__media__picture"} <= names
    assert added["structuredContent"]["structuredContent"] == {"id": 9, "name": "Rex"}
