"""The forms of a result that hosts choose from (SEP-3279)."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.core.results.output_variants import (
    FALLBACK,
    FOR_MODEL,
    FOR_PAGE,
    FOR_PROGRAM,
    FOR_USER,
    Selector,
    as_earlier_result,
    as_earlier_tool,
    asked_of_upstream,
    chosen_outputs,
    declared_variants,
    in_chosen_outputs,
    outputs_of,
    selectors_of,
    with_variants,
    without_variants,
)
from gateway.errors import InvalidRequest, OutputUnavailable

SCHEMA = {"type": "object", "properties": {"count": {"type": "integer"}}}
TEXT = {"type": "text", "text": "37 records"}
IMAGE = {"type": "image", "data": "AAAA", "mimeType": "image/png"}
ANYTHING = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=9), inner, max_size=3),
    max_leaves=8,
)


def forms(variants: list[dict[str, Any]]) -> list[Selector]:
    return [Selector(each["audience"], each["format"]) for each in variants]


def test_a_tool_of_today_gives_its_content_to_model_and_user_and_its_data_to_programs():
    assert forms(declared_variants({"name": "a"}, shows_pages=True)) == [FALLBACK, FOR_USER]
    tool = {"name": "a", "outputSchema": SCHEMA, "_meta": {"ui": {"resourceUri": "ui://page"}}}
    assert forms(declared_variants(tool, shows_pages=False)) == [FALLBACK, FOR_USER, FOR_PROGRAM]
    found = declared_variants(tool, shows_pages=True)
    assert forms(found) == [FALLBACK, FOR_USER, FOR_PROGRAM, FOR_PAGE]
    # One schema is not taken to suit every audience.
    assert [each.get("schema") for each in found] == [None, None, SCHEMA, None]
    assert FOR_MODEL not in forms(found)


def test_the_declaration_takes_the_place_of_the_schema():
    tool = with_variants({"name": "a", "outputSchema": SCHEMA, "x": 1}, shows_pages=False)
    assert "outputSchema" not in tool
    assert tool["x"] == 1
    assert without_variants([tool, "odd"]) == [{"name": "a", "x": 1}, "odd"]
    tools = [{"name": "a"}]
    assert without_variants(tools) is tools


def test_what_a_tool_declares_itself_is_kept_where_it_is_sound():
    own = [
        {"audience": "assistant", "format": "structured", "schema": SCHEMA, "more": 1},
        {"audience": "assistant", "format": "structured"},  # once more
        {"audience": "programmatic", "format": "content"},  # no such form
        {"audience": "com.example/robot", "format": "structured"},  # of no extension that was agreed on
        {"audience": "io.modelcontextprotocol/ui", "format": "structured"},
        {"audience": 3, "format": None},
        "odd",
    ]
    found = declared_variants({"name": "a", "outputVariants": own, "outputSchema": {}}, shows_pages=False)
    assert forms(found) == [FALLBACK, FOR_MODEL]
    assert found[1] == own[0]
    assert FOR_PAGE in forms(declared_variants({"name": "a", "outputVariants": own}, shows_pages=True))


@pytest.mark.parametrize(
    ("requested", "says"),
    [
        ("assistant", "list"),
        ([], "list"),
        ([{"audience": "user", "format": "content"}] * 2, "twice"),
        ([{"audience": "user"}], "audience and a format"),
        ([None], "audience and a format"),
        ([{"audience": "assistant", "format": "structured"}], "does not declare the form assistant/structured"),
        ([{"audience": "user", "format": str(n)} for n in range(99)], "1 to 16"),
    ],
)
def test_a_choice_that_cannot_be_met_is_refused(requested: Any, says: str):
    with pytest.raises(InvalidRequest, match=says):
        chosen_outputs(requested, declared_variants({"name": "a"}, shows_pages=False))


def test_without_a_choice_it_is_the_form_that_every_tool_has():
    assert chosen_outputs(None, []) == (FALLBACK,)


def test_each_chosen_form_is_there_once_and_no_other():
    raw = {"content": [TEXT, IMAGE], "structuredContent": {"count": 37}}
    shaped = {"content": [TEXT]}
    assert outputs_of(shaped, raw, [FOR_PROGRAM]) == [{**FOR_PROGRAM.wire(), "structuredContent": {"count": 37}}]
    both = outputs_of(shaped, raw, [FOR_USER, FALLBACK], 1)
    assert both == [{**FOR_USER.wire(), "content": [TEXT]}, {**FALLBACK.wire(), "content": [TEXT]}]
    assert outputs_of(shaped, raw, [FOR_USER])[0]["content"] == [TEXT, IMAGE]


def test_a_value_that_is_null_is_a_value():
    raw = {"content": [], "structuredContent": None}
    assert outputs_of(raw, raw, [FOR_PROGRAM]) == [{**FOR_PROGRAM.wire(), "structuredContent": None}]


def test_a_form_that_is_not_there_is_an_error_and_not_another_form():
    with pytest.raises(OutputUnavailable, match="programmatic/structured"):
        outputs_of({"content": [TEXT]}, {"content": [TEXT]}, [FALLBACK, FOR_PROGRAM])


def test_a_failure_is_told_in_the_forms_in_which_it_can_be():
    failed = {"content": [{"type": "text", "text": "no such record"}], "isError": True}
    assert [each["audience"] for each in outputs_of(failed, failed, [FALLBACK, FOR_PROGRAM])] == ["assistant"]
    with pytest.raises(OutputUnavailable, match="no such record"):
        outputs_of(failed, failed, [FOR_PROGRAM])


def test_an_upstreams_own_outputs_are_never_mixed_up():
    given = [
        {**FALLBACK.wire(), "content": [IMAGE]},
        {**FOR_MODEL.wire(), "structuredContent": 1},
        {**FOR_USER.wire(), "content": [TEXT]},
    ]
    asked = [FALLBACK.wire(), FOR_MODEL.wire(), FOR_USER.wire()]
    raw = as_earlier_result({"outputs": [*given, {**FOR_PROGRAM.wire(), "structuredContent": 2}]}, asked)
    assert raw["content"] == [IMAGE]
    assert raw["structuredContent"] == 1
    shaped = {"content": [TEXT]}
    assert outputs_of(shaped, raw, [FALLBACK])[0]["content"] == [TEXT]  # shaped for the model
    assert outputs_of(shaped, raw, [FOR_USER])[0]["content"] == [TEXT]
    with pytest.raises(OutputUnavailable):
        outputs_of(shaped, raw, [FOR_PROGRAM])  # the data for the model is not for programs


def test_an_upstreams_tool_has_the_schema_of_what_its_model_reads():
    tool = {"name": "a", "outputVariants": [FALLBACK.wire(), {**FOR_MODEL.wire(), "schema": SCHEMA}]}
    assert as_earlier_tool(tool)["outputSchema"] == SCHEMA
    other = {"name": "a", "outputVariants": [{**FOR_PROGRAM.wire(), "schema": SCHEMA}]}
    assert "outputSchema" not in as_earlier_tool(other)


def test_an_upstream_is_asked_for_what_is_declared_and_needed():
    declared = [FALLBACK, FOR_MODEL, FOR_PROGRAM, FOR_PAGE]
    asked = lambda chosen, pages=False: asked_of_upstream(declared, chosen, shows_pages=pages)  # noqa: E731
    assert asked(None) == [FALLBACK.wire(), FOR_MODEL.wire()]
    assert asked(None, True) == [FALLBACK.wire(), FOR_PAGE.wire(), FOR_MODEL.wire()]
    assert asked([FOR_PROGRAM.wire()]) == [FALLBACK.wire(), FOR_PROGRAM.wire()]
    assert asked([FOR_USER.wire()]) is None
    assert asked_of_upstream([], None, shows_pages=True) is None


def test_an_answer_of_the_gateways_own_is_told_to_the_model():
    failed = {"content": [TEXT], "isError": True, "_meta": {"a": 1}}
    assert in_chosen_outputs(failed, None) == {
        "isError": True,
        "_meta": {"a": 1},
        "outputs": [{**FALLBACK.wire(), "content": [TEXT]}],
    }
    asking = {"resultType": "input_required", "inputRequests": {}}
    assert in_chosen_outputs(asking, None) is asking


@given(ANYTHING, ANYTHING, st.booleans())
def test_whatever_an_upstream_declares_or_returns_breaks_nothing(declared: Any, outputs: Any, pages: bool):
    tool = {"name": "a", "outputVariants": declared}
    found = declared_variants(tool, shows_pages=pages)
    assert forms(found).count(FALLBACK) == 1
    assert len(set(forms(found))) == len(found)
    as_earlier_tool(tool)
    selectors_of(tool)
    raw = as_earlier_result({"outputs": outputs}, [FALLBACK.wire(), FOR_MODEL.wire()])
    assert outputs_of({"content": []}, raw, [FALLBACK]) == [{**FALLBACK.wire(), "content": []}]
