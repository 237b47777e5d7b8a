"""Documents in which anything may stand anywhere: each is refused clearly, or makes tools with valid schemas."""

import json
from typing import Any

import jsonschema_rs
from hypothesis import given, settings
from hypothesis import strategies as st

from gateway.config.openapi_settings import OperationSettings
from gateway.config.schema import UpstreamSettings
from gateway.errors import DocumentUnusable, InvalidRequest
from gateway.upstream.openapi.api import read_api
from gateway.upstream.openapi.requests import build_request
from gateway.upstream.openapi.results import ApiAnswer, result_of
from tests.servers.http_api import document

UPSTREAM = UpstreamSettings(
    openapi="a.json", base_url="https://a.example/v1", operations=OperationSettings(also=("*", "* *"))
)
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
