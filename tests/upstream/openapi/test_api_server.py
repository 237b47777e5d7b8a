"""An HTTP API as an upstream, over a real server: what its operations become, are sent, and answer."""

import base64
import json
import logging
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import anyio
import pytest
from pydantic import ValidationError

from gateway.config.openapi_settings import OperationSettings
from gateway.config.upstream_settings import Timeouts, UpstreamLimits, UpstreamSettings
from gateway.core.model.caller import Caller
from gateway.core.profiles.profile import Profile
from gateway.errors import UpstreamTimeout
from gateway.upstream import Upstream, UpstreamState
from gateway.upstream.connection.request_context import RequestContext
from gateway.upstream.openapi import sources
from tests.servers.http_api import PDF, PNG, WAV, Api, document, path_item, running_api
from tests.upstream.conftest import Changes, Connect

pytestmark = pytest.mark.anyio

EVERYTHING = OperationSettings(methods=("GET", "POST", "PUT", "DELETE"))
NEW = Caller(revision="2026-07-28", client_name="new")
OLD = Caller(revision="2025-06-18", client_name="old", session="1")
PROFILE = Profile(name="passthrough")
OLDER = Caller(revision="2024-11-05", client_name="older", session="2")


@pytest.fixture
async def api() -> AsyncIterator[Api]:
    async with running_api() as api:
        yield api


Settings = Callable[..., UpstreamSettings]


@pytest.fixture
def settings(api: Api) -> Settings:
    """Settings for the API; with its document at its URL."""

    def made(**more: Any) -> UpstreamSettings:
        return UpstreamSettings(**{"openapi": f"{api.url}/openapi.json", "operations": EVERYTHING, **more})

    return made


async def called(upstream: Upstream, tool: str, caller: Caller = NEW, **arguments: Any) -> dict[str, Any]:
    params = {"name": tool, "arguments": arguments}
    limits = Timeouts(call=10, idle=10)
    return await upstream.request("tools/call", params, RequestContext(caller, PROFILE), limits)


def texts(result: dict[str, Any]) -> list[str]:
    return [block["text"] for block in result["content"] if block["type"] == "text"]


def tools_of(upstream: Upstream) -> dict[str, dict[str, Any]]:
    return {tool["name"]: tool for tool in upstream.tools()}


# Tools.


async def test_operations_are_tools_that_only_read_unless_others_are_named(
    api: Api, settings: Settings, connect: Connect
) -> None:
    async with connect(settings(operations=OperationSettings(also=("addPet", "DELETE /pets/*")))) as upstream:
        tools = tools_of(upstream)
        assert upstream.server_info == {"name": "Pets", "version": "2.1"}
    assert {"listPets", "getPet", "getPhoto", "addPet", "deletePet"} <= tools.keys()
    assert {"uploadPhoto", "replacePhoto", "sendForm"}.isdisjoint(tools)
    assert tools["getPet"]["annotations"] == {"readOnlyHint": True, "openWorldHint": True}
    assert tools["addPet"]["annotations"]["destructiveHint"] is True
    assert tools["addPet"]["annotations"]["idempotentHint"] is False
    assert tools["deletePet"]["annotations"]["idempotentHint"] is True
    assert tools["listPets"]["title"] == "List pets"
    assert "GET /pets" in tools["listPets"]["description"]


async def test_operations_are_selected_by_tag_and_by_path(api: Api, settings: Settings, connect: Connect) -> None:
    async with connect(settings(operations=OperationSettings(tags=("media",)))) as upstream:
        assert tools_of(upstream).keys() == {"getPhoto", "getVoice", "getReport"}
    async with connect(settings(operations=OperationSettings(paths=("/pets/*",), methods=("DELETE",)))) as upstream:
        assert tools_of(upstream).keys() == {"deletePet"}


async def test_schemas_stand_alone_and_circles_stay_finite(api: Api, settings: Settings, connect: Connect) -> None:
    async with connect(settings()) as upstream:
        tools = tools_of(upstream)
    adding = tools["addPet"]["inputSchema"]
    assert adding["required"] == ["body"]
    assert adding["properties"]["body"] == {"$ref": "#/$defs/Pet"}
    pet = adding["$defs"]["Pet"]
    assert pet["properties"]["mother"] == {"$ref": "#/$defs/Pet"}
    assert "id" not in pet["properties"], "what only answers have is not to be given"
    assert pet["required"] == ["name"]
    assert pet["properties"]["name"] == {"type": ["string", "null"]}
    listing = tools["listPets"]["inputSchema"]["properties"]
    assert listing["limit"] == {"type": ["integer", "null"]}
    assert listing["page"] == {"type": "integer", "exclusiveMinimum": 0}
    assert "Authorization" not in listing
    assert "outputSchema" not in tools["listPets"], "it answers with a list"
    assert tools["getPet"]["outputSchema"]["type"] == "object"
    assert "required" not in tools["getPet"]["outputSchema"]


async def test_hosts_of_both_eras_share_one_connection(api: Api, settings: Settings, connect: Connect) -> None:
    async with connect(settings()) as upstream:
        for caller in (OLD, NEW, OLDER):
            assert (await called(upstream, "getNothing", caller))["content"]
    assert api.documents == 1


# Answers.


async def test_media_are_blocks_and_files_are_embedded(api: Api, settings: Settings, connect: Connect) -> None:
    async with connect(settings()) as upstream:
        photo = await called(upstream, "getPhoto", petId=1)
        voice = await called(upstream, "getVoice")
        unknown = await called(upstream, "getUnknown")
        report = await called(upstream, "getReport")
    assert photo["content"] == [{"type": "image", "data": base64.b64encode(PNG).decode(), "mimeType": "image/png"}]
    assert voice["content"] == [{"type": "audio", "data": base64.b64encode(WAV).decode(), "mimeType": "audio/wav"}]
    assert unknown["content"] == photo["content"], "a PNG is one whatever it is declared as"
    [block] = report["content"]
    assert block["resource"]["uri"] == "openapi://raw/annual_report.pdf"
    assert base64.b64decode(block["resource"]["blob"]) == PDF
    assert api.asked[1].headers["accept"].startswith("image/png")


async def test_json_is_structured_and_text_is_text(api: Api, settings: Settings, connect: Connect) -> None:
    async with connect(settings()) as upstream:
        pet = await called(upstream, "getPet", petId=3)
        text = await called(upstream, "getText")
        nothing = await called(upstream, "getNothing")
        broken = await called(upstream, "getBroken")
    assert pet["structuredContent"] == {"id": 3, "name": None}
    assert json.loads(texts(pet)[0]) == {"id": 3, "name": None}
    assert texts(text) == ["Grüße"]
    assert texts(nothing) == ["[HTTP 204 No Content: done, without content]"]
    assert texts(broken) == ['{"half']


async def test_a_head_tells_of_the_content_and_nothing_is_kept_of_cookies(
    api: Api, settings: Settings, connect: Connect
) -> None:
    async with connect(settings(operations=OperationSettings())) as upstream:
        told = await called(upstream, "headText")
        await called(upstream, "getText")
        await called(upstream, "getText")
    assert texts(told)[0].splitlines()[:2] == ["HTTP 200 OK", "content-type: text/plain; charset=iso-8859-1"]
    assert "cookie" not in api.last.headers
    assert "session" not in texts(told)[0]


async def test_the_next_page_is_said_without_keys(api: Api, settings: Settings, connect: Connect) -> None:
    operations = OperationSettings(query={"api_key": "k"})
    async with connect(settings(operations=operations)) as upstream:
        assert "api_key" not in tools_of(upstream)["listPets"]["inputSchema"]["properties"]
        first, last = await called(upstream, "listPets", page=2), await called(upstream, "listPets", page=3)
    assert texts(first)[1] == "[there is more: the next page has page=3]"
    assert len(texts(last)) == 1
    assert api.last.query_params["api_key"] == "k"


async def test_errors_keep_their_bodies(api: Api, settings: Settings, connect: Connect) -> None:
    async with connect(settings()) as upstream:
        missing = await called(upstream, "getStatus", code="404")
        busy = await called(upstream, "getStatus", code="429")
        api.wants_key = "k"
        refused = await called(upstream, "getVoice")
    assert missing["isError"]
    assert "structuredContent" not in missing
    assert texts(missing) == ['HTTP 404 Not Found\n\n{"error":"that is how it is"}']
    assert texts(busy)[0].startswith("HTTP 429 Too Many Requests (try again in 30 s)")
    assert "operations.query = { api_key =" in texts(refused)[0]
    assert "no key" in texts(refused)[0]


async def test_redirects_are_followed_within_the_server_only(api: Api, settings: Settings, connect: Connect) -> None:
    async with connect(settings(headers={"X-Key": "secret-of-the-api"})) as upstream:
        moved = await called(upstream, "getMoved")
        away = await called(upstream, "getElsewhere")
        circles = await called(upstream, "getCircles")
    assert moved["structuredContent"]["id"] == 5
    assert away["content"][1] == {"type": "resource_link", "uri": api.elsewhere, "name": "file.png"}
    assert circles["isError"]


async def test_redirects_do_not_show_keys_to_models(api: Api, settings: Settings, connect: Connect) -> None:
    operations = OperationSettings(methods=("GET",), query={"api_key": "secret of the api"})
    async with connect(settings(operations=operations)) as upstream:
        for written in ("secret%20of%20the%20api", "secret of the api"):
            api.elsewhere = f"https://cdn.example/file.png?api_key={written}"
            away = await called(upstream, "getElsewhere")
            assert away["content"][1]["name"] == "file.png"
            assert "secret" not in json.dumps(away)
        api.elsewhere = "http://[x"
        assert (await called(upstream, "getElsewhere"))["isError"]
        assert upstream.state is UpstreamState.READY


async def test_large_answers_and_bombs_are_refused(api: Api, settings: Settings, connect: Connect) -> None:
    async with connect(settings(max_message_bytes=1_000_000)) as upstream:
        large, zipped = await called(upstream, "getLarge"), await called(upstream, "getZipped")
        assert upstream.state is UpstreamState.READY
    for result in (large, zipped):
        assert result["isError"]
        assert "larger than 1.0 MB (max_message_bytes)" in texts(result)[0]


async def test_a_slow_operation_is_ended_with_its_request(api: Api, settings: Settings, connect: Connect) -> None:
    async with connect(settings()) as upstream:
        params = {"name": "getSlow", "arguments": {}}
        with pytest.raises(UpstreamTimeout):
            await upstream.request("tools/call", params, RequestContext(NEW, PROFILE), Timeouts(call=0.5, idle=10))
        with anyio.fail_after(5):
            await api.cancelled.wait()
        assert (await called(upstream, "getPet", petId=1))["structuredContent"]["id"] == 1


async def test_an_api_that_is_down_fails_the_call_alone(
    settings: Settings, connect: Connect, tmp_path: Path, free_tcp_port: int
) -> None:
    (tmp_path / "api.json").write_text(json.dumps(document()))
    there = UpstreamSettings(openapi=str(tmp_path / "api.json"), base_url=f"http://127.0.0.1:{free_tcp_port}/v1")
    async with connect(there) as upstream:
        result = await called(upstream, "getPet", petId=1)
        assert upstream.state is UpstreamState.READY
    assert result["isError"]
    assert f"GET /pets/{{petId}} failed: connection refused by http://127.0.0.1:{free_tcp_port}" in texts(result)[0]


# Requests.


async def test_parameters_are_written_in_their_styles(api: Api, settings: Settings, connect: Connect) -> None:
    async with connect(settings()) as upstream:
        arguments = {
            "list": ["a b", "c&d"],
            "piped": [1, 2],
            "filter": {"by": "x", "in": [1, 2]},
            "flag": True,
            "q": {"deep": [1]},
            "X-Request": "yes",
            "session": "s 1",
        }
        said = (await called(upstream, "echo", **arguments))["structuredContent"]
    assert said["query"]["list"] == ["a b", "c&d"]
    assert said["query"]["piped"] == ["1|2"]
    assert said["query"]["filter[by]"] == ["x"]
    assert said["query"]["filter[in]"] == ["1", "2"]
    assert said["query"]["flag"] == ["true"]
    assert json.loads(said["query"]["q"][0]) == {"deep": [1]}
    assert said["x"] == "yes"
    assert said["cookies"] == {"session": "s%201"}


@pytest.mark.parametrize(
    ("tool", "arguments", "words"),
    [
        ("getFile", {"path": ".."}, "path must not be '..'"),
        ("getFile", {"path": ""}, "path must not be ''"),
        ("getFile", {}, "'path' is missing"),
        ("getFile", {"path": "a", "other": 1}, "there is no argument 'other'; there are: path"),
        ("echo", {"X-Request": "a\r\nX-Admin: 1"}, "line breaks"),
        ("replacePhoto", {"petId": 1, "body": "not base64!"}, "body must be the handle of content"),
        ("uploadPhoto", {"petId": 1, "body": "text"}, "body must be an object"),
    ],
)
async def test_arguments_that_would_lead_elsewhere_are_refused(
    api: Api, settings: Settings, connect: Connect, tool: str, arguments: Any, words: str
) -> None:
    async with connect(settings()) as upstream:
        before = len(api.asked)
        result = await called(upstream, tool, **arguments)
        assert len(api.asked) == before
    assert result["isError"]
    assert words in texts(result)[0]


async def test_a_part_of_the_path_stays_one(api: Api, settings: Settings, connect: Connect) -> None:
    async with connect(settings()) as upstream:
        result = await called(upstream, "getFile", path="../../admin?x=1#y")
    assert texts(result) == ["/v1/files/..%2F..%2Fadmin%3Fx%3D1%23y"]


async def test_bodies_are_sent_as_json_forms_and_files(api: Api, settings: Settings, connect: Connect) -> None:
    photo = base64.b64encode(PNG).decode()
    async with connect(settings()) as upstream:
        added = await called(upstream, "addPet", body={"name": "Ré"})
        formed = await called(upstream, "sendForm", body={"name": "a&b", "more": [1, 2]})
        text = await called(upstream, "sendText", body="Grüße")
        put = await called(upstream, "replacePhoto", petId=1, body=photo)
        parts = {"photo": photo, "caption": "hé", "tags": ["a", "b"], "about": {"by": "me"}}
        uploaded = await called(upstream, "uploadPhoto", petId=1, body=parts)
        schema = tools_of(upstream)["uploadPhoto"]["inputSchema"]["properties"]["body"]
    assert added["structuredContent"] == {"id": 9, "name": "Ré"}
    assert texts(added)[1] == "[HTTP 201 Created: at /v1/pets/9]"
    assert formed["structuredContent"]["body"] == "name=a%26b&more=1&more=2"
    assert text["structuredContent"]["body"] == "Grüße"
    assert put["structuredContent"] == {"size": len(PNG), "type": "image/png"}
    sent = uploaded["structuredContent"]
    assert sent["photo"] == {"same": True, "file": "photo.png", "type": "image/png"}
    assert sent["caption"] == ["hé"]
    assert sent["tags"] == ["a", "b"]
    assert json.loads(sent["about"][0]) == {"by": "me"}
    assert schema["properties"]["photo"] == {
        "type": "string",
        "contentEncoding": "base64",
        "contentMediaType": "image/*",
        "description": "the photo",
    }


# The document.


async def test_headers_go_to_the_api_and_not_to_another_server_that_has_its_document(
    api: Api, settings: Settings, connect: Connect
) -> None:
    async with running_api() as other:
        there = settings(openapi=f"{other.url}/openapi.json", base_url=f"{api.url}/v1", headers={"X-Key": "secret-key"})
        async with connect(there) as upstream:
            await called(upstream, "getVoice")
        assert "x-key" not in other.last.headers
        assert api.last.headers["x-key"] == "secret-key"


async def test_a_changed_document_changes_the_tools(
    api: Api, settings: Settings, connect: Connect, changes: Changes
) -> None:
    operations = OperationSettings(refresh=0.1)
    async with connect(settings(operations=operations)) as upstream:
        await anyio.sleep(0.5)
        assert api.documents == 1, "it was asked for again with its ETag"
        api.document = document(paths={"/new": path_item("get", "getNew")})
        with anyio.fail_after(10):
            await changes.until(lambda: [tool["name"] for tool in upstream.tools()] == ["getNew"])
        api.document = b"{"
        await anyio.sleep(0.4)
        assert tools_of(upstream).keys() == {"getNew"}, "one that cannot be used changes nothing"


async def test_a_changed_file_changes_the_tools(
    connect: Connect, changes: Changes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sources.FileSource, "pause", 0.05)
    file = tmp_path / "api.json"
    file.write_text(json.dumps(document()))
    async with connect(UpstreamSettings(openapi=str(file), base_url="http://127.0.0.1:9")) as upstream:
        assert "getPet" in tools_of(upstream)
        file.write_text(json.dumps(document(paths={"/new": path_item("get", "getNew")})))
        with anyio.fail_after(10):
            await changes.until(lambda: [tool["name"] for tool in upstream.tools()] == ["getNew"])


@pytest.mark.parametrize(
    ("content", "cause"),
    [
        (b'{"swagger": "2.0"}', "is Swagger 2.0, and OpenAPI 3.0 or 3.1 is needed (convert it: npx swagger2openapi"),
        (b'{"openapi": "4.0.0", "paths": {}}', "is OpenAPI 4.0.0, and 3.0 or 3.1 is needed"),
        (b'{"info": {}}', "is not OpenAPI"),
        (b"[1, 2]", "is not an object"),
        (b'{"openapi": "3.1.0"}', "has no paths"),
        (b'{"openapi": "3.1.0", "paths": {}}', "no operations that the configuration selects"),
        (b'{"openapi": "3.0.0", ', "cannot be read as JSON"),
        (b"a: [", "cannot be read as YAML"),
        (b"\xff\xfe\x00", "cannot be read as YAML"),
        (b'{"openapi": "3.0.0", "paths": ' + b'{"a":' * 180 + b"1" + b"}" * 181, "nests more than 150 levels deep"),
        (b'{"openapi": "3.0.0", "paths": ' + b'{"a":' * 50_000 + b"1" + b"}" * 50_001, "nests more than 150"),
        (b"a: " + b"[" * 5_000, "nests more than 150 levels deep"),
        (b"x: &x [*x]", "contains itself"),
        (b"x: !!python/object/apply:os.system ['exit 1']", "cannot be read as YAML"),
        (b'{"openapi": "3.0.0"}' + b" " * 17_000_000, "is larger than 17 MB (leave out what is not needed"),
    ],
    ids=[
        *("swagger", "version", "no-version", "list", "no-paths", "empty-paths", "half-json", "half-yaml", "not-utf8"),
        *("deep", "very-deep", "deep-yaml", "circle", "python", "large"),
    ],
)
async def test_documents_that_cannot_be_used_are_refused_clearly(
    api: Api, settings: Settings, connect: Connect, content: bytes, cause: str
) -> None:
    api.document = content
    async with connect(settings(), ready=False) as upstream:
        assert upstream.state is UpstreamState.FAILED
        assert cause in (upstream.cause or "")
        assert upstream.failure is not None
        assert upstream.failure.code == "document_unusable"


async def test_aliases_that_multiply_are_refused(api: Api, settings: Settings, connect: Connect) -> None:
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x, x]"]
    lines += [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]" for n in range(1, 12)]
    api.document = "\n".join(lines).encode()
    async with connect(settings(), ready=False) as upstream:
        assert "more than 5,000,000 values" in (upstream.cause or "")


async def test_yaml_means_what_json_would(api: Api, settings: Settings, connect: Connect) -> None:
    api.document = b"""
openapi: 3.1.0
info: {title: 2024-01-01, version: 1.10.0}
paths:
  /x:
    get:
      operationId: no
      parameters:
        - {name: on, in: query, schema: {type: string, enum: [no, yes, 2020-01-01, 010]}}
      responses: {200: {description: ok}}
"""
    async with connect(settings(base_url=f"{api.url}/v1")) as upstream:
        assert upstream.server_info == {"name": "2024-01-01", "version": "1.10.0"}
        tool = tools_of(upstream)["no"]
    assert tool["inputSchema"]["properties"]["on"]["enum"] == ["no", "yes", "2020-01-01", "010"]


@pytest.mark.parametrize("reference", ["file:///etc/passwd", "http://127.0.0.1:1/x.json#/a", "other.yaml#/Pet"])
async def test_references_out_of_the_document_cost_their_operation_alone(
    api: Api, settings: Settings, connect: Connect, reference: str, caplog: pytest.LogCaptureFixture
) -> None:
    body = {"content": {"application/json": {"schema": {"properties": {"x": {"$ref": reference}}}}}}
    api.document["paths"] = {
        "/bad": path_item("post", "bad", requestBody=body),
        "/item": {"$ref": reference},
        "/good": path_item("get", "good"),
    }
    with caplog.at_level(logging.WARNING):
        async with connect(settings()) as upstream:
            assert tools_of(upstream).keys() == {"good"}
            [said] = upstream.nested_too_deeply
    assert "2 operations not offered" in said
    assert f"refers to {reference!r}, outside of the document" in said
    assert said in caplog.text


async def test_broken_references_and_loops_of_them_accept_anything(
    api: Api, settings: Settings, connect: Connect
) -> None:
    api.document["components"]["schemas"] = {
        "A": {"$ref": "#/components/schemas/B"},
        "B": {"$ref": "#/components/schemas/A"},
    }
    parameters = [
        {"name": "a", "in": "query", "schema": {"$ref": "#/components/schemas/A"}},
        {"name": "b", "in": "query", "schema": {"$ref": "#/components/schemas/Missing"}},
        {"$ref": "#/components/parameters/Missing"},
    ]
    api.document["paths"] = {"/x": path_item("get", "x", parameters=parameters)}
    async with connect(settings()) as upstream:
        schema = tools_of(upstream)["x"]["inputSchema"]
    assert schema["properties"]["a"] == {"description": "(A: its definition is missing)"}
    assert schema["properties"]["b"] == {"description": "(Missing: its definition is missing)"}


async def test_a_huge_web_of_schemas_is_cut(api: Api, settings: Settings, connect: Connect) -> None:
    names = [f"S{number}" for number in range(400)]
    api.document["components"]["schemas"] = {
        name: {
            "type": "object",
            "description": "d" * 2_000,
            "properties": {other: {"$ref": f"#/components/schemas/{other}"} for other in [*names[:50], names[at - 1]]},
        }
        for at, name in enumerate(names)
    }
    content = {"application/json": {"schema": {"$ref": "#/components/schemas/S7"}}}
    answer = {"200": {"description": "ok", "content": content}}
    api.document["paths"] = {"/x": path_item("post", "x", requestBody={"content": content}, responses=answer)}
    async with connect(settings()) as upstream:
        tool = tools_of(upstream)["x"]
    assert len(json.dumps(tool)) < 200_000
    assert "outputSchema" not in tool
    assert any("too large" in one.get("description", "") for one in tool["inputSchema"]["$defs"].values())


async def test_an_api_on_another_server_than_its_document_needs_base_url(
    api: Api, settings: Settings, connect: Connect
) -> None:
    api.document["servers"] = [{"url": "https://{region}.api.example/v2", "variables": {"region": {"default": "eu"}}}]
    async with connect(settings(), ready=False) as upstream:
        assert 'set base_url = "https://eu.api.example/v2"' in (upstream.cause or "")
    api.document = document()
    api.document["paths"]["/voice"]["get"]["servers"] = [{"url": "https://evil.example"}]
    async with connect(settings()) as upstream:
        assert "getVoice" not in tools_of(upstream)
        assert "another server than base_url" in upstream.nested_too_deeply[0]


@pytest.mark.parametrize("name", ["redirected.json", "far.json", "missing.json"])
async def test_redirects_of_the_document(api: Api, settings: Settings, connect: Connect, name: str) -> None:
    there = settings(openapi=f"{api.url}/{name}")
    async with connect(there, ready=name == "redirected.json") as upstream:
        if name == "far.json":
            assert "redirected to another server, other.example" in (upstream.cause or "")
        if name == "missing.json":
            assert "answered with HTTP 404" in (upstream.cause or "")


async def test_limits_hold_for_operations_too(api: Api, settings: Settings, connect: Connect) -> None:
    async with connect(settings(limits=UpstreamLimits(list_bytes=20_000))) as upstream:
        assert upstream.left_out


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"openapi": "api.json"}, "give base_url"),
        ({"openapi": "api.json", "url": "https://x.example"}, "take out command and url"),
        ({"openapi": "https://x.example/a.json", "transport": "http"}, "openapi is given"),
        ({"url": "https://x.example", "base_url": "https://x.example"}, "base_url needs openapi"),
        ({"command": "x", "operations": {"tags": ["a"]}}, "operations needs openapi"),
        ({"openapi": "a.json", "base_url": "https://u:p@x.example"}, "base_url"),
        ({"openapi": "a.json", "base_url": "file:///etc"}, "base_url"),
    ],
)
def test_settings_that_contradict_one_another_are_refused(given: dict[str, Any], words: str) -> None:
    with pytest.raises(ValidationError, match=words):
        UpstreamSettings.model_validate(given)
