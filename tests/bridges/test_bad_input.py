"""What hosts and upstreams get wrong, on purpose or not: each has one defined answer and costs nobody else anything."""

import threading
import time
import uuid
from typing import Any

import pytest

from gateway.upstream.connection.negotiate_era import PATIENCE
from tests.bridges import hosts

HANDSHAKE_HOSTS = ("handshake-stdio", "handshake-http", "handshake-sse")
BOTH_ERAS = ("handshake-stdio", "modern-stdio", "handshake-http", "modern-http")
META = "io.modelcontextprotocol/"


def text(result: dict[str, Any]) -> str:
    return "\n".join(block["text"] for block in result["content"] if block["type"] == "text")


@pytest.fixture(scope="module")
def kept(tmp_path_factory, make_bridge):
    """What the tests of this module start: gateways with little patience."""
    made = make_bridge(tmp_path_factory.mktemp("bad"))
    yield made
    made.close()


@pytest.fixture(scope="module")
def impatient(kept):
    """`impatient(kind)`: the configuration of an upstream whose hosts have 1.5 seconds, as does its tool wrong_id."""
    made: dict[tuple[str, tuple[str, ...], float], Any] = {}

    def config(kind: str, *flags: str, answer: float = 1.5) -> Any:
        if (kind, flags, answer) not in made:
            limits = {"timeout": {"answer": answer}, "tools": {"timeout": {"wrong_id": {"call": 1.5}}}}
            made[kind, flags, answer] = kept.config({"bridge": kept.upstream(kind, *flags) | limits})
        return made[kind, flags, answer]

    return config


@pytest.fixture(scope="module")
def host_on(kept, impatient):
    """`host_on(host kind, upstream kind)`: a host of the module's, on a gateway with little patience."""
    hosts: dict[Any, Any] = {}
    origins: dict[Any, str] = {}

    def connected(host_kind: str, upstream_kind: str, *flags: str, new: bool = False, **options: Any) -> Any:
        answer = options.pop("answer", 1.5)
        where = impatient(upstream_kind, *flags, answer=answer)
        if not host_kind.endswith("stdio"):
            if where not in origins:
                origins[where] = kept.gateway(where)
            where = origins[where]
        if new:
            return kept.host(host_kind, where, **options)
        key = (host_kind, where)
        if key not in hosts or hosts[key].in_trouble:
            hosts[key] = kept.host(host_kind, where, **options)
        return hosts[key]

    return connected


@pytest.fixture(params=BOTH_ERAS)
def upstream_kind(request):
    return request.param


def failure(host: Any, tool: str, **arguments: Any) -> str:
    """The words with which a call fails: an error, or a result that is one."""
    try:
        result = host.call(tool, **arguments)
    except hosts.Refused as refused:
        return refused.message
    assert result.get("isError") is True, result
    return text(result)


# ---------------------------------------------------------------------------------------------------------- upstreams


@pytest.mark.parametrize("host_kind", ["handshake-http", "modern-http"])
def test_an_answer_to_a_request_that_nobody_made_answers_nothing(host_on, host_kind, upstream_kind):
    host = host_on(host_kind, upstream_kind)
    words = failure(host, "wrong_id", seconds=5)
    assert "bridge" in words
    # Over Streamable HTTP, nothing can follow a complete response, so the failure is known at once.
    is_known = upstream_kind.endswith("-http")
    assert ("not the response to the request" if is_known else "took longer than 1.5 s") in words
    assert "for nobody" not in words
    assert host.call("counter")["structuredContent"]["count"] >= 1


@pytest.mark.parametrize("host_kind", ["handshake-http", "modern-http"])
def test_a_result_of_a_type_that_nobody_knows_is_an_error_that_names_it(host_on, host_kind, upstream_kind):
    host = host_on(host_kind, upstream_kind)
    words = failure(host, "odd_type")
    assert "surprise" in words
    assert host.call("counter")


@pytest.mark.parametrize("host_kind", HANDSHAKE_HOSTS)
@pytest.mark.parametrize("upstream_kind", ["modern-stdio", "modern-http"])
def test_an_upstream_that_never_stops_asking_is_stopped(host_on, host_kind, upstream_kind):
    host = host_on(host_kind, upstream_kind)
    before = len(host.asked)
    words = failure(host, "elicit_forever")
    assert "bridge" in words
    assert 1 < len(host.asked) - before < 100
    assert host.call("counter")


@pytest.mark.parametrize("upstream_kind", ["handshake-stdio", "handshake-http"])
def test_a_host_that_has_enough_of_being_asked_leaves_nothing_behind(host_on, upstream_kind):
    host = host_on("modern-http", upstream_kind)
    with pytest.raises(hosts.Lost, match="asked 30 times"):
        host.call("elicit_forever")
    assert host.call("counter")


@pytest.mark.parametrize("upstream_kind", ["handshake-stdio", "handshake-http"])
@pytest.mark.parametrize("host_kind", ["handshake-http", "modern-http"])
def test_an_upstream_that_ignores_what_it_does_not_know_is_reached_at_once(host_on, host_kind, upstream_kind):
    began = time.monotonic()
    host = host_on(host_kind, upstream_kind, "dumb")
    assert host.call("counter")
    assert host.call("elicit")
    assert time.monotonic() - began < PATIENCE  # which one that is asked and says nothing would take


@pytest.mark.parametrize("host_kind", ["handshake-http", "modern-http"])
def test_of_two_upstreams_that_claim_one_uri_the_first_is_read(kept, host_kind):
    config = kept.config({"a": kept.upstream("handshake-stdio"), "b": kept.upstream("modern-stdio", "other")})
    host = kept.host(host_kind, kept.gateway(config))
    listed = [resource["uri"] for resource in host.everything("resources")]
    assert {"bridge://one", "bridge://two", "bridge://other"} <= set(listed)
    assert len(listed) == len(set(listed))
    for _ in range(2):
        (contents,) = host.request("resources/read", {"uri": "bridge://one"})["contents"]
        assert contents["text"] == "one ☃"
    (contents,) = host.request("resources/read", {"uri": "bridge://other"})["contents"]
    assert contents["text"] == "bridge://other of another"


# ------------------------------------------------------------------------------------------------------- requestState


def parked(host: Any, tool: str = "elicit", **arguments: Any) -> tuple[dict[str, Any], dict[str, Any]]:
    """A call that waits for its host: its params, and the result that asks."""
    params = {"name": tool, "arguments": arguments}
    asked = host.once("tools/call", params).wait()
    assert asked["resultType"] == "input_required"
    assert asked["requestState"]
    return params, asked


def test_a_state_that_was_tampered_with_is_refused(host_on, upstream_kind):
    host = host_on("modern-http", upstream_kind, answer=60.0)
    params, asked = parked(host)
    state = asked["requestState"]
    middle = len(state) // 2
    other = "A" if state[middle] != "A" else "B"
    for changed in (state[:middle] + other + state[middle + 1 :], state[:-1], state + "A", "", "x", "☃" * 100):
        retry = host.retried(params, {**asked, "requestState": changed})
        with pytest.raises(hosts.Refused) as caught:
            host.once("tools/call", retry).wait()
        assert caught.value.code == -32602
    assert host.once("tools/call", host.retried(params, asked)).wait()["structuredContent"]


def test_a_state_of_another_call_is_refused(host_on, upstream_kind):
    host = host_on("modern-http", upstream_kind, answer=60.0)
    params, asked = parked(host, message="one")
    retry = host.retried(params, asked)
    for other in ({**retry, "name": "sample"}, {**retry, "name": "counter"}, {**retry, "arguments": {"message": "2"}}):
        with pytest.raises(hosts.Refused) as caught:
            host.once("tools/call", other).wait()
        assert caught.value.code == -32602
    assert host.once("tools/call", retry).wait()["structuredContent"]


def test_a_state_of_another_host_is_refused(host_on, upstream_kind):
    host = host_on("modern-http", upstream_kind, answer=60.0)
    thief = host_on("modern-http", upstream_kind, answer=60.0, new=True, name="thief")
    params, asked = parked(host)
    with pytest.raises(hosts.Refused) as caught:
        thief.once("tools/call", thief.retried(params, asked)).wait()
    assert caught.value.code == -32602
    answers = host.once("tools/call", host.retried(params, asked)).wait()["structuredContent"]["answers"]
    assert answers == {"form": hosts.PERSON}


@pytest.mark.parametrize("upstream_kind", ["handshake-stdio", "handshake-http", "handshake-sse"])
def test_a_state_that_has_been_used_is_refused(host_on, upstream_kind):
    host = host_on("modern-http", upstream_kind, answer=60.0)
    params, asked = parked(host)
    retry = host.retried(params, asked)
    assert host.once("tools/call", retry).wait()["structuredContent"]
    with pytest.raises(hosts.Refused) as caught:
        host.once("tools/call", retry).wait()
    assert caught.value.code == -32602


@pytest.mark.parametrize("upstream_kind", ["handshake-stdio", "handshake-http", "handshake-sse"])
def test_a_call_whose_host_does_not_come_back_is_given_up(host_on, upstream_kind):
    host = host_on("modern-http", upstream_kind)
    tag = uuid.uuid4().hex
    params, asked = parked(host, tag=tag)
    found = host.call("recorded", tag=tag, what="cancelled", seconds=10)["structuredContent"]["events"]
    assert found == ["cancelled"]
    with pytest.raises(hosts.Refused) as caught:
        host.once("tools/call", host.retried(params, asked)).wait()
    assert caught.value.code == -32602


# -------------------------------------------------------------------------------------------------------------- hosts


@pytest.mark.parametrize("host_kind", HANDSHAKE_HOSTS)
def test_a_host_that_never_answers_costs_its_own_call_and_nothing_else(host_on, host_kind, upstream_kind):
    host = host_on(host_kind, upstream_kind, new=True, answers={"elicitation/create": lambda params: hosts.NEVER})
    exchange = host.begin("elicit")
    try:
        words = text(exchange.wait())
    except hosts.Refused as refused:
        words = refused.message
    assert "did not answer within 1.5 s" in words
    assert host.call("counter")


@pytest.mark.parametrize("host_kind", HANDSHAKE_HOSTS)
def test_an_answer_that_comes_too_late_is_dropped(host_on, host_kind):
    late, told = threading.Event(), threading.Event()

    def answer(params: dict[str, Any]) -> dict[str, Any]:
        assert late.wait(20)
        told.set()
        return hosts.PERSON

    host = host_on(host_kind, "handshake-stdio", new=True, answers={"elicitation/create": answer})
    assert "answer" in text(host.begin("elicit").wait())
    late.set()
    assert told.wait(5)
    host.answers["elicitation/create"] = lambda params: hosts.PERSON
    assert host.call("elicit")["structuredContent"]["answers"] == {"form": hosts.PERSON}


@pytest.mark.parametrize(
    ("header", "value"),
    [
        ("mcp-name", "counter"),
        ("mcp-name", None),
        ("mcp-name", "=?base64?!!?="),
        ("mcp-method", "tools/list"),
        ("mcp-method", None),
        ("mcp-protocol-version", "2025-11-25"),
        ("mcp-param-region", "elsewhere"),
    ],
)
@pytest.mark.parametrize("side", ["direct", "handshake-http", "modern-http"])
def test_a_header_that_contradicts_the_body_is_refused(kept, host_on, side, header, value):
    host = kept.over("modern-http", "direct") if side == "direct" else host_on("modern-http", side)
    host.wire.overrides = {header: value}
    try:
        with pytest.raises(hosts.Refused) as caught:
            host.call("region", region="here")
    finally:
        host.wire.overrides = {}
    assert (caught.value.code, caught.value.status) == (-32020, 400)
    assert text(host.call("region", region="here")) == "here"


@pytest.mark.parametrize("host_kind", [*HANDSHAKE_HOSTS, "modern-stdio"])
def test_a_host_that_cancels_what_is_finished_costs_nothing(host_on, host_kind, upstream_kind):
    host = host_on(host_kind, upstream_kind)
    method = "notifications/cancelled"
    before = host.call("notified", method=method)
    first = host.call("counter")["structuredContent"]
    for number in range(30):
        finished = [host.begin("counter")]
        if number % 10 == 0 and host.era == "handshake":
            finished.append(host.begin("elicit", message=str(number)))
        for exchange in finished:
            exchange.wait()
            host.notify(method, {"requestId": exchange.id, "reason": "it is over"})
    assert host.call("counter")["structuredContent"] == {**first, "count": first["count"] + 31}
    assert host.call("notified", method=method)["structuredContent"] == before["structuredContent"]
    assert not host.in_trouble
