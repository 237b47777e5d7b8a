"""The estimate of a text's tokens, against counts by a real tokenizer (samples.json says which)."""

import json
from pathlib import Path
from typing import Any

import pytest

from gateway.core.tokens import text_tokens

SAMPLES: list[dict[str, Any]] = json.loads(Path(__file__).with_name("samples.json").read_text("utf-8"))["samples"]


@pytest.mark.parametrize("sample", SAMPLES, ids=lambda sample: sample["kind"])
def test_each_kind_of_text_is_estimated_within_a_quarter(sample: dict[str, Any]) -> None:
    assert text_tokens(sample["text"]) == pytest.approx(sample["tokens"], rel=0.25)


def test_the_error_on_average_is_a_third_of_that_of_a_quarter_of_the_characters() -> None:
    def error(estimate: float, tokens: int) -> float:
        return abs(estimate / tokens - 1)

    ours = [error(text_tokens(sample["text"]), sample["tokens"]) for sample in SAMPLES]
    plain = [error(len(sample["text"]) / 4, sample["tokens"]) for sample in SAMPLES]
    assert sum(ours) / len(ours) < 0.1
    assert sum(ours) * 3 < sum(plain)


@pytest.mark.parametrize(("text", "tokens"), [("", 0), ("a", 1), (" ", 1), ("\ud800", 1), ("\0", 1)])
def test_the_smallest_texts_have_at_least_one_token(text: str, tokens: int) -> None:
    assert text_tokens(text) == tokens
