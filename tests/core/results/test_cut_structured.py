"""Structured content that a host's model reads: cut to its shape where it is too long, and still what it promised."""

import json
from collections.abc import Callable
from typing import Any

import jsonschema_rs
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gateway.config.builtin_profiles import builtin_profiles, token_formulas
from gateway.core.model.effects import Failed, Keep, Kept, Outcome
from gateway.core.model.json_size import compact_json
from gateway.core.profiles.profile import Profile
from gateway.core.results.decisions import TokenBudget, decide
from gateway.core.results.lift_result import lift
from gateway.core.results.lower_mcp import lower
from gateway.core.tokens import text_tokens
from gateway.core.tools.catalogue.output_schemas import offered_output_schema
from tests.core.results.test_lowering_mcp import png

CHATGPT = builtin_profiles()["chatgpt"]
ROWS = [{"id": number, "name": f"row {number}", "note": "n" * 50} for number in range(3_000)]
ROW = {"type": "object", "properties": {"id": {"type": "integer"}, "name": {"type": "string"}}, "required": ["id"]}
SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {"rows": {"type": "array", "items": ROW}, "total": {"type": "integer"}},
    "required": ["rows", "total"],
    "additionalProperties": False,
}
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=400),
    lambda inner: st.lists(inner, max_size=30) | st.dictionaries(st.text(max_size=30), inner, max_size=30),
    max_leaves=60,
)


def anything(value: Any) -> bool:
    return True


def host(**structured: Any) -> Profile:
    return CHATGPT.model_copy(update={"structured": CHATGPT.structured.model_copy(update=structured)})


def limited(result_chars: int | None, **structured: Any) -> Profile:
    """Return the profile of a host that takes so many characters of a whole result."""
    limits = CHATGPT.limits.model_copy(update={"result_chars": result_chars})
    image = CHATGPT.image.model_copy(update={"show": "native"})
    return host(**structured).model_copy(update={"limits": limits, "image": image})


def shaped(
    value: Any,
    profile: Profile = CHATGPT,
    *,
    accepts: Callable[[Any], bool] | None = anything,
    tokens: TokenBudget | None = None,
    outcome: Outcome | None = None,
    blocks: tuple[Any, ...] = (),
) -> tuple[dict[str, Any], str, list[str]]:
    """Return the result as sent, what was stored, and the notes."""
    envelope, outcomes, stored = lift({"content": list(blocks), "structuredContent": value}), dict[str, Outcome](), ""
    for _ in range(3):
        decisions = decide(envelope, profile, outcomes, (), tokens, accepts)
        if not decisions.wanted:
            lowered = lower(envelope, profile, decisions)
            return lowered.result, stored, [note.text for note in lowered.notes]
        for key, effect in decisions.wanted.items():
            assert isinstance(effect, Keep)
            stored = stored or str(effect.data)
            outcomes[key] = outcome or Kept("txt_7h3k2m9q4w8x")
    raise AssertionError("it never settles")


def test_it_keeps_its_first_rows_and_says_how_many_there_are_and_how_to_read_them():
    value = {"total": 3_000, "rows": ROWS}
    result, stored, notes = shaped(value)
    sent = result["structuredContent"]
    assert len(compact_json(sent)) <= 40_000
    assert sent["total"] == 3_000
    assert sent["rows"] == ROWS[: len(sent["rows"])]
    assert len(sent["rows"]) >= 100
    assert f"{len(sent['rows'])} of 3,000 rows in rows" in sent["gateway_left_out"]
    assert 'gateway_read, handle "txt_7h3k2m9q4w8x", query' in sent["gateway_left_out"]
    assert json.loads(stored) == value
    assert any("to its shape" in note for note in notes)


def test_what_is_short_enough_is_sent_as_it_came():
    value = {"rows": ROWS[:100]}
    result, stored, notes = shaped(value)
    assert result["structuredContent"] == value
    assert (stored, notes) == ("", [])


@pytest.mark.parametrize("profile", ["dify", "inspector", "passthrough"])
def test_it_stays_whole_where_the_host_has_room_for_it(profile: str):
    value = {"rows": ROWS}
    assert shaped(value, builtin_profiles()[profile])[0]["structuredContent"] == value


@pytest.mark.parametrize("reads", ["unknown", "ignored", "replaces-text", "beside"])
@pytest.mark.parametrize("words", [0, 10_000, 30_000])
def test_the_limit_on_the_whole_result_holds_for_it_and_the_texts_together(reads: str, words: int):
    profile = limited(50_000, max_chars=None, host=reads)
    blocks = ({"type": "text", "text": "word " * (words // 5)},) if words else ()
    result, stored, _ = shaped({"rows": ROWS}, profile, blocks=blocks)
    assert len(compact_json(result)) <= 50_000
    rows = result["structuredContent"]["rows"]
    assert rows == ROWS[: len(rows)]
    assert 30 <= len(rows) < 3_000
    assert json.loads(stored)["rows"] == ROWS


def test_an_image_keeps_its_room():
    data = png(640, 480, 30_000)
    profile = limited(60_000, max_chars=None, host="beside")
    result, _, _ = shaped({"rows": ROWS}, profile, blocks=({"type": "image", "data": data, "mimeType": "image/png"},))
    assert [block["data"] for block in result["content"] if block["type"] == "image"] == [data]
    assert len(compact_json(result)) <= 60_000
    assert result["structuredContent"]["rows"] == ROWS[: len(result["structuredContent"]["rows"])]


@pytest.mark.parametrize("reads", ["beside", "dumped", "replaces-all"])
def test_a_budget_in_tokens_holds_wherever_a_model_reads_it(reads: str):
    budget = TokenBudget(2_000, [token_formulas()["openai"]])
    profile = limited(None, max_chars=None, host=reads)
    result, _, _ = shaped({"rows": ROWS[:200]}, profile, tokens=budget, blocks=({"type": "text", "text": "Rows."},))
    assert text_tokens(compact_json(result["structuredContent"])) <= 2_000


@pytest.mark.parametrize("reads", ["unknown", "ignored", "if-empty"])
def test_a_budget_in_tokens_leaves_what_no_model_reads(reads: str):
    budget = TokenBudget(2_000, [token_formulas()["openai"]])
    profile, value = limited(None, max_chars=None, host=reads), {"rows": ROWS[:200]}
    result, _, _ = shaped(value, profile, tokens=budget, blocks=({"type": "text", "text": "Rows."},))
    assert result["structuredContent"] == value


def test_it_stays_whole_where_a_page_reads_it():
    value = {"rows": ROWS}
    assert shaped(value, accepts=None)[0]["structuredContent"] == value


def test_a_line_says_it_where_the_model_reads_the_content_as_well():
    result, _, _ = shaped({"rows": ROWS, "total": 1}, host(host="beside"), blocks=({"type": "text", "text": "Rows."},))
    assert set(result["structuredContent"]) == {"rows", "total"}
    said = [block["text"] for block in result["content"]]
    assert "of 3,000 rows in rows" in "\n".join(said)


def test_the_offered_schema_has_a_place_for_the_line_and_the_cut_content_fits_it():
    offered = offered_output_schema(SCHEMA, CHATGPT, for_a_page=False, objects_only=True).schema
    valid = jsonschema_rs.validator_for(offered).is_valid
    result, _, _ = shaped({"total": 3_000, "rows": ROWS}, accepts=valid)
    assert valid(result["structuredContent"])
    assert len(compact_json(result["structuredContent"])) <= 40_000
    assert not jsonschema_rs.validator_for(SCHEMA).is_valid(result["structuredContent"])


@pytest.mark.parametrize("for_a_page", [True, False])
def test_other_schemas_are_offered_as_they_are(for_a_page: bool):
    open_schema = {**SCHEMA, "additionalProperties": True}
    same = offered_output_schema(open_schema, CHATGPT, for_a_page=for_a_page, objects_only=True)
    assert same.schema is open_schema
    for name in ("dify", "passthrough"):  # one says in the text what was left out, and for the other nothing ever is
        same = offered_output_schema(SCHEMA, builtin_profiles()[name], for_a_page=for_a_page, objects_only=True)
        assert same.schema is SCHEMA


@pytest.mark.parametrize(
    "rows",
    [{"minItems": 3_000}, {"items": ROW | {"properties": {"note": {"minLength": 50}}}}],
    ids=["rows", "texts"],
)
def test_a_schema_that_wants_more_gets_more(rows: dict[str, Any]):
    schema = {"type": "object", "properties": {"rows": {"type": "array", **rows}}}
    valid = jsonschema_rs.validator_for(schema).is_valid
    result, _, notes = shaped({"rows": ROWS}, host(max_chars=3_000), accepts=valid)
    assert valid(result["structuredContent"])
    if "minItems" in rows:
        assert result["structuredContent"]["rows"] == ROWS
        assert any("sent whole" in note for note in notes)
    else:
        assert 0 < len(result["structuredContent"]["rows"]) < 3_000


def test_nothing_is_cut_that_could_not_be_kept():
    value = {"rows": ROWS}
    result, _, notes = shaped(value, outcome=Failed("the store is full"))
    assert result["structuredContent"] == value
    assert any("not kept" in note for note in notes)


def test_a_list_has_no_place_for_the_words_unless_the_content_is_read_too():
    assert shaped(ROWS)[0]["structuredContent"] == ROWS
    beside, _, _ = shaped(ROWS, host(host="beside"))
    assert beside["structuredContent"] == ROWS[: len(beside["structuredContent"])]
    assert len(beside["structuredContent"]) < 3_000


def test_a_budget_in_tokens_holds_for_it_too():
    budget = TokenBudget(2_000, [token_formulas()["openai"]])
    result, _, _ = shaped({"rows": ROWS[:200]}, tokens=budget)
    assert text_tokens(compact_json(result["structuredContent"])) <= 2_000


def test_a_server_cannot_speak_for_the_gateway():
    value = {"gateway_left_out": "nothing", "rows": ROWS}
    assert "3,000 rows" in shaped(value)[0]["structuredContent"]["gateway_left_out"]


@settings(deadline=None, max_examples=100)
@given(JSON, st.sampled_from(["replaces-text", "beside"]), st.integers(500, 5_000))
def test_any_content_is_cut_or_whole_and_never_invalid(value: Any, reads: str, most: int):
    result, stored, notes = shaped(value, host(host=reads, max_chars=most), blocks=({"type": "text", "text": "x"},))
    sent = result["structuredContent"]
    if sent != value:
        assert len(compact_json(sent)) <= most
        assert json.loads(stored) == value
    elif len(compact_json(value)) > most:
        assert any("sent whole" in note for note in notes)
