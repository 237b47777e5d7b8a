"""The four pairings of host and upstream, and what a host brings back: the upstream is played by plain functions."""

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from dataclasses import replace
from typing import Any

import anyio
import pytest

from gateway.config.upstream_settings import Timeouts, UpstreamSettings
from gateway.core.model.caller import Caller
from gateway.errors import HostRefused, InvalidRequest, UpstreamRefused
from gateway.upstream import Host
from gateway.upstream.bridging.bridge import Bridge, open_bridge
from gateway.upstream.bridging.signed_state import MARK
from gateway.upstream.connection.deadlines import CallLimits
from gateway.upstream.connection.request_context import RequestContext

pytestmark = pytest.mark.anyio

CAPABILITIES = {"elicitation": {}, "roots": {}}
OLD = Caller(revision="2025-11-25", client_name="host", capabilities=CAPABILITIES, session="1")
NEW = Caller(revision="2026-07-28", client_name="host", capabilities=CAPABILITIES)
CALL = {"name": "t", "arguments": {"a": 1}}
DONE = {"content": [], "x-kept": True}
QUESTION = ("elicitation/create", {"message": "who?", "requestedSchema": {}})
ANSWER = {"action": "accept", "content": {}}

Answering = Callable[[Mapping[str, Any], Host | None], Awaitable[dict[str, Any]]]


class Upstream:
    """One that answers by a function of the params and the host; `sent` is what it got."""

    def __init__(self, answering: Answering, name: str = "x", patience: float = 30) -> None:
        self.name = name
        self.settings = UpstreamSettings(command="x", timeout=Timeouts(answer=patience))
        self.sent: list[dict[str, Any]] = []
        self._answering = answering

    async def request(
        self,
        method: str,
        params: Mapping[str, Any],
        context: RequestContext,
        timeout: CallLimits | None = None,
    ) -> dict[str, Any]:
        self.sent.append(dict(params))
        if context.on_progress is not None:
            await context.on_progress(len(self.sent), None, None)
        return await self._answering(params, context.host)


async def handshake(params: Mapping[str, Any], host: Host | None) -> dict[str, Any]:
    """An upstream of the handshake era: it asks in the middle of its call."""
    assert host is not None
    return DONE | {"answer": await host.ask(*QUESTION)}


STATE = 'opaque "☃"\u2028'


async def modern(params: Mapping[str, Any], host: Host | None) -> dict[str, Any]:
    """A stateless upstream: it asks by its result."""
    if params.get("requestState") != STATE:
        requests = {"q": dict(zip(("method", "params"), QUESTION, strict=True))}
        return {"resultType": "input_required", "inputRequests": requests, "requestState": STATE, "_meta": {"k": 1}}
    return DONE | {"answer": params["inputResponses"]["q"]}


class AHost:
    """A host that answers everything, over a channel of its own."""

    party = "host"
    connection = None
    bounds_waiting = False

    def __init__(self) -> None:
        self.asked: list[tuple[str, dict[str, Any]]] = []
        self.progress: list[float] = []

    async def let_go(self) -> None:
        pass

    async def ask(self, method: str, params: Mapping[str, Any]) -> dict[str, Any]:
        self.asked.append((method, dict(params)))
        return ANSWER

    async def tell(self, method: str, params: Mapping[str, Any]) -> None: ...

    async def on_progress(self, progress: float, total: float | None, message: str | None) -> None:
        self.progress.append(progress)


@pytest.fixture
async def bridge() -> AsyncIterator[Bridge]:
    async with open_bridge() as made:
        yield made


async def ask(
    bridge: Bridge,
    upstream: Upstream,
    caller: Caller,
    params: Mapping[str, Any] = CALL,
    method: str = "tools/call",
    host: Any = None,
) -> dict[str, Any]:
    host = host or AHost()
    with anyio.fail_after(10):
        context = RequestContext(caller, host=host, on_progress=host.on_progress)
        return await bridge.request(upstream, method, params, context, Timeouts())


def retried(asked: Mapping[str, Any], params: Mapping[str, Any] = CALL) -> dict[str, Any]:
    """The request as the specification has a host repeat it."""
    answers = dict.fromkeys(asked["inputRequests"], ANSWER)
    return {**params, "inputResponses": answers, "requestState": asked["requestState"]}


@pytest.mark.parametrize("answering", [handshake, modern])
async def test_a_handshake_host_is_asked_by_either_era_and_gets_the_complete_result(
    bridge: Bridge, answering: Answering
) -> None:
    host = AHost()
    assert await ask(bridge, Upstream(answering), OLD, host=host) == DONE | {"answer": ANSWER}
    assert host.asked == [QUESTION]
    assert host.progress[0] == 1


@pytest.mark.parametrize("answering", [handshake, modern])
async def test_a_stateless_host_gets_the_question_of_either_era_and_comes_back(
    bridge: Bridge, answering: Answering
) -> None:
    upstream, host = Upstream(answering), AHost()
    asked = await ask(bridge, upstream, NEW, host=host)
    assert asked["resultType"] == "input_required"
    assert asked["requestState"].startswith(MARK)
    (request,) = asked["inputRequests"].values()
    assert (request["method"], request["params"]) == QUESTION
    assert await ask(bridge, upstream, NEW, retried(asked), host=host) == DONE | {"answer": ANSWER}
    assert host.asked == []


async def test_the_upstreams_own_state_comes_back_to_it_as_it_was(bridge: Bridge) -> None:
    upstream = Upstream(modern)
    asked = await ask(bridge, upstream, NEW)
    assert asked["inputRequests"].keys() == {"q"}
    assert asked["_meta"] == {"k": 1}
    assert STATE not in asked["requestState"]
    await ask(bridge, upstream, NEW, retried(asked))
    assert upstream.sent[1] == CALL | {"inputResponses": {"q": ANSWER}, "requestState": STATE}


async def test_a_question_without_a_state_gets_none(bridge: Bridge) -> None:
    asking = {"resultType": "input_required", "inputRequests": {"q": {"method": "roots/list"}}}

    async def answering(params: Mapping[str, Any], host: Host | None) -> dict[str, Any]:
        return DONE if "inputResponses" in params else asking

    upstream = Upstream(answering)
    assert await ask(bridge, upstream, NEW) == asking
    retry = CALL | {"inputResponses": {"q": ANSWER}}
    assert await ask(bridge, upstream, NEW, retry) == DONE
    assert upstream.sent[1] == retry


async def test_a_call_of_the_handshake_era_runs_once_however_often_its_host_comes_back(bridge: Bridge) -> None:
    async def answering(params: Mapping[str, Any], host: Host | None) -> dict[str, Any]:
        assert host is not None
        return {"answers": [await host.ask(*QUESTION) for _ in range(3)]}

    upstream = Upstream(answering)
    result = await ask(bridge, upstream, NEW)
    states: set[str] = set()
    while "requestState" in result:
        states.add(result["requestState"])
        result = await ask(bridge, upstream, NEW, retried(result))
    assert result == {"answers": [ANSWER] * 3}
    assert upstream.sent == [CALL]


async def test_a_state_of_a_call_that_has_gone_on_is_of_no_use_any_more(bridge: Bridge) -> None:
    upstream = Upstream(handshake)
    asked = await ask(bridge, upstream, NEW)
    await ask(bridge, upstream, NEW, retried(asked))
    with pytest.raises(InvalidRequest, match="no longer waiting"):
        await ask(bridge, upstream, NEW, retried(asked))
    assert len(upstream.sent) == 1


@pytest.mark.parametrize("answering", [handshake, modern])
@pytest.mark.parametrize(
    ("caller", "change", "name", "method"),
    [
        (replace(NEW, principal="eve"), {}, "x", "tools/call"),
        (replace(NEW, client_name="thief"), {}, "x", "tools/call"),
        (NEW, {"name": "other"}, "x", "tools/call"),
        (NEW, {"arguments": {"a": 2}}, "x", "tools/call"),
        (NEW, {}, "y", "tools/call"),
        (NEW, {}, "x", "prompts/get"),
    ],
)
async def test_a_state_is_for_its_caller_its_upstream_and_its_request(
    bridge: Bridge, answering: Answering, caller: Caller, change: dict[str, Any], name: str, method: str
) -> None:
    upstream = Upstream(answering)
    asked = await ask(bridge, upstream, NEW)
    other = Upstream(answering, name)
    with pytest.raises(InvalidRequest, match="requestState"):
        await ask(bridge, other, caller, retried(asked) | change, method)
    assert other.sent == []
    assert (await ask(bridge, upstream, NEW, retried(asked)))["answer"] == ANSWER


@pytest.mark.parametrize("state", ["", "theirs", STATE, MARK, MARK + "AAAA", 3, {"a": 1}, [], True])
async def test_a_state_that_is_not_ours_is_refused_before_the_upstream_hears_of_it(bridge: Bridge, state: Any) -> None:
    upstream = Upstream(modern)
    with pytest.raises(InvalidRequest, match="requestState") as caught:
        await ask(bridge, upstream, NEW, CALL | {"requestState": state, "inputResponses": {}})
    assert "without requestState" in (caught.value.remedy or "")
    assert upstream.sent == []


@pytest.mark.parametrize("answers", [None, [], "yes", {"unknown": ANSWER}])
async def test_malformed_answers_are_no_answers(bridge: Bridge, answers: Any) -> None:
    upstream = Upstream(handshake)
    asked = await ask(bridge, upstream, NEW)
    again = await ask(bridge, upstream, NEW, retried(asked) | {"inputResponses": answers})
    assert again["inputRequests"] == asked["inputRequests"]
    assert (await ask(bridge, upstream, NEW, retried(again)))["answer"] == ANSWER


async def test_a_host_that_declared_nothing_is_not_parked_for(bridge: Bridge) -> None:
    plain = replace(NEW, capabilities={"extensions": {}})

    async def answering(params: Mapping[str, Any], host: Host | None) -> dict[str, Any]:
        assert isinstance(host, AHost)
        return DONE

    assert await ask(bridge, Upstream(answering), plain) == DONE


async def test_what_may_not_ask_is_just_sent(bridge: Bridge) -> None:
    async def answering(params: Mapping[str, Any], host: Host | None) -> dict[str, Any]:
        assert isinstance(host, AHost)
        return DONE

    for caller in (OLD, NEW):
        upstream = Upstream(answering)
        assert await ask(bridge, upstream, caller, {"ref": {}, "requestState": "x"}, "completion/complete") == DONE


async def test_without_a_host_there_is_nobody_to_ask(bridge: Bridge) -> None:
    async def answering(params: Mapping[str, Any], host: Host | None) -> dict[str, Any]:
        assert host is None
        return DONE

    for caller in (OLD, NEW):
        assert await bridge.request(Upstream(answering), "tools/call", CALL, RequestContext(caller), Timeouts()) == DONE


async def test_without_a_parking_a_stateless_upstream_still_asks() -> None:
    bridge, upstream = Bridge(), Upstream(modern)
    asked = await ask(bridge, upstream, NEW)
    assert (await ask(bridge, upstream, NEW, retried(asked)))["answer"] == ANSWER


@pytest.mark.parametrize("caller", [OLD, NEW])
async def test_an_error_of_the_upstream_comes_through_unchanged(bridge: Bridge, caller: Caller) -> None:
    refusal = UpstreamRefused("x", -32021, "needs sampling", {"requiredCapabilities": {"sampling": {}}})

    async def answering(params: Mapping[str, Any], host: Host | None) -> dict[str, Any]:
        raise refusal

    with pytest.raises(UpstreamRefused) as caught:
        await ask(bridge, Upstream(answering), caller)
    assert caught.value is refusal


async def test_a_handshake_upstream_is_told_that_a_stateless_host_lacks_something(bridge: Bridge) -> None:
    async def answering(params: Mapping[str, Any], host: Host | None) -> dict[str, Any]:
        assert host is not None
        with pytest.raises(HostRefused):
            await host.ask("sampling/createMessage", {"messages": []})
        return DONE

    assert await ask(bridge, Upstream(answering), NEW) == DONE


async def test_patience_is_the_upstreams_setting(bridge: Bridge) -> None:
    given_up = anyio.Event()

    async def answering(params: Mapping[str, Any], host: Host | None) -> dict[str, Any]:
        try:
            return await handshake(params, host)
        finally:
            given_up.set()

    upstream = Upstream(answering, patience=0.05)
    asked = await ask(bridge, upstream, NEW)
    with anyio.fail_after(30):
        await given_up.wait()
    with pytest.raises(InvalidRequest):
        await ask(bridge, upstream, NEW, retried(asked))


@pytest.mark.parametrize("method", ["prompts/get", "resources/read"])
async def test_prompts_and_resources_may_ask_too(bridge: Bridge, method: str) -> None:
    params = {"name": "p", "arguments": {}} if method == "prompts/get" else {"uri": "x://☃"}
    for answering in (handshake, modern):
        for caller in (OLD, NEW):
            upstream = Upstream(answering)
            result = await ask(bridge, upstream, caller, params, method)
            if "requestState" in result:
                result = await ask(bridge, upstream, caller, retried(result, params), method)
            assert result["answer"] == ANSWER


async def test_leaving_gives_up_every_call_that_waits() -> None:
    given_up = anyio.Event()

    async def answering(params: Mapping[str, Any], host: Host | None) -> dict[str, Any]:
        try:
            return await handshake(params, host)
        finally:
            given_up.set()

    with anyio.fail_after(30):
        async with open_bridge() as bridge:
            await ask(bridge, Upstream(answering), NEW)
            assert not given_up.is_set()
    assert given_up.is_set()


async def test_two_hosts_that_wait_at_once_get_their_own_calls_back(bridge: Bridge) -> None:
    async def answering(params: Mapping[str, Any], host: Host | None) -> dict[str, Any]:
        return await handshake(params, host) | {"of": params["arguments"]["a"]}

    upstream = Upstream(answering)
    ann, eve = replace(NEW, client_name="ann"), replace(NEW, client_name="eve")
    first, second = CALL | {"arguments": {"a": 1}}, CALL | {"arguments": {"a": 2}}
    of_ann, of_eve = await ask(bridge, upstream, ann, first), await ask(bridge, upstream, eve, second)
    assert (await ask(bridge, upstream, eve, retried(of_eve, second)))["of"] == 2
    assert (await ask(bridge, upstream, ann, retried(of_ann, first)))["of"] == 1


@pytest.mark.parametrize("caller", [NEW, replace(NEW, session="1")])
async def test_what_is_part_of_another_request_of_a_stateless_host_never_asks_it(caller: Caller) -> None:
    async with open_bridge() as bridge:
        context = RequestContext(caller, host=AHost(), is_part=True)
        with pytest.raises(UpstreamRefused, match="needs input"):
            await bridge.request(Upstream(modern), "resources/read", {"uri": "x://y"}, context)


async def test_what_is_part_of_another_request_of_an_older_host_asks_it() -> None:
    async with open_bridge() as bridge:
        host = AHost()
        context = RequestContext(OLD, host=host, is_part=True)
        result = await bridge.request(Upstream(modern), "resources/read", {"uri": "x://y"}, context)
        assert result["answer"] == ANSWER
        assert host.asked
