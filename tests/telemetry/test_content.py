"""Content in a log, where it was asked for."""

import json

import pytest

from gateway.telemetry.content import LONGEST, shorten_json


def test_short_values_stay_as_they_are():
    value = {"city": "Zürich", "days": 3, "deep": [1.5, None, {"a": True}]}
    assert json.loads(shorten_json(value)) == value


def test_encoded_fields_are_replaced_by_their_length_however_short():
    shown = shorten_json({"content": [{"type": "image", "data": "AAAA", "mimeType": "image/png"}, {"blob": "QUJD"}]})
    assert "AAAA" not in shown
    assert "QUJD" not in shown
    assert shown.count("<4 characters>") == 2


def test_encoded_text_is_found_before_a_text_is_cut():
    shown = shorten_json({"text": "x " * 90 + "Q2F0cyBhcmUgc21hbGwg" * 300})
    assert "Q2F0" not in shown
    assert "Q2F0" not in shorten_json({"url": "see data:text/plain;base64,Q2F0cw=="})


def test_arguments_with_the_name_of_a_secret_are_hidden():
    assert json.loads(shorten_json({"api_key": "abc", "Password": {"x": 1}, "city": "Bern"})) == {
        "api_key": "***",
        "Password": "***",
        "city": "Bern",
    }


@pytest.mark.parametrize(
    "text",
    [
        '{"api_key": "hidden-one", "x": 1}',
        "password=hidden-one;",
        "Authorization: Bearer hidden-one",
        "?token=hidden-one&x=1",
    ],
)
def test_secrets_are_found_by_their_names_in_text_too(text):
    assert "hidden-one" not in shorten_json({"text": text})
    assert "***" in shorten_json([text])


def test_long_and_deep_values_are_bounded():
    deep: object = "end"
    for _ in range(5_000):
        deep = [deep]
    for value in ("words " * 10_000, ["item"] * 10_000, {f"k{n}": "v" * 100 for n in range(10_000)}, deep):
        assert len(shorten_json(value)) <= LONGEST
    assert "9980 more" in shorten_json(["item"] * 10_000)
