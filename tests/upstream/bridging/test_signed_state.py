"""What a host carries for us: good for one caller and one request, and of no use to anybody else."""

import base64
import json
from dataclasses import replace
from typing import Any

import pytest

from gateway.core.model.caller import Caller
from gateway.errors import InvalidRequest
from gateway.upstream.bridging.signed_state import MARK, Seal

ANN = Caller(revision="2026-07-28", client_name="host", principal="ann")
CALL: dict[str, Any] = {"name": "x tool", "arguments": {"a": [1, {"b": None}]}}


class Clock:
    def __init__(self) -> None:
        self.time = 1_000.0

    def __call__(self) -> float:
        return self.time


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def seal(clock: Clock) -> Seal:
    return Seal(key=b"k" * 32, now=clock)


def opened(seal: Seal, state: str, caller: Caller = ANN, method: str = "tools/call", **params: Any) -> dict[str, Any]:
    return seal.open(state, caller, method, CALL | params)


@pytest.fixture
def state(seal: Seal) -> str:
    return seal.close({"parked": "1"}, ANN, "tools/call", CALL, 60)


def test_what_was_sealed_comes_back_to_its_caller_for_its_request(seal: Seal, state: str) -> None:
    assert state.startswith(MARK)
    assert opened(seal, state) == {"parked": "1"}
    assert opened(seal, state, inputResponses={"a": {}}, requestState="x", _meta={}) == {"parked": "1"}


@pytest.mark.parametrize(
    "content",
    [
        "",
        "plain",
        "naïve \u2028 ☃ \x00",
        "half \ud83d",
        "{}",
        0,
        False,
        [],
        {"a": {"b": [1.5, None]}},
        12345678901234567890,
    ],
)
def test_a_state_of_an_upstream_comes_back_as_it_was(seal: Seal, content: Any) -> None:
    sealed = seal.close({"upstream": content}, ANN, "tools/call", CALL, 60)
    assert sealed.isascii()
    found = opened(seal, sealed)["upstream"]
    assert (found, type(found)) == (content, type(content))


def test_a_large_state_of_an_upstream_comes_back_as_it_was(seal: Seal) -> None:
    content = "☃" * 500_000
    assert opened(seal, seal.close({"upstream": content}, ANN, "tools/call", CALL, 60)) == {"upstream": content}


def test_no_byte_of_it_can_be_changed(seal: Seal, state: str) -> None:
    raw = base64.urlsafe_b64decode(state.removeprefix(MARK))
    for place in range(len(raw)):
        changed = raw[:place] + bytes([raw[place] ^ 1]) + raw[place + 1 :]
        with pytest.raises(InvalidRequest, match="was not issued"):
            opened(seal, MARK + base64.urlsafe_b64encode(changed).decode())


@pytest.mark.parametrize(
    "bad",
    [
        "",
        MARK,
        MARK + "AAAA",
        MARK + "☃",
        MARK + "no base64!",
        MARK + "A",
        MARK + "=" * 50,
        MARK + MARK,
        MARK + base64.urlsafe_b64encode(b"\0" * 32 + b'{"until":9e99,"content":{"parked":"1"}}').decode(),
        MARK + "A" * 2_000_000,
        MARK + "A" * 40_000_000,
        MARK + base64.urlsafe_b64encode(b"\0" * 32 + b"[" * 100_000).decode(),
    ],
)
def test_what_is_no_state_is_refused_with_a_remedy(seal: Seal, bad: str) -> None:
    with pytest.raises(InvalidRequest) as caught:
        opened(seal, bad)
    assert "requestState" in (caught.value.remedy or "")


@pytest.mark.parametrize("change", [slice(None, -1), slice(None, -4), slice(4, None), slice(None, 20)])
def test_a_part_of_it_is_refused(seal: Seal, state: str, change: slice) -> None:
    with pytest.raises(InvalidRequest):
        opened(seal, MARK + state.removeprefix(MARK)[change])


@pytest.mark.parametrize(
    "thief", [replace(ANN, principal="eve"), replace(ANN, client_name="other"), replace(ANN, client_name=None)]
)
def test_another_caller_cannot_use_it(seal: Seal, state: str, thief: Caller) -> None:
    with pytest.raises(InvalidRequest, match="was not issued to this caller"):
        opened(seal, state, thief)


def test_the_same_caller_can_use_it_over_another_connection(seal: Seal, state: str) -> None:
    later = replace(ANN, session="7", user_agent="x", client_version="2", log_level="debug", headers={"a": "b"})
    assert opened(seal, state, later)


@pytest.mark.parametrize(
    ("method", "params"),
    [
        ("tools/call", {"name": "x other"}),
        ("tools/call", {"name": "y tool"}),
        ("tools/call", {"arguments": {"a": [1, {"b": 0}]}}),
        ("tools/call", {"arguments": {"a": [1, {"b": None}], "c": 1}}),
        ("tools/call", {"arguments": {}}),
        ("tools/call", {"arguments": None}),
        ("tools/call", {"uri": "x://y"}),
        ("prompts/get", {}),
    ],
)
def test_it_is_for_no_other_request(seal: Seal, state: str, method: str, params: dict[str, Any]) -> None:
    with pytest.raises(InvalidRequest, match="for this request"):
        opened(seal, state, method=method, **params)


def test_the_order_of_arguments_does_not_matter(seal: Seal) -> None:
    state = seal.close({"parked": "1"}, ANN, "tools/call", {"name": "x", "arguments": {"a": 1, "b": 2}}, 60)
    assert seal.open(state, ANN, "tools/call", {"arguments": {"b": 2, "a": 1}, "name": "x"})


def test_a_principal_and_a_name_are_not_run_together(seal: Seal) -> None:
    state = seal.close({}, replace(ANN, principal="a", client_name="b c"), "tools/call", CALL, 60)
    with pytest.raises(InvalidRequest):
        opened(seal, state, replace(ANN, principal="a b", client_name="c"))


def test_it_expires(seal: Seal, state: str, clock: Clock) -> None:
    clock.time += 60
    assert opened(seal, state)
    clock.time += 0.1
    with pytest.raises(InvalidRequest, match="expired"):
        opened(seal, state)


def test_another_process_knows_nothing_of_it(state: str) -> None:
    with pytest.raises(InvalidRequest, match="was not issued"):
        opened(Seal(), state)
    ours = Seal()
    assert opened(ours, ours.close({}, ANN, "tools/call", CALL, 60)) == {}


def test_it_does_not_hold_the_arguments_of_the_call(seal: Seal) -> None:
    secret = {"name": "x", "arguments": {"password": "hunter2"}}
    state = seal.close({"parked": "1"}, ANN, "tools/call", secret, 60)
    assert b"hunter2" not in base64.urlsafe_b64decode(state.removeprefix(MARK))
    assert json.loads(base64.urlsafe_b64decode(state.removeprefix(MARK))[32:])["content"] == {"parked": "1"}
