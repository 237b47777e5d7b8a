"""A stateless upstream that asks, and a host of the handshake era that is asked at once."""

from collections.abc import Awaitable, Callable, Mapping
from typing import Any

import anyio
import pytest

from gateway.core.model.caller import Caller
from gateway.errors import HostRefused, UpstreamGarbage, UpstreamRefused
from gateway.upstream.bridging.input_rounds import ROUNDS, drive

pytestmark = pytest.mark.anyio

ABLE = Caller(revision="2025-11-25", capabilities={"elicitation": {}, "sampling": {}, "roots": {}})
DONE = {"content": [], "resultType": "complete"}
CALL = {"name": "t", "arguments": {"a": 1}, "_meta": {"traceparent": "00"}}


def asks(*keys: str, method: str = "elicitation/create", **more: Any) -> dict[str, Any]:
    requests = {key: {"method": method, "params": {"message": f"{key}?"}} for key in keys}
    return {"resultType": "input_required", "inputRequests": requests, **more}


class Upstream:
    """Answers with one result after the other, the last one for ever; `sent` is what it got."""

    def __init__(self, *results: dict[str, Any]) -> None:
        self.results = list(results)
        self.sent: list[dict[str, Any]] = []

    async def __call__(self, params: Mapping[str, Any]) -> dict[str, Any]:
        self.sent.append(dict(params))
        return self.results.pop(0) if len(self.results) > 1 else self.results[0]


class Host:
    """Answers what it is asked by a function; `asked` is what that was."""

    party = "host"
    connection = None
    bounds_waiting = False

    def __init__(self, answer: Callable[[str, Mapping[str, Any]], Awaitable[dict[str, Any]]] | None = None) -> None:
        self.asked: list[tuple[str, dict[str, Any]]] = []
        self._answer = answer

    async def let_go(self) -> None:
        pass

    async def ask(self, method: str, params: Mapping[str, Any]) -> dict[str, Any]:
        self.asked.append((method, dict(params)))
        return {"to": params.get("message", method)} if self._answer is None else await self._answer(method, params)

    async def tell(self, method: str, params: Mapping[str, Any]) -> None:
        raise AssertionError(method)


async def driven(
    upstream: Upstream, host: Host | None = None, caller: Caller = ABLE, patience: float = 5, **params: Any
) -> dict[str, Any]:
    with anyio.fail_after(10):
        first = await upstream(CALL | params)
        return await drive(first, upstream, CALL | params, caller, host or Host(), upstream="x", patience=patience)


async def test_a_result_that_asks_for_nothing_is_passed_on() -> None:
    for result in (DONE, {"content": []}, {"content": [], "resultType": "input-required"}):
        upstream, host = Upstream(result), Host()
        assert await driven(upstream, host) is result
        assert (upstream.sent, host.asked) == ([CALL], [])


async def test_the_answers_and_the_state_go_with_the_same_request() -> None:
    state = 'opaque "☃"\u2028\x00'
    upstream, host = Upstream(asks("a", "b", requestState=state), DONE), Host()
    assert await driven(upstream, host) == DONE
    assert host.asked == [("elicitation/create", {"message": "a?"}), ("elicitation/create", {"message": "b?"})]
    responses = {"a": {"to": "a?"}, "b": {"to": "b?"}}
    assert upstream.sent == [CALL, CALL | {"inputResponses": responses, "requestState": state}]


async def test_a_state_that_is_absent_stays_absent() -> None:
    upstream = Upstream(asks("a", requestState="1"), asks("b"), DONE)
    await driven(upstream)
    assert upstream.sent[1]["requestState"] == "1"
    assert "requestState" not in upstream.sent[2]
    assert upstream.sent[2]["inputResponses"] == {"b": {"to": "b?"}}


async def test_an_upstream_that_only_wants_to_be_asked_again_is_asked_again() -> None:
    upstream, host = Upstream({"resultType": "input_required", "requestState": ""}, DONE), Host()
    assert await driven(upstream, host) == DONE
    assert upstream.sent[1] == CALL | {"requestState": ""}
    assert host.asked == []


async def test_what_a_host_made_up_as_answers_does_not_travel_into_the_next_round() -> None:
    upstream = Upstream(asks("a"), DONE)
    await driven(upstream, inputResponses={"z": {}}, requestState="mine")
    assert upstream.sent[1] == CALL | {"inputResponses": {"a": {"to": "a?"}}}


async def test_each_kind_of_question_reaches_the_host() -> None:
    requests = {
        "e": {"method": "elicitation/create", "params": {"message": "?", "requestedSchema": {"x-kept": 1}}},
        "s": {"method": "sampling/createMessage", "params": {"messages": [], "later": None}},
        "r": {"method": "roots/list"},
    }
    upstream, host = Upstream({"resultType": "input_required", "inputRequests": requests}, DONE), Host()
    await driven(upstream, host)
    assert host.asked == [(one["method"], one.get("params", {})) for one in requests.values()]


async def test_as_many_rounds_as_there_may_be_are_driven_to_their_result() -> None:
    upstream, host = Upstream(*[asks("a", requestState=str(n)) for n in range(ROUNDS)], DONE), Host()
    assert await driven(upstream, host) == DONE
    assert len(host.asked) == ROUNDS


async def test_an_upstream_that_never_has_enough_is_stopped_before_the_host_is_asked_once_more() -> None:
    upstream, host = Upstream(asks("a")), Host()
    with pytest.raises(UpstreamGarbage, match=f"'x'.*{ROUNDS} times"):
        await driven(upstream, host)
    assert len(host.asked) == ROUNDS


@pytest.mark.parametrize("requests", [None, {}, [], "all", {"a": "?"}, {"a": {"method": None}}])
async def test_one_that_asks_for_nothing_is_garbage(requests: Any) -> None:
    upstream = Upstream({"resultType": "input_required", "inputRequests": requests})
    with pytest.raises(UpstreamGarbage, match="'x'"):
        await driven(upstream)
    assert len(upstream.sent) == 1


async def test_a_malformed_question_among_others_is_left_unanswered() -> None:
    asked = asks("a")
    asked["inputRequests"]["b"] = 3
    upstream = Upstream(asked, DONE)
    assert await driven(upstream) == DONE
    assert upstream.sent[1]["inputResponses"].keys() == {"a"}


@pytest.mark.parametrize(
    ("capabilities", "method", "params"),
    [
        ({"elicitation": {}}, "sampling/createMessage", {}),
        ({}, "roots/list", {}),
        ({"elicitation": {}}, "elicitation/create", {"mode": "url", "url": "https://example.org"}),
        ({"elicitation": {"url": {}}}, "elicitation/create", {"mode": "form"}),
        ({"elicitation": {}}, "tools/list", {}),
    ],
)
async def test_a_kind_that_the_host_lacks_is_an_error_and_nothing_is_asked(
    capabilities: dict[str, Any], method: str, params: dict[str, Any]
) -> None:
    requests = {
        "first": {"method": "elicitation/create", "params": {"message": "?"}},
        "second": {"method": method, "params": params},
    }
    upstream, host = Upstream({"resultType": "input_required", "inputRequests": requests}), Host()
    with pytest.raises(UpstreamRefused) as caught:
        await driven(upstream, host, Caller(revision="2025-11-25", capabilities=capabilities))
    assert caught.value.code == -32603
    assert "declare" in caught.value.message
    assert host.asked == []
    assert len(upstream.sent) == 1


async def test_the_hosts_error_is_the_calls() -> None:
    async def refuse(method: str, params: Mapping[str, Any]) -> dict[str, Any]:
        raise HostRefused(-1, "not today ☃", {"why": None})

    upstream = Upstream(asks("a", "b"))
    with pytest.raises(UpstreamRefused) as caught:
        await driven(upstream, Host(refuse))
    assert caught.value.wire() == {"code": -1, "message": "not today ☃", "data": {"why": None}}
    assert len(upstream.sent) == 1


async def test_a_host_that_is_silent_is_not_waited_for_without_end() -> None:
    async def hang(method: str, params: Mapping[str, Any]) -> dict[str, Any]:
        await anyio.sleep_forever()
        return {}

    with pytest.raises(UpstreamRefused, match=r"did not answer within 0\.05 s") as caught:
        await driven(Upstream(asks("a")), Host(hang), patience=0.05)
    assert caught.value.code == -32603


async def test_patience_is_for_each_round_anew() -> None:
    async def slow(method: str, params: Mapping[str, Any]) -> dict[str, Any]:
        await anyio.sleep(0.15)
        return {}

    upstream = Upstream(asks("a"), asks("a"), asks("a"), DONE)
    assert await driven(upstream, Host(slow), patience=0.3) == DONE


async def test_an_error_of_the_upstream_in_a_later_round_is_passed_on() -> None:
    refusal = UpstreamRefused("x", -32021, "needs more", {"requiredCapabilities": {}})

    async def send(params: Mapping[str, Any]) -> dict[str, Any]:
        if "inputResponses" in params:
            raise refusal
        return asks("a")

    with pytest.raises(UpstreamRefused) as caught:
        await drive(await send(CALL), send, CALL, ABLE, Host(), upstream="x", patience=5)
    assert caught.value is refusal
