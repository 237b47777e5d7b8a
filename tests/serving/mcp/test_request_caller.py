"""What a request itself tells of its host."""

import json

import pytest

from gateway.serving.mcp.request_caller import declared_model

TURN = {"session_id": "s", "model": "gpt-5.5"}


@pytest.mark.parametrize("told", [TURN, json.dumps(TURN)])
def test_the_model_of_a_call_is_read_where_codex_tells_it(told):
    assert declared_model({"name": "x", "_meta": {"x-codex-turn-metadata": told}}) == "gpt-5.5"


@pytest.mark.parametrize(
    "meta",
    [
        None,
        5,
        {},
        {"x-codex-turn-metadata": None},
        {"x-codex-turn-metadata": "no json"},
        {"x-codex-turn-metadata": "[" * 15_000},
        {"x-codex-turn-metadata": json.dumps({**TURN, "padding": "x" * 50_000})},
        {"x-codex-turn-metadata": {"model": 5}},
        {"x-codex-turn-metadata": {"model": ""}},
    ],
)
def test_anything_else_tells_no_model(meta):
    assert declared_model({"_meta": meta}) is None
    assert declared_model(None) is None
