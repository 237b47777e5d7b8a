"""Whether a host can be asked something, and in which form."""

from typing import Any

import pytest

from gateway.core.model.caller import Caller
from gateway.upstream.bridging.input_requests import can_answer, for_handshake, for_modern, input_requests
from gateway.upstream.connection.host_requests import ELICITATION, ROOTS, SAMPLING

URL = {"mode": "url", "url": "https://example.org/ö", "message": "Sign in"}


@pytest.mark.parametrize(
    ("declared", "method", "params", "can"),
    [
        ({"sampling": {}}, SAMPLING, {}, True),
        ({"sampling": {"tools": {}}}, SAMPLING, {"tools": []}, True),
        ({"roots": {}}, ROOTS, {}, True),
        ({}, SAMPLING, {}, False),
        ({"sampling": {}}, ELICITATION, {}, False),
        ({"sampling": True}, SAMPLING, {}, False),
        ({"sampling": None}, SAMPLING, {}, False),
        ({"": {}}, "tools/call", {}, False),
        ({"sampling": {}, "elicitation": {}, "roots": {}}, "sampling/other", {}, False),
        ({"elicitation": {}}, ELICITATION, {}, True),
        ({"elicitation": {}}, ELICITATION, {"mode": "form"}, True),
        ({"elicitation": {}}, ELICITATION, URL, False),
        ({"elicitation": {"form": {}}}, ELICITATION, {"mode": "form"}, True),
        ({"elicitation": {"form": {}}}, ELICITATION, URL, False),
        ({"elicitation": {"form": {}, "url": {}}}, ELICITATION, URL, True),
        ({"elicitation": {"url": {}}}, ELICITATION, URL, True),
        ({"elicitation": {"url": {}}}, ELICITATION, {"mode": "form"}, False),
        ({"elicitation": {"url": {}}}, ELICITATION, {}, False),
        ({"elicitation": {"applyDefaults": True}}, ELICITATION, {}, True),
    ],
)
def test_a_host_is_asked_what_it_declared_that_it_answers(
    declared: dict[str, Any], method: str, params: dict[str, Any], can: bool
) -> None:
    assert can_answer(Caller(capabilities=declared), method, params) is can


def test_a_stateless_host_is_asked_without_what_belongs_to_a_connection() -> None:
    params = URL | {"elicitationId": "7", "_meta": {"progressToken": 1}, "task": {"ttl": 1}, "later": {"kept": True}}
    assert for_modern(ELICITATION, params) == URL | {"later": {"kept": True}}
    assert for_modern(SAMPLING, {"elicitationId": "kept", "messages": []}) == {"elicitationId": "kept", "messages": []}
    assert params["elicitationId"] == "7"


def test_a_handshake_host_gets_an_id_for_an_elicitation_by_url_the_same_for_the_same() -> None:
    first, again = for_handshake(ELICITATION, URL), for_handshake(ELICITATION, dict(reversed(URL.items())))
    assert first == again
    assert first.keys() - URL.keys() == {"elicitationId"}
    assert first["elicitationId"] != for_handshake(ELICITATION, URL | {"url": "https://example.org/2"})["elicitationId"]
    assert for_handshake(ELICITATION, URL | {"elicitationId": "theirs"})["elicitationId"] == "theirs"


@pytest.mark.parametrize("params", [{"message": "?", "requestedSchema": {}}, {"mode": "form"}, {}])
def test_other_questions_stay_as_they_are(params: dict[str, Any]) -> None:
    assert for_handshake(ELICITATION, params) == params == for_modern(ELICITATION, params)


@pytest.mark.parametrize(
    "bad", [None, [], "x", 3, {}, {"a": None}, {"a": []}, {"a": {"method": 3}}, {"a": {"params": {}}}]
)
def test_what_is_no_question_is_none(bad: Any) -> None:
    assert input_requests({"inputRequests": bad}) == {}
    assert input_requests({}) == {}


def test_one_bad_question_costs_only_itself() -> None:
    asked = {
        "a": {"method": ROOTS},
        "b": "?",
        "c": {"method": SAMPLING, "params": []},
        "d": {"method": "x", "params": {"y": 1}},
    }
    assert input_requests({"inputRequests": asked}) == {"a": (ROOTS, {}), "c": (SAMPLING, {}), "d": ("x", {"y": 1})}
