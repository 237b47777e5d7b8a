"""What has to work for every host on every upstream: both eras, every transport on both sides.

Where host and upstream speak one era, the host is put on the upstream without a gateway too (`direct`): that is the
proof that a test asks for no more than an upstream gives.
"""

import json
import uuid
from collections.abc import Callable
from typing import Any

import pytest

from tests.bridges import hosts
from tests.servers import bridge_server

HOSTS = ("handshake-stdio", "handshake-http", "handshake-sse", "modern-stdio", "modern-http")
UPSTREAMS = (
    *("handshake-stdio", "handshake-http", "handshake-sse", "modern-stdio", "modern-http"),
    *("both-stdio", "both-http"),
)
ROUNDS = 20
"""What was cancelled, which nothing confirms, may be told of a few times before its end has arrived."""
PAIRINGS = [(host, upstream) for host in HOSTS for upstream in ("direct", *UPSTREAMS)]
META = "io.modelcontextprotocol/"


def era_of(pairing: tuple[str, str]) -> str:
    """The era that the upstream is spoken to in: the host's own, where it speaks both."""
    host, upstream = (kind.split("-")[0] for kind in pairing)
    return host if upstream in ("both", "direct") else upstream


def only(condition: Callable[[str, str], bool]) -> Callable[[Any], Any]:
    """The pairings that a test is about: those of which (kind of host, era of upstream) holds."""

    def marked(test: Any) -> Any:
        test.pairings = [pairing for pairing in PAIRINGS if condition(pairing[0], era_of(pairing))]
        return test

    return marked


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    chosen = getattr(metafunc.function, "pairings", PAIRINGS)
    metafunc.parametrize("pairing", chosen, ids=[f"{host}-on-{upstream}" for host, upstream in chosen])


def text(result: dict[str, Any]) -> str:
    return "\n".join(block["text"] for block in result["content"] if block["type"] == "text")


def tag() -> str:
    return uuid.uuid4().hex


def without(value: dict[str, Any], *keys: str) -> dict[str, Any]:
    return {key: one for key, one in value.items() if key not in keys}


def told(value: Any, pairing: tuple[str, str]) -> Any:
    """As hosts are told it: the uris of pages (MCP Apps) have the upstream's name in front, and all else stays."""
    return value if pairing[1] == "direct" else json.loads(json.dumps(value).replace('"ui://', '"ui://bridge/'))


# -------------------------------------------------------------------------------------------------------------- lists


@pytest.mark.parametrize("kind", ["tools", "resources", "templates", "prompts"])
def test_a_list_has_every_entry_of_every_page_as_it_was_written(host, pairing, kind):
    expected = getattr(bridge_server, kind.upper())
    if host.era == "handshake" and pairing[1] != "direct":  # an output schema is of an object there
        expected = [one if one["name"] != "structured" else without(one, "outputSchema") for one in expected]
    listed = [one for one in host.everything(kind) if not one["name"].startswith("extra_")]
    assert listed == told(expected, pairing)


def test_the_era_is_the_hosts_own_where_the_upstream_speaks_both(host, pairing):
    seen = host.call("echo_client")["structuredContent"]
    assert seen["era"] == era_of(pairing)


def test_the_upstream_is_shown_the_client_and_the_capabilities_of_the_host_in_front(host, pairing):
    seen = host.call("echo_client")["structuredContent"]
    assert seen["client"]["name"] == "bridge-host"
    assert seen["client"]["version"] == "9.1"
    expected = hosts.CAPABILITIES
    if host.era == "modern" and era_of(pairing) == "handshake":  # it has no way to say that its roots have changed
        expected = {**expected, "roots": {}}
    assert seen["capabilities"] == expected


def test_the_instructions_of_the_upstream_reach_the_host(host, pairing):
    assert "The bridge is to be crossed slowly. ☃" in host.server["instructions"]


def test_the_capabilities_of_the_upstream_are_offered(host, pairing):
    offered = host.server["capabilities"]
    for kind in ("tools", "resources", "prompts"):
        assert offered[kind]["listChanged"] is True
    assert offered["resources"]["subscribe"] is True
    assert "completions" in offered
    assert ("logging" in offered) or host.era == "modern"


# -------------------------------------------------------------------------------------------------------------- calls


@pytest.mark.parametrize(
    "kind",
    ["text", "image", "audio", "embedded_text", "embedded_blob", "link", "unknown_type", "unknown_fields"],
)
def test_a_block_of_every_kind_comes_through(host, pairing, kind):
    assert host.call("content", kind=kind)["content"] == [bridge_server.BLOCKS[kind]]


def test_a_result_of_many_blocks_keeps_their_order_and_what_stands_beside_them(host, pairing):
    result = host.call("content")
    assert result["content"] == list(bridge_server.BLOCKS.values())
    assert result["later"] == [1, {"two": 3}]
    assert result["_meta"]["example.org/deep"] == {"a": [1]}
    assert result["_meta"]["example.org/trace"] is None


def test_a_result_that_is_an_error_of_the_tool_stays_one(host, pairing):
    result = host.call("failing")
    assert result["isError"] is True
    assert result["content"] == [bridge_server.BLOCKS["text"], bridge_server.BLOCKS["image"]]


@pytest.mark.parametrize("kind", ["object", "array", "scalar", "null"])
def test_structured_content_comes_through(host, pairing, kind):
    result = host.call("structured", kind=kind)
    if kind == "object" or host.era == "modern" or pairing[1] == "direct":
        assert result["structuredContent"] == bridge_server.STRUCTURED[kind]
    else:  # an object until 2026-07-28; the text says it too
        assert "structuredContent" not in result
    assert text(result) == bridge_server.json.dumps(bridge_server.STRUCTURED[kind])


def test_arguments_come_through_as_they_are(host, pairing):
    arguments = {"deep": {"none": None, "list": [1, 2.5, "☃\u2028"]}, "big": 12345678901234567890, "": ""}
    assert host.call("echo", **arguments)["structuredContent"]["arguments"] == arguments


def test_a_value_that_is_mirrored_into_a_header_arrives(host, pairing):
    assert text(host.call("region", region="Zürich")) == "Zürich"


# ------------------------------------------------------------------------------------------------------ resources


def test_resources_are_read_whether_they_are_listed_or_not(host, pairing):
    for uri in ("bridge://one", "bridge://bytes", "bridge://two"):
        assert host.request("resources/read", {"uri": uri})["contents"] == bridge_server.CONTENTS[uri]
    for uri in ("bridge://unlisted/made", "bridge://rows/users", "bridge://umlaut/ä b"):
        (contents,) = host.request("resources/read", {"uri": uri})["contents"]
        assert contents == {"uri": uri, "mimeType": "text/plain", "text": f"read {uri}", "future": {"kept": True}}


def test_an_app_of_a_tool_is_found_under_the_uri_that_the_tool_names(host, pairing):
    panel = next(tool for tool in host.everything("tools") if tool["name"] == "panel")
    uri = panel["_meta"]["ui"]["resourceUri"]
    assert uri == told("ui://bridge/panel", pairing)
    (contents,) = host.request("resources/read", {"uri": uri})["contents"]
    assert contents == told(bridge_server.CONTENTS["ui://bridge/panel"][0], pairing)


def test_a_resource_that_is_not_there_is_an_error_of_the_hosts_era(host, pairing):
    with pytest.raises(hosts.Refused) as caught:
        host.request("resources/read", {"uri": "bridge://none"})
    assert caught.value.code == (-32602 if host.era == "modern" else -32002)
    assert "bridge://none" in caught.value.message


# ------------------------------------------------------------------------------------------- prompts and completions


def test_a_prompt_takes_its_arguments(host, pairing):
    got = host.request("prompts/get", {"name": "greet", "arguments": {"name": "Änne", "tongue": "Platt"}})
    assert got["description"] == "A greeting"
    assert got["messages"][0]["content"]["text"] == "Greet Änne in Platt."


def test_a_prompt_gives_messages_of_every_block_kind(host, pairing):
    got = host.request("prompts/get", {"name": "every_block"})
    assert [message["content"] for message in got["messages"]] == list(bridge_server.BLOCKS.values())
    assert {message["future"] for message in got["messages"]} == {1}
    assert got["x-future"] == [None]


def test_a_prompt_that_is_refused_is_refused_with_the_upstreams_words(host, pairing):
    with pytest.raises(hosts.Refused) as caught:
        host.request("prompts/get", {"name": "greet", "arguments": {}})
    assert (caught.value.code, caught.value.data) == (-32602, {"missing": ["name"]})
    with pytest.raises(hosts.Refused) as caught:
        host.request("prompts/get", {"name": "no_such_prompt"})
    assert caught.value.code == -32602


@pytest.mark.parametrize(
    "ref", [{"type": "ref/prompt", "name": "greet"}, {"type": "ref/resource", "uri": "bridge://rows/{table}"}]
)
def test_a_completion_is_of_the_right_thing_and_knows_its_context(host, pairing, ref):
    argument = {"name": "name", "value": "ann"}
    asked = {"ref": ref, "argument": argument, "context": {"arguments": {"tongue": "Platt"}}}
    completion = host.request("completion/complete", asked)["completion"]
    of = ref.get("name") or ref["uri"]
    assert completion["values"] == [f"{of}|name|anna|Platt", f"{of}|name|annika|Platt"]
    assert (completion["total"], completion["hasMore"]) == (17, True)


# ------------------------------------------------------------------------------ progress, logs, cancellation, ping


def test_progress_arrives_in_order_before_the_result(host, pairing):
    exchange = host.begin("steps", count=5)
    exchange.wait()
    assert exchange.progress == [
        {"progress": step / 2, "total": 2.5, "message": f"step {step} ☃"} for step in range(1, 6)
    ]


@pytest.mark.parametrize("level", ["debug", "warning", "emergency"])
def test_log_messages_arrive_from_the_level_on_that_was_asked_for(host, pairing, level):
    host.log_from(level)
    since = len(host.heard)
    try:
        host.call("chatter")
        wanted = bridge_server.LEVELS[bridge_server.LEVELS.index(level) :]
        host.hears("notifications/message", lambda told: told["level"] == "emergency", since=since)
        told = [without(one, "_meta") for one in host.told("notifications/message", since)]
        assert told == [
            {"level": one, "logger": "bridge.chatter", "data": {"said": one, "deep": [None, 1.5]}} for one in wanted
        ]
    finally:
        host.log_from(None)


def test_a_modern_host_that_asked_for_no_log_messages_gets_none(host, pairing):
    if host.era == "handshake":
        host.log_from("emergency")
    since = len(host.heard)
    host.call("chatter")
    told = host.told("notifications/message", since)
    assert [one["level"] for one in told] == (["emergency"] if host.era == "handshake" else [])


def test_the_upstream_learns_that_a_call_was_cancelled(host, pairing):
    mark = tag()
    exchange = host.begin("slow", tag=mark)
    host.until(lambda: exchange.progress or None, "progress", 15)
    exchange.cancel()
    found = host.call("recorded", tag=mark, what="cancelled")["structuredContent"]["events"]
    assert found == ["started", "cancelled"]


def test_the_upstream_learns_that_a_call_was_cancelled_after_it_had_asked(host, pairing):
    mark = tag()
    if host.era == "handshake":
        exchange = host.begin("elicit_then_slow", tag=mark)
    else:
        params = {"name": "elicit_then_slow", "arguments": {"tag": mark}}
        first = host.once("tools/call", params).wait()
        exchange = host.once("tools/call", host.retried(params, first))
    started = host.call("recorded", tag=mark, what="started")["structuredContent"]["events"]
    assert started == ["started"]
    exchange.cancel()
    found = host.call("recorded", tag=mark, what="cancelled")["structuredContent"]["events"]
    assert found == ["started", "cancelled"]


@only(lambda host, era: host.startswith("handshake") and era == "handshake")
def test_the_upstream_learns_that_a_call_was_cancelled_while_it_waited_for_the_host(host, pairing):
    mark = tag()
    host.answers["elicitation/create"] = lambda params: hosts.NEVER
    since = len(host.asked)
    exchange = host.begin("elicit", tag=mark)
    host.is_asked("elicitation/create", since=since)
    exchange.cancel()
    found = host.call("recorded", tag=mark, what="cancelled")["structuredContent"]["events"]
    assert found == ["cancelled"]


@only(lambda host, era: host.startswith("handshake") and era == "modern")
def test_a_call_that_a_host_cancels_while_it_is_asked_goes_no_further(host, pairing):
    mark = tag()
    host.answers["elicitation/create"] = lambda params: hosts.NEVER
    since = len(host.asked)
    exchange = host.begin("elicit", tag=mark)
    host.is_asked("elicitation/create", since=since)
    exchange.cancel()
    assert host.call("recorded", tag=mark)["structuredContent"]["events"] == []


def test_ping_is_answered(host, pairing):
    if host.era == "handshake":
        assert host.request("ping") == {}
        return
    with pytest.raises(hosts.Refused) as caught:
        host.request("ping")
    assert caught.value.code == -32601


# ------------------------------------------------------------------------------------------------------ announcements


@pytest.mark.parametrize("kind", ["tools", "resources", "prompts"])
def test_a_changed_list_is_announced_and_shows_the_change(host, pairing, kind):
    host.listen()
    since = len(host.heard)
    name = text(host.call("change", kind=kind))
    listed: set[str] = set()
    while name not in listed:  # there may be an announcement for each session that the gateway has there
        host.hears(f"notifications/{kind}/list_changed", since=since)
        since = len(host.heard)
        listed = {one["name"] for one in host.everything(kind)}


@pytest.mark.parametrize("kind", ["tools", "resources", "prompts"])
def test_what_an_upstream_announces_goes_on_to_the_host_though_its_list_is_the_same(host, pairing, kind):
    host.listen()
    host.call("change", kind=kind)  # what went before is told by now
    host.hears(f"notifications/{kind}/list_changed")
    for _ in range(2):
        since = len(host.heard)
        host.call("change", kind=kind, only_said=True)
        host.hears(f"notifications/{kind}/list_changed", since=since, seconds=30)


def test_an_updated_resource_is_announced_to_whoever_subscribed_to_it(host, pairing):
    uri, other = f"bridge://rows/{tag()}", f"bridge://rows/{tag()}"
    host.listen(uri)
    since = len(host.heard)
    host.call("touch", uri=other)
    host.call("touch", uri=uri)
    told = host.hears("notifications/resources/updated", since=since)
    assert told["uri"] == uri
    assert [one["uri"] for one in host.told("notifications/resources/updated", since)] == [uri]


def test_a_resource_that_was_unsubscribed_from_is_not_announced_any_more(host, pairing):
    uri, other = f"bridge://rows/{tag()}", f"bridge://rows/{tag()}"
    host.listen(uri)
    if host.era == "handshake":
        host.request("resources/unsubscribe", {"uri": uri})
    host.listen(other)
    for _ in range(ROUNDS):
        since = len(host.heard)
        host.call("touch", uri=uri)
        host.call("touch", uri=other)
        host.hears("notifications/resources/updated", lambda params: params["uri"] == other, since=since)
        if [one["uri"] for one in host.told("notifications/resources/updated", since)] == [other]:
            return
    raise AssertionError(f"{uri} is still announced")


def test_a_resource_that_is_not_listed_can_be_subscribed_to(host, pairing):
    uri = f"bridge://unlisted/{tag()}"
    host.listen(uri)
    since = len(host.heard)
    host.call("touch", uri=uri)
    assert host.hears("notifications/resources/updated", since=since)["uri"] == uri


def test_what_belongs_to_a_subscription_is_marked_for_a_modern_host_alone(host, pairing):
    uri = f"bridge://rows/{tag()}"
    host.listen(uri)
    since = len(host.heard)
    host.call("touch", uri=uri)
    told = host.hears("notifications/resources/updated", since=since)
    assert (META + "subscriptionId" in told.get("_meta", {})) == (host.era == "modern")


# ----------------------------------------------------------------------------------------------- what upstreams ask


def test_a_form_is_shown_to_the_host_and_its_answer_comes_back(host, pairing):
    since = len(host.asked)
    result = host.call("elicit", message="Wer?")
    ((method, params, _),) = host.asked[since:]
    assert method == "elicitation/create"
    assert without(params, "_meta", "mode") == {**bridge_server.FORM, "message": "Wer?"}
    assert params.get("mode", "form") == "form"
    assert result["structuredContent"]["answers"] == {"form": hosts.PERSON}


@pytest.mark.parametrize("action", ["decline", "cancel"])
def test_a_form_that_nobody_fills_in_says_so_to_the_upstream(host, pairing, action):
    host.answers["elicitation/create"] = lambda params: {"action": action}
    assert host.call("elicit")["structuredContent"]["answers"] == {"form": {"action": action}}


def test_a_question_without_a_state_is_answered_without_one(host, pairing):
    assert host.call("elicit_stateless")["structuredContent"]["answers"] == {"form": hosts.PERSON}


def test_a_page_is_shown_to_the_host_and_its_completion_announced(host, pairing):
    since, heard = len(host.asked), len(host.heard)
    result = host.call("elicit_url")
    ((_, params, _),) = host.asked[since:]
    assert (params["mode"], params["message"]) == ("url", "Sign in")
    assert params["url"] == "https://example.org/sign?in=☃"
    assert isinstance(params.get("elicitationId"), str) == (host.era == "handshake")
    assert result["structuredContent"]["answers"] == {"page": {"action": "accept"}}
    if host.era == "handshake" and era_of(pairing) == "handshake":
        told = host.hears("notifications/elicitation/complete", since=heard)
        assert told["elicitationId"] == params["elicitationId"]


@pytest.mark.parametrize("tools", [False, True])
def test_sampling_keeps_images_tools_and_the_name_of_the_model(host, pairing, tools):
    since = len(host.asked)
    result = host.call("sample", tools=tools)
    ((method, params, _),) = host.asked[since:]
    assert method == "sampling/createMessage"
    assert without(params, "_meta") == bridge_server.SAMPLE | (bridge_server.SAMPLE_TOOLS if tools else {})
    assert result["structuredContent"]["answers"] == {"sample": hosts.SAMPLED}


def test_a_call_may_ask_again_with_what_it_was_answered(host, pairing):
    since = len(host.asked)
    result = host.call("sample_twice")
    assert [params["systemPrompt"] for _, params, _ in host.asked[since:]] == ["Be brief.", "You said a pixel ☃"]
    assert result["structuredContent"]["answers"] == [hosts.SAMPLED, hosts.SAMPLED]


def test_roots_are_those_of_the_host(host, pairing):
    assert host.call("roots")["structuredContent"]["answers"] == {"roots": hosts.ROOTS}


def test_several_questions_of_one_call_are_all_answered(host, pairing):
    answers = host.call("all_at_once")["structuredContent"]["answers"]
    assert answers == {"form": hosts.PERSON, "sample": hosts.SAMPLED, "roots": hosts.ROOTS}


@only(lambda host, era: host.startswith("handshake"))  # a modern host that will not answer does not try again
def test_a_host_that_refuses_an_answer_costs_the_call_and_nothing_else(host, pairing):

    def refuse(params):
        raise hosts.Refused(-1, "the person has left")

    host.answers["sampling/createMessage"] = refuse
    exchange = host.begin("sample")
    try:
        told = text(exchange.wait())
    except hosts.Refused as refused:
        told = refused.message
    assert "the person has left" in told
    assert host.call("counter")


@only(lambda host, era: host == "handshake-http")  # the others have one stream, or ask in the result
def test_a_host_is_asked_on_the_stream_of_its_call(host, pairing):
    since = len(host.asked)
    exchange = host.begin("elicit")
    exchange.wait()
    assert [stream for _, _, stream in host.asked[since:]] == [f"call {exchange.id}"]


# ------------------------------------------------------------------------------------------------------------- errors


@pytest.mark.parametrize(
    ("code", "data"),
    [
        (-32602, {"argument": "x"}),
        (-32603, None),
        (-32000, ["a", None]),
        (-32042, {"elicitations": [{"mode": "url", "url": "https://example.org/x", "elicitationId": "1"}]}),
        (-1, "text"),
        (12345, {"deep": {"kept": None}}),
    ],
)
def test_an_error_keeps_its_code_its_words_and_its_data(host, pairing, code, data):
    with pytest.raises(hosts.Refused) as caught:
        host.call("fail", code=code, message="no bridge ☃", data=data)
    assert (caught.value.code, caught.value.message, caught.value.data) == (code, "no bridge ☃", data)


def test_a_capability_that_is_missing_is_said_by_the_upstream_itself(host, pairing):
    with pytest.raises(hosts.Refused) as caught:
        host.call("needs")
    assert caught.value.code == -32021
    assert caught.value.message == "Missing required client capability: sampling"
    assert caught.value.data == {"requiredCapabilities": {"sampling": {"tools": {}}}, "x-future": [None, "☃"]}
    if pairing[0] == "modern-http":
        assert caught.value.status == 400


def test_a_tool_that_is_not_there_is_an_error(host, pairing):
    with pytest.raises(hosts.Refused) as caught:
        host.call("no_such_tool")
    assert caught.value.code == -32602
    assert "no_such_tool" in caught.value.message


def test_a_method_that_nobody_knows_is_an_error(host, pairing):
    with pytest.raises(hosts.Refused) as caught:
        host.request("no/such/method")
    assert caught.value.code == -32601


# -------------------------------------------------------------------------------------------------------------- _meta


def test_meta_passes_but_for_what_belongs_to_one_hop(host, pairing):
    given = {
        "traceparent": "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
        "tracestate": "vendor=1",
        "baggage": "user=änne",
        "example.org/mine": {"deep": [None]},
    }
    seen = host.call("echo_meta", meta=given)["structuredContent"]["meta"]
    assert {key: seen.get(key) for key in given} == given
    modern = {META + "protocolVersion", META + "clientInfo", META + "clientCapabilities"}
    rest = set(seen) - set(given) - {"progressToken"}
    if host.era == "handshake" and era_of(pairing) == "modern":
        rest -= {META + "logLevel"}  # what the host has set for its session
    assert rest == (modern if era_of(pairing) == "modern" else set())


@only(lambda host, era: not host.endswith("stdio"))  # it takes a process more, and has no part in it
def test_a_host_without_capabilities_is_not_asked_for_anything(bridge, pairing):
    host_kind, upstream_kind = pairing
    options: dict[str, Any] = {"capabilities": {}, "name": "poor-host"}
    if upstream_kind == "direct":
        host = bridge.direct(host_kind, **options)
    else:
        host = bridge.host(host_kind, bridge.where(*pairing), **options)
    try:
        assert host.call("echo_client")["structuredContent"]["capabilities"] == {}
        for tool in ("elicit", "elicit_url", "sample", "roots"):
            if era_of(pairing) == "modern":
                with pytest.raises(hosts.Refused) as caught:
                    host.call(tool)
                assert caught.value.code == -32021
                assert "requiredCapabilities" in caught.value.data
            else:
                assert "cannot be asked" in text(host.call(tool))
        assert host.asked == []
    finally:
        bridge.close_host(host)
