"""Documents in which anything may stand anywhere: each is refused clearly, or makes tools with valid schemas."""

import json
import sys
import time
from typing import Any

import jsonschema_rs
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gateway.config.openapi_settings import OperationSettings
from gateway.config.upstream_settings import UpstreamSettings
from gateway.errors import DocumentUnusable, InvalidRequest
from gateway.upstream.openapi.api import MOST_BYTES, read_api
from gateway.upstream.openapi.document import parse_document
from gateway.upstream.openapi.requests import build_request
from gateway.upstream.openapi.results import ApiAnswer, result_of
from tests.servers.http_api import document

UPSTREAM = UpstreamSettings(
    openapi="a.json", base_url="https://a.example/v1", operations=OperationSettings(also=("*", "* *"))
)
AT = "https://a.example/openapi.json"
REFERENCES = st.sampled_from(
    [
        "#",
        "#/",
        "#/components/schemas/Pet",
        "#/paths/~1pets/get/parameters/0",
        "#/components/parameters/Limit",
        "x.json",
    ]
)
LEAVES = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.floats(allow_nan=False, allow_infinity=False),
    st.text(max_size=8),
    st.builds(lambda to: {"$ref": to}, REFERENCES),
)
WORDS = st.sampled_from(
    ["type", "properties", "items", "allOf", "required", "enum", "nullable", "in", "name", "schema", "content", "$ref"]
)
ANYTHING = st.recursive(
    LEAVES, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(WORDS, inner, max_size=3), max_leaves=8
)


def places_in(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [path, *(place for key, one in inner for place in places_in(one, (*path, key)))]


PLACES = [place for place in places_in(document()) if place]


def changed(places: list[tuple[tuple[Any, ...], Any]]) -> dict[str, Any]:
    found = document()
    for place, value in places:
        holder: Any = found
        try:
            for step in place[:-1]:
                holder = holder[step]
            holder[place[-1]] = value
        except (KeyError, IndexError, TypeError):
            continue  # something above it has been replaced
    return found


@settings(max_examples=150, deadline=None)
@given(st.lists(st.tuples(st.sampled_from(PLACES), ANYTHING), min_size=1, max_size=6))
def test_anything_anywhere_is_refused_or_makes_sound_tools(places: list[tuple[tuple[Any, ...], Any]]) -> None:
    try:
        api = read_api(json.dumps(changed(places)).encode(), UPSTREAM, "")
    except DocumentUnusable:
        return
    for tool in api.tools.values():
        json.dumps(dict(tool.wire))
        for member in ("inputSchema", "outputSchema"):
            if member in tool.wire:
                schema = tool.wire[member]
                assert schema["type"] == "object"
                if "pattern" not in json.dumps(schema):  # what is no expression is mended when tools are offered
                    jsonschema_rs.Draft202012Validator(schema, validate_formats=False)
        arguments: dict[str, Any] = dict.fromkeys(
            (*tool.parameters, *([tool.body_name] if tool.body_name else [])), "x"
        )
        try:
            request = build_request(api.document, tool, arguments, api.base_url, {})
        except InvalidRequest:
            continue
        assert request.url.startswith("https://a.example/v1/")


HEADERS = st.sampled_from(["content-type", "content-disposition", "link", "retry-after", "location"])


@settings(max_examples=150, deadline=None)
@given(
    st.integers(100, 999),
    st.dictionaries(
        st.sampled_from(["content-type", "content-disposition", "link", "retry-after", "location"]),
        st.text(max_size=60),
    ),
    st.binary(max_size=60),
    st.sampled_from(["GET", "HEAD", "POST"]),
)
def test_any_answer_is_a_result_with_content(status: int, headers: dict[str, str], body: bytes, method: str) -> None:
    result = result_of(ApiAnswer(status, headers, body, "https://a.example/v1/x", method), "pets", "tool")
    assert result["content"]
    assert all(block.get("text") != "" for block in result["content"])
    assert result.get("isError", False) is (status >= 400)


HEAD = b"openapi: 3.1.0\npaths: {}\n"
MERGED = [b"%c: &%c {!!merge x: [%s]}\n" % (c, c, b",".join([b"*%c" % (c - 1)] * 10)) for c in range(98, 108)]


@pytest.mark.parametrize(
    "content",
    [
        HEAD + b"x: " + b"[" * 200_000,
        HEAD + b"x: " + b"{a: " * 100_000 + b"}" * 100_000,
        HEAD + b"x:\n" + b"- " * 100_000 + b"a\n",
        HEAD + b"a: &a {k: v, l: w}\n" + b"".join(MERGED),
        HEAD + b"x: !!int 0x" + b"f" * 10_000 + b"\n",
        HEAD + b"x: !!bool abc\n",
        HEAD + b'x: !!float ""\n',
        HEAD + b"x: !!timestamp abc\n",
    ],
    ids=["flow", "mappings", "blocks", "merges", "integer", "boolean", "number", "date"],
)
def test_yaml_that_would_end_or_fill_the_process_is_refused(content: bytes) -> None:
    with pytest.raises(DocumentUnusable):
        parse_document(content)


def test_yaml_keys_that_are_slow_to_look_up_are_texts() -> None:
    colliding = b"".join(b"  %d: 1\n" % (number * sys.hash_info.modulus) for number in range(1, 50_000))
    started = time.process_time()
    parsed = parse_document(HEAD + b"responses: {200: a, 0x1F: b, true: c}\nx:\n" + colliding)
    assert time.process_time() - started < 10  # it took minutes; twice as many take four times as long
    assert parsed.root["responses"] == {"200": "a", "0x1F": "b", "true": "c"}


@pytest.mark.parametrize("content", [b"? [a]\n: 1\n", b"x: !!map a\n", b"x: !!set [a]\n"])
def test_yaml_mappings_that_json_has_not_are_refused(content: bytes) -> None:
    with pytest.raises(DocumentUnusable):
        parse_document(HEAD + content)


@pytest.mark.parametrize("charset", ["punycode", "idna", "unicode_escape"])
def test_a_charset_that_is_none_is_read_as_utf_8(charset: str) -> None:
    body = b"abc-" + b"9a" * 500_000
    started = time.process_time()
    result = result_of(ApiAnswer(200, {"content-type": f"text/plain; charset={charset}"}, body, AT), "pets", "tool")
    assert result["content"][0]["text"] == body.decode()
    assert time.process_time() - started < 2  # a codec of Python's takes half a minute


def large(paths: dict[str, Any], **more: Any) -> bytes:
    return json.dumps({"openapi": "3.1.0", "paths": {"/ok": {"get": {"operationId": "ok"}}, **paths}, **more}).encode()


SAME = {f"/a{number}": {"post": {"operationId": "x"}} for number in range(20_000)}
ITSELF = {"A": {"allOf": [{"$ref": "#/components/schemas/A"}] * 20}}
OF_A = {"200": {"content": {"application/json": {"schema": {"$ref": "#/components/schemas/A"}}}}}
DOUBLED = {f"v{number}": {"default": f"{{v{number + 1}}}" * 2} for number in range(40)}
ALIKE = {"anyOf": [{"$ref": f"#/components/x{number}/a"} for number in range(20_000)]}


@pytest.mark.parametrize(
    "content",
    [
        large(SAME),
        large({"/a": {"get": {"responses": OF_A}}}, components={"schemas": ITSELF}),
        large({}, servers=[{"url": "/{v0}", "variables": DOUBLED}]),
        large(
            {"/a": {"get": {"parameters": [{"name": "p", "in": "query", "schema": ALIKE}]}}},
            components={f"x{number}": {"a": {"type": "string"}} for number in range(20_000)},
        ),
    ],
    ids=["names", "parts", "variables", "definitions"],
)
def test_a_document_takes_no_more_than_its_size_warrants(content: bytes) -> None:
    started = time.process_time()
    assert "ok" in read_api(content, UPSTREAM.model_copy(update={"base_url": None, "openapi": AT}), AT).tools
    assert time.process_time() - started < 20  # each took minutes, or all memory


def test_tools_that_share_what_is_large_are_bounded_together() -> None:
    shared = {"name": "p", "in": "query", "schema": {"enum": ["x" * (MOST_BYTES // 2)]}}
    content = large(
        {f"/a{number}": {"get": {"parameters": [{"$ref": "#/components/parameters/P"}]}} for number in range(20)},
        components={"parameters": {"P": shared}},
    )
    api = read_api(content, UPSTREAM.model_copy(update={"operations": OperationSettings()}), "")
    assert len(api.tools) == 3
    assert "and all after it" in api.left_out[0]


def test_a_server_that_is_not_a_url_does_not_affect_others() -> None:
    api = read_api(large({"/a": {"get": {"servers": [{"url": "http://[x"}]}}}), UPSTREAM, "")
    assert list(api.tools) == ["ok"]
    with pytest.raises(DocumentUnusable, match="not a URL"):
        read_api(large({}, servers=[{"url": "http://[x"}]), UPSTREAM.model_copy(update={"base_url": None}), AT)


def test_arguments_do_not_replace_what_the_configuration_sets() -> None:
    places = (("filter", "query"), ("session", "cookie"), ("X-Odd\r\nEvil", "header"), ("X-Ü", "header"))
    parameters = [{"name": name, "in": place, "schema": {}} for name, place in places]
    upstream = UPSTREAM.model_copy(update={"headers": {"Cookie": "session=ours"}})
    api = read_api(large({"/a": {"get": {"operationId": "a", "parameters": parameters}}}), upstream, "")
    tool = api.tools["a"]
    assert list(tool.parameters) == ["filter"]
    request = build_request(
        api.document, tool, {"filter": {"api_key": "theirs", "b": "1"}}, api.base_url, {"api_key": "ours"}
    )
    assert request.url == "https://a.example/v1/a?b=1&api_key=ours"
