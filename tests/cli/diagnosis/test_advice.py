"""Advice: each rule is given where it applies, and not where it does not."""

import base64
import io

import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

from gateway.cli.diagnosis.described_results import judgeable
from gateway.config.builtin_profiles import builtin_profiles
from gateway.hosts.simulators.hosts import FIRST
from gateway.hosts.simulators.side import side
from gateway.testing.advice import RULES, Advice, advise_on_tool, unique
from gateway.testing.result_advice import advise_on_result
from tests.core.golden_cases import NAMES, read
from tests.core.test_golden import expanded


def encoded(kind="PNG", size=(40, 30)):
    out = io.BytesIO()
    Image.linear_gradient("L").resize(size).convert("RGB").save(out, kind)
    return base64.b64encode(out.getvalue()).decode()


PNG = encoded()
NOISE = base64.b64encode(b"\x89PNG\r\n\x1a\n" + bytes(1_100_000)).decode()
TEXT = {"type": "text", "text": "A gradient."}
IMAGE = {"type": "image", "data": PNG, "mimeType": "image/png"}
SVG = base64.b64encode(b'<svg xmlns="http://www.w3.org/2000/svg" width="9" height="9"/>').decode()
PROMISING = {"name": "a", "inputSchema": {"type": "object"}, "outputSchema": {"type": "object"}}
GOOD_TOOL = {
    "name": "draw",
    "description": "Draws.",
    "inputSchema": {"type": "object"},
    "annotations": {"readOnlyHint": True},
}


PAGED = {**GOOD_TOOL, "_meta": {"ui": {"resourceUri": "ui://draw/page.html"}}}


def result(*content, **more):
    return {"content": list(content), **more}


UNREAD = {
    "a number beside a text": result(TEXT, structuredContent={"size": 7}),
    "a text beside its data": result({"type": "text", "text": "7 seats"}, structuredContent={"size": 7}),
    "nothing but data": result(structuredContent={"size": 7}),
    "data beside a picture": result(TEXT, IMAGE, structuredContent={"size": 7}),
}


def blob(data, kind):
    return {"type": "resource", "resource": {"uri": "a://b", "blob": data, "mimeType": kind}}


ON_RESULTS = {
    "image-no-type": (result(TEXT, {"type": "image", "data": PNG}), None),
    "image-wrong-type": (result(TEXT, IMAGE | {"mimeType": "image/jpeg"}), None),
    "image-broken": (result(TEXT, IMAGE | {"data": "data:image/png;base64," + PNG}), None),
    "image-type": (result(TEXT, {"type": "image", "data": SVG, "mimeType": "image/svg+xml"}), None),
    "image-large": (result(TEXT, IMAGE | {"data": encoded(size=(2_400, 100))}), None),
    "text-missing": (result(IMAGE), None),
    "base64-in-text": (result({"type": "text", "text": f"Here: data:image/png;base64,{PNG}"}), None),
    "text-long": (result({"type": "text", "text": "word " * 9_000}), None),
    "text-empty": (result({"type": "text", "text": ""}, TEXT), None),
    "audio-unseen": (result(TEXT, {"type": "audio", "data": "AAAA", "mimeType": "audio/wav"}), None),
    "document-unseen": (result(TEXT, blob(base64.b64encode(b"%PDF-1.7 x").decode(), "application/pdf")), None),
    "embedded-image": (result(TEXT, blob(PNG, "application/octet-stream")), None),
    "embedded-text": (result({"type": "resource", "resource": {"uri": "a://b", "text": "words"}}), None),
    "link-unfollowed": (result({"type": "resource_link", "uri": "a://b", "name": "b"}), None),
    "audience-ignored": (result(TEXT | {"annotations": {"audience": ["user"]}}), None),
    "block-unknown": (result(TEXT, {"type": "video"}), None),
    "structured-hides-media": (result(TEXT, IMAGE, structuredContent={"a": 1}), None),
    "media-in-structured": (result(TEXT, structuredContent={"picture": PNG * 2}), None),
    "structured-alone": (result(structuredContent={"a": 1}), None),
    "structured-differs": (result(TEXT, structuredContent={"size": 7}), None),
    "structured-missing": (result(TEXT), PROMISING),
    "image-beside-error": (result(TEXT, IMAGE, isError=True), None),
    "error-without-text": (result(isError=True), None),
    "result-empty": (result(), None),
    "result-large": (result(TEXT, IMAGE | {"data": NOISE}), None),
    "content-missing": ({"structuredContent": {}}, None),
}
ON_TOOLS = {
    "name-long": GOOD_TOOL | {"name": "draw" * 16},
    "name-characters": GOOD_TOOL | {"name": "draw/it"},
    "description-missing": GOOD_TOOL | {"description": " "},
    "hints-missing": GOOD_TOOL | {"annotations": {"title": "Draw"}},
    "schema": GOOD_TOOL | {"inputSchema": {"type": "object", "properties": {"a": {"$ref": "x.json"}}}},
}


def profiles():
    return [profile for name, profile in builtin_profiles().items() if name not in ("passthrough", "inspector")]


@pytest.mark.parametrize("rule", ON_RESULTS)
def test_each_rule_on_results_is_given_where_it_applies(rule):
    given_result, tool = ON_RESULTS[rule]
    assert rule in {advice.rule for advice in advise_on_result(given_result, tool)}


@pytest.mark.parametrize("rule", ON_TOOLS)
def test_each_rule_on_tools_is_given_where_it_applies(rule):
    assert [advice.rule for advice in advise_on_tool(ON_TOOLS[rule], "server", profiles())] == [rule]


def test_every_rule_is_tried_here():
    assert set(ON_RESULTS) | set(ON_TOOLS) == set(RULES)


@pytest.mark.parametrize(
    ("good", "tool"),
    [
        (result(TEXT), None),
        (result(TEXT, IMAGE), None),
        (result(TEXT, {"type": "image", "data": encoded("JPEG"), "mimeType": "image/jpg"}), None),
        (result({"type": "text", "text": '{"a": 1}'}, structuredContent={"a": 1}), PROMISING),
        (result(TEXT, isError=True), PROMISING),
        (result(TEXT, {"type": "resource", "resource": {"uri": "ui://page", "text": "<p>words"}}), None),
    ],
)
def test_nothing_is_advised_where_nothing_is_wrong(good, tool):
    assert list(advise_on_result(good, tool)) == []
    assert list(advise_on_tool(GOOD_TOOL, "server", profiles())) == []


def test_advice_says_where_what_is_so_and_what_to_do():
    (advice,) = advise_on_result(result(TEXT, IMAGE | {"mimeType": "image/jpeg"}))
    assert str(advice) == 'content[1]: it says image/jpeg, but its bytes are image/png; set mimeType = "image/png"'


def test_an_unusable_tool_is_advised_on_and_nothing_else_is_looked_at():
    for tool in ("no object", {"name": ""}, {"name": "a", "inputSchema": []}):
        assert [advice.rule for advice in advise_on_tool(tool, "server", profiles())] == ["schema"]


def test_much_of_the_same_advice_is_said_a_few_times_and_counted():
    many = [Advice("text-empty", f"content[{index}]", "it is empty", "leave it out") for index in range(9)]
    kept = unique([*many, many[0]])
    assert [one.where for one in kept] == ["content[0]", "content[1]", "content[2]"]
    assert kept[-1].now == "it is empty (and 6 more)"


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5) | st.just(PNG),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(
                ["type", "text", "data", "mimeType", "resource", "uri", "blob", "annotations", "audience", "name"]
            ),
            inner | st.sampled_from(["text", "image", "audio", "resource", "resource_link", ["user"]]),
            max_size=5,
        )
    ),
    max_leaves=15,
)


@given(json_values, st.none() | json_values, st.booleans() | st.text(max_size=2))
def test_nothing_that_a_server_returns_makes_it_fail(content, structured, is_error):
    some = {"content": content, "structuredContent": structured, "isError": is_error}
    assert all(advice.rule in RULES for advice in advise_on_result(some))


def test_a_tool_with_a_page_is_not_told_to_leave_out_what_its_page_lives_on():
    given_result = result(TEXT, IMAGE, structuredContent={"image": PNG})
    assert {one.rule for one in advise_on_result(given_result, GOOD_TOOL)} > {"structured-hides-media"}
    (only,) = advise_on_result(given_result, PAGED)
    assert (only.rule, only.change) == ("structured-differs", "say it there, too")
    for_pages = {**GOOD_TOOL, "annotations": {}, "_meta": {"ui": {"visibility": ["app"]}}}
    assert list(advise_on_tool(for_pages, "server", builtin_profiles().values())) == []


@pytest.mark.parametrize("tool", [GOOD_TOOL, PAGED], ids=["plain", "paged"])
@pytest.mark.parametrize("name", [*NAMES, *UNREAD])
def test_whenever_a_host_does_not_read_something_there_is_a_change(name, tool):
    some = UNREAD[name] if name in UNREAD else expanded(read(name).result)
    hosts = [host for host in FIRST if not host.for_people]
    lost = {host.name: unread for host in hosts if (unread := side(judgeable(some), some, tool, host).verdict.lost)}
    assert not lost or list(advise_on_result(some, tool)), lost


def test_a_value_for_the_page_that_no_text_says_is_to_be_said_or_moved():
    (advice, *_) = advise_on_result(UNREAD["a number beside a text"], PAGED)
    assert str(advice) == (
        'structuredContent: no text says what begins with "7": Gemini CLI and others show their models only the text; '
        "say it in the text, too, or put what only the page needs into _meta"
    )
    assert "structured-alone" in {one.rule for one in advise_on_result(UNREAD["nothing but data"], PAGED)}
