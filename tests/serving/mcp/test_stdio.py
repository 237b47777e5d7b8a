"""A host on stdio: a real child process, raw lines."""

import json
import os
import signal
import subprocess
import sys

import anyio
import pytest
from mcp import Client

from tests.servers.downstream_service import STRANGE, TOOLS

REVISIONS = ("2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25")
SERVER_INFO = {"name": "sample", "version": "1.0", "title": "Sample"}
OFFERED = {
    "tools": {"listChanged": True},
    "resources": {"listChanged": True, "subscribe": True},
    "prompts": {"listChanged": True},
    "completions": {},
    "logging": {},
    "extensions": {"io.modelcontextprotocol/ui": {}, "io.modelcontextprotocol/skills": {"directoryRead": True}},
}


def opened(host, wire, revision="2025-06-18"):
    host.ask(wire.initialize(revision))
    host.send(wire.notification("notifications/initialized"))
    return host


@pytest.mark.parametrize("revision", REVISIONS)
def test_every_handshake_revision_lists_calls_and_reads(stdio_host, wire, revision):
    host = stdio_host()
    assert host.ask(wire.initialize(revision))["result"] == {
        "protocolVersion": revision,
        "capabilities": OFFERED,
        "serverInfo": SERVER_INFO,
        "instructions": "Be kind.",
    }
    host.send(wire.notification("notifications/initialized"))
    assert host.ask(wire.request(1, "tools/list"))["result"] == {"tools": TOOLS}
    assert host.ask(wire.request("two", "tools/call", {"name": "strange"}))["result"] == STRANGE
    assert host.ask(wire.request(3, "resources/read", {"uri": "note://one"}))["result"] == {
        "contents": [{"uri": "note://one", "mimeType": "text/plain", "text": "one", "future": True}]
    }
    assert host.ask(wire.request(4, "resources/list"))["result"]["resources"][0]["uri"] == "note://one"
    assert host.ask(wire.request(5, "resources/templates/list"))["result"] == {"resourceTemplates": []}
    assert host.ask(wire.request(6, "ping"))["result"] == {}


def test_a_host_of_2026_lists_calls_and_reads_without_a_handshake(stdio_host, wire):
    host = stdio_host()
    complete = {"resultType": "complete", "_meta": {"io.modelcontextprotocol/serverInfo": SERVER_INFO}}
    kept = {"ttlMs": 0, "cacheScope": "private"}
    assert host.ask(wire.request(1, "server/discover", wire.modern()))["result"] == {
        "supportedVersions": ["2026-07-28"],
        "capabilities": {**OFFERED, "extensions": {**OFFERED["extensions"], "io.modelcontextprotocol/tasks": {}}},
        "instructions": "Be kind.",
        **complete,
        **kept,
    }
    listed = host.ask(wire.request(2, "tools/list", wire.modern()))["result"]
    assert listed == {"tools": TOOLS, **complete, **kept}
    called = host.ask(wire.request(3, "tools/call", wire.modern({"name": "strange"})))["result"]
    meta = {**STRANGE["_meta"], **complete["_meta"]}
    assert called == {**STRANGE, "resultType": "complete", "_meta": meta}
    read = host.ask(wire.request(4, "resources/read", wire.modern({"uri": "note://one"})))["result"]
    assert read["contents"][0]["text"] == "one"
    assert {key: read[key] for key in kept} == kept
    assert host.ask(wire.request(5, "ping", wire.modern()))["error"]["code"] == -32601


@pytest.mark.anyio
@pytest.mark.parametrize("mode", ["auto", "legacy", "2026-07-28"])
async def test_the_sdk_client_lists_calls_and_reads(stdio_command, mode):
    with anyio.fail_after(30):
        async with Client(stdio_command, mode=mode, cache=None) as client:
            assert [tool.name for tool in (await client.list_tools()).tools][:2] == ["echo", "wait"]
            assert (await client.call_tool("count", {})).content[0].model_dump()["text"] == "nobody asked"
            assert (await client.read_resource("note://one")).contents[0].model_dump()["text"] == "one"


def test_initialize_after_a_lone_discover_is_accepted(stdio_host, wire):
    host = stdio_host()
    host.ask(wire.request(1, "server/discover", wire.modern()))
    assert host.ask(wire.initialize("2025-11-25", 2))["result"]["protocolVersion"] == "2025-11-25"
    host.send(wire.notification("notifications/initialized"))
    assert (
        host.ask(wire.request(3, "tools/call", {"name": "who"}))["result"]["structuredContent"]["client_name"]
        == "Tester"
    )


def test_a_discover_and_an_initialize_that_queued_during_a_late_start_are_both_answered(stdio_host, wire):
    """@ai-sdk/mcp gives up on its discover after a second and goes on with initialize on the same pipe."""
    host = stdio_host("--late", "0.5")
    host.send(wire.request(1, "server/discover", wire.modern()), wire.initialize("2025-11-25", 2))
    host.send(wire.notification("notifications/initialized"), wire.request(3, "tools/list"))
    assert [host.receive()["id"] for _ in range(3)] == [1, 2, 3]


@pytest.fixture
def gate():
    """A pipe: reading end, and writing end."""
    reading, writing = os.pipe()
    yield reading, writing
    os.close(reading)
    os.close(writing)


def test_the_opening_is_answered_while_the_service_still_starts(stdio_host, wire, gate):
    host = stdio_host("--hold", str(gate[0]), pass_fds=(gate[0],))
    host.send(wire.request("early", "ping"), wire.initialize(), wire.notification("notifications/initialized"))
    host.send(wire.request(1, "tools/call", {"name": "who"}), wire.request(2, "ping"))
    assert [host.receive()["id"] for _ in range(3)] == ["early", 0, 2]
    os.write(gate[1], b"go")
    assert host.receive()["id"] == 1


def test_the_service_is_told_how_long_a_request_has_waited_for_it(stdio_host, wire, gate):
    host = stdio_host("--hold", str(gate[0]), "--passed", "7", pass_fds=(gate[0],))
    host.send(wire.initialize(), wire.notification("notifications/initialized"))
    host.send(wire.request(1, "tools/call", {"name": "waited"}), wire.request(2, "ping"))
    assert [host.receive()["id"] for _ in range(2)] == [0, 2]  # so all of it has arrived
    os.write(gate[1], b"go")
    assert host.receive()["result"]["structuredContent"] == {"seconds": 7}
    assert host.ask(wire.request(3, "tools/call", {"name": "waited"}))["result"]["structuredContent"] == {"seconds": 0}


def test_how_long_a_request_of_2026_has_waited_is_told_as_well(stdio_host, wire, gate):
    host = stdio_host("--hold", str(gate[0]), "--passed", "7", pass_fds=(gate[0],))
    host.send(
        wire.request(1, "tools/call", wire.modern({"name": "waited"})),
        wire.request(2, "server/discover", wire.modern()),
    )
    assert host.receive()["id"] == 2
    os.write(gate[1], b"go")
    assert host.receive()["result"]["structuredContent"] == {"seconds": 7}


def test_after_initialize_the_envelope_of_2026_is_refused(stdio_host, wire):
    host = opened(stdio_host(), wire)
    assert host.ask(wire.request(1, "tools/list", wire.modern()))["error"]["code"] == -32600
    assert host.ask(wire.request(2, "server/discover", wire.modern()))["error"]["code"] == -32600
    assert host.ask(wire.request(3, "server/discover"))["error"]["code"] == -32601
    assert host.ask(wire.request(4, "tools/list"))["result"]["tools"]


def test_after_a_modern_request_initialize_is_refused(stdio_host, wire):
    host = stdio_host()
    host.ask(wire.request(1, "tools/list", wire.modern()))
    assert host.ask(wire.initialize("2025-06-18", 2))["error"] == {
        "code": -32022,
        "message": "connection is serving the 2026-07-28 protocol; the initialize handshake is not accepted",
        "data": {"supported": ["2026-07-28"], "requested": "2025-06-18"},
    }


def test_requests_before_the_handshake_are_refused_and_the_handshake_still_works(stdio_host, wire):
    host = stdio_host()
    assert host.ask(wire.request(1, "tools/list"))["error"]["code"] == -32602
    assert host.ask(wire.request(2, "no/such"))["error"]["code"] == -32601
    assert host.ask(wire.initialize(request_id=3))["result"]
    assert host.ask(wire.request(4, "tools/list"))["result"]["tools"]


def test_the_service_hears_who_calls(stdio_host, wire):
    host = opened(stdio_host(), wire, "2024-11-05")
    seen = host.ask(wire.request(1, "tools/call", {"name": "who"}))["result"]["structuredContent"]
    again = host.ask(wire.request(2, "tools/call", {"name": "who"}))["result"]["structuredContent"]
    assert seen.pop("session") == again["session"]
    assert seen == {
        "revision": "2024-11-05",
        "client_name": "Tester",
        "client_version": "9",
        "user_agent": None,
        "profile": None,
        "principal": "local",
        "capabilities": {"roots": {"listChanged": True}},
        "client_info": {"name": "Tester", "version": "9"},
        "headers": {},
        "log_level": None,
        "model": None,
        "toolsets": [],
        "on_stdio": True,
        "chooses_outputs": False,
    }
    modern = stdio_host()
    caller = modern.ask(wire.request(1, "tools/call", wire.modern({"name": "who"})))["result"]["structuredContent"]
    assert (caller["revision"], caller["client_name"], caller["capabilities"]) == (
        "2026-07-28",
        "Tester",
        {"roots": {}},
    )


def test_params_are_passed_on_as_they_came(stdio_host, wire):
    host = stdio_host()
    params = wire.modern({"name": "echo", "arguments": {"a": 1}}, progressToken=7, traceparent="00-1-2-01")
    passed = host.ask(wire.request(1, "tools/call", params))["result"]["structuredContent"]["params"]
    assert passed == params


def test_progress_reaches_a_host_that_asked_for_it(stdio_host, wire):
    host = opened(stdio_host(), wire)
    host.send(wire.request(1, "tools/call", {"name": "count", "_meta": {"progressToken": "t"}}))
    steps = [host.receive() for _ in range(3)]
    assert [step["params"] for step in steps] == [
        {"progressToken": "t", "progress": float(step), "total": 3.0, "message": f"step {step}"} for step in (1, 2, 3)
    ]
    assert host.receive()["result"]["content"][0]["text"] == "counted"
    answer = host.ask(wire.request(2, "tools/call", {"name": "count"}))
    assert answer["result"]["content"][0]["text"] == "nobody asked"


def test_a_cancelled_call_ends_and_is_not_answered(stdio_host, wire):
    host = opened(stdio_host(), wire)
    host.send(wire.request(1, "tools/call", {"name": "wait"}))
    host.send(wire.notification("notifications/cancelled", {"requestId": 1, "reason": "changed my mind"}))
    host.send(wire.request(2, "ping"))
    host.leave()
    code, left, _ = host.ended()
    assert code == 0
    assert [json.loads(line)["id"] for line in left.splitlines()] == [2]


def test_cancelling_a_call_that_is_over_is_tolerated(stdio_host, wire):
    host = opened(stdio_host(), wire)
    for request_id in range(1, 4):
        assert host.ask(wire.request(request_id, "tools/call", {"name": "echo"}))["result"]
        host.send(wire.notification("notifications/cancelled", {"requestId": request_id}))
    assert host.ask(wire.request(9, "tools/list"))["result"]["tools"]


def test_changes_of_the_lists_are_told_in_the_handshake_era(stdio_host, wire):
    host = opened(stdio_host(), wire)
    for kind in ("tools", "resources"):
        host.send(wire.request(kind, "tools/call", {"name": "change", "arguments": {"kind": kind}}))
        came = [host.receive(), host.receive()]
        assert {"jsonrpc": "2.0", "method": f"notifications/{kind}/list_changed"} in came


def test_changes_of_the_lists_reach_a_subscription_in_the_modern_era(stdio_host, wire):
    host = stdio_host()
    wanted = {"notifications": {"toolsListChanged": True, "promptsListChanged": True}}
    host.send(wire.request("sub", "subscriptions/listen", wire.modern(wanted)))
    acknowledged = host.receive()
    assert acknowledged["method"] == "notifications/subscriptions/acknowledged"
    assert acknowledged["params"]["notifications"] == {"toolsListChanged": True, "promptsListChanged": True}
    for kind in ("resources", "tools"):
        host.send(wire.request(kind, "tools/call", wire.modern({"name": "change", "arguments": {"kind": kind}})))
    came = [host.receive() for _ in range(3)]
    told = [message for message in came if "method" in message]
    assert [message["method"] for message in told] == ["notifications/tools/list_changed"]
    assert told[0]["params"]["_meta"] == {"io.modelcontextprotocol/subscriptionId": "sub"}


def test_three_megabytes_pass_quickly_both_ways(stdio_host, wire):
    host = opened(stdio_host(), wire)
    answer = host.ask(wire.request(1, "tools/call", {"name": "big", "arguments": {"size": 4_000_000}}))
    assert len(answer["result"]["content"][0]["data"]) == 4_000_000
    text = "x" * 4_000_000
    answer = host.ask(wire.request(2, "tools/call", {"name": "echo", "arguments": {"text": text}}))
    assert answer["result"]["structuredContent"]["params"]["arguments"]["text"] == text


def test_what_the_service_prints_does_not_touch_the_wire(stdio_host, wire):
    host = opened(stdio_host(), wire)
    assert host.ask(wire.request(1, "tools/call", {"name": "print"}))["result"]["content"][0]["text"] == "printed"
    host.leave()
    code, left, errors = host.ended()
    assert (code, left) == (0, b"")
    assert "this must not reach the host" in errors


def test_lines_that_are_no_messages_are_answered_and_the_connection_goes_on(stdio_host, wire):
    host = opened(stdio_host(), wire)
    host.send(b"not json", b"\xff\xfe", b"[" * 100_000, b"", b"[]", b'{"id": 1}', b"7")
    codes = [host.receive()["error"]["code"] for _ in range(6)]
    assert codes == [-32700, -32700, -32700, -32600, -32600, -32600]
    host.send({"jsonrpc": "2.0", "id": 5, "method": "tools/list", "params": [1]})
    assert host.receive() == {
        "jsonrpc": "2.0",
        "id": 5,
        "error": {
            "code": -32600,
            "message": "a request needs an id (string or integer), a method (string) and params (object) if any",
        },
    }
    host.send({"jsonrpc": "2.0", "id": None, "method": "tools/list"})
    assert host.receive()["id"] is None
    assert host.ask(wire.request(6, "tools/list"))["result"]["tools"]


def test_each_message_of_a_batch_is_answered(stdio_host, wire):
    host = opened(stdio_host(), wire, "2025-03-26")
    batch = [wire.request(1, "ping"), wire.notification("notifications/x"), wire.request(2, "tools/list"), 3]
    host.send(json.dumps(batch).encode())
    answers = [host.receive() for _ in range(3)]
    assert sorted(str(answer.get("id")) for answer in answers) == ["1", "2", "None"]


def test_a_message_that_is_too_long_is_refused_and_the_next_one_served(stdio_host, wire):
    host = opened(stdio_host("--max-line", "100000"), wire)
    host.send(wire.request(1, "tools/call", {"name": "echo", "arguments": {"text": "x" * 200_000}}))
    refused = host.receive()
    assert (refused["id"], refused["error"]["code"]) == (None, -32600)
    assert host.ask(wire.request(2, "tools/list"))["result"]["tools"]


def test_a_malformed_call_is_refused_with_the_name_of_the_field(stdio_host, wire):
    host = opened(stdio_host(), wire)
    for params, part in (
        ({}, "params.name"),
        ({"name": 3}, "params.name"),
        ({"name": "echo", "arguments": []}, "params.arguments"),
        ({"name": "echo", "arguments": "{}"}, "params.arguments"),
    ):
        error = host.ask(wire.request(1, "tools/call", params))["error"]
        assert error["code"] == -32602
        assert part in error["message"]
    assert "params.uri" in host.ask(wire.request(1, "resources/read", {}))["error"]["message"]
    assert "params.cursor" in host.ask(wire.request(1, "tools/list", {"cursor": 3}))["error"]["message"]


def test_null_for_an_optional_field_counts_as_absent(stdio_host, wire):
    host = opened(stdio_host(), wire)
    answer = host.ask(wire.request(1, "tools/call", {"name": "echo", "arguments": None}))
    assert answer["result"]["structuredContent"]["params"] == {"name": "echo"}
    assert host.ask(wire.request(2, "tools/list", {"cursor": None}))["result"]["tools"]


def test_failures_reach_the_host_as_its_era_has_them(stdio_host, wire):
    host, modern = opened(stdio_host(), wire), stdio_host()

    def both(method, params):
        old = host.ask(wire.request(1, method, params))
        new = modern.ask(wire.request(1, method, wire.modern(params)))
        return old.get("error") or old["result"], new.get("error") or new["result"]

    for how, text in (
        ("timeout", "upstream 'slow': took longer than 3 s (raise upstreams.slow.timeout.call)"),
        ("wrapped", "upstream 'slow': took longer than 3 s"),
        ("expired", "the content behind h_1 is gone (call the tool again)"),
    ):
        for told in both("tools/call", {"name": "fail", "arguments": {"how": how}}):
            assert told["isError"] is True
            assert told["content"] == [{"type": "text", "text": text}]
    refused = {
        "code": -32021,
        "message": "capability missing",
        "data": {"requiredCapabilities": {"sampling": {}}},
    }
    assert both("tools/call", {"name": "fail", "arguments": {"how": "refused"}}) == (refused, refused)
    for error in both("tools/call", {"name": "fail", "arguments": {"how": "bug"}}):
        assert error["code"] == -32603
        assert "secret" not in json.dumps(error)
    assert [error["code"] for error in both("tools/call", {"name": "gone"})] == [-32602, -32602]
    assert [error["code"] for error in both("resources/read", {"uri": "note://gone"})] == [-32002, -32602]
    assert [error["code"] for error in both("prompts/list", {})] == [-32601, -32601]


def test_structured_content_that_is_no_object_becomes_text_before_2026(stdio_host, wire):
    host, modern = opened(stdio_host(), wire), stdio_host()
    result = host.ask(wire.request(1, "tools/call", {"name": "list-value"}))["result"]
    assert result == {"content": [{"type": "text", "text": "[1,2]"}]}
    result = modern.ask(wire.request(1, "tools/call", wire.modern({"name": "list-value"})))["result"]
    assert (result["content"], result["structuredContent"]) == ([], [1, 2])


def test_a_host_that_leaves_ends_the_process(stdio_host, wire):
    host = opened(stdio_host(), wire)
    host.ask(wire.request(1, "tools/list"))
    host.leave()
    code, left, errors = host.ended()
    assert (code, left) == (0, b"")
    assert "service closed" in errors


def test_a_host_that_leaves_before_the_service_is_up_ends_the_process(stdio_host, wire, gate):
    host = stdio_host("--hold", str(gate[0]), pass_fds=(gate[0],))
    host.ask(wire.initialize())
    host.leave()
    assert host.ended()[0] == 0


def test_a_service_that_cannot_start_says_why_in_its_own_words(stdio_host, wire):
    host = stdio_host("--fail", "there is no such file")
    code, _, errors = host.ended()
    assert code == 0
    assert "could not start: there is no such file" in errors


def test_what_was_asked_before_leaving_is_still_answered(stdio_host, wire):
    host = stdio_host()
    host.send(wire.initialize(), wire.request(1, "tools/list"), wire.request(2, "tools/call", {"name": "echo"}))
    host.leave()
    code, left, _ = host.ended()
    assert code == 0
    assert sorted(json.loads(line)["id"] for line in left.splitlines()) == [0, 1, 2]


def test_a_call_that_never_ends_does_not_keep_the_process_when_the_host_has_left(stdio_host, wire):
    host = opened(stdio_host("--linger", "0.2"), wire)
    host.send(wire.request(1, "tools/call", {"name": "wait"}))
    host.leave()
    code, left, errors = host.ended(60)
    assert code == 0
    assert json.loads(left)["error"]["code"] == -32000
    assert "service closed" in errors


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no SIGTERM to catch")
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_the_process_in_good_order(stdio_host, wire, number):
    host = opened(stdio_host(), wire)
    host.ask(wire.request(1, "tools/call", {"name": "echo"}))
    host.send(wire.request(2, "tools/call", {"name": "wait"}))
    host.process.send_signal(number)
    code, _, errors = host.ended(60)  # the call would wait for ever
    assert code == 0
    assert "service closed" in errors


def test_a_host_that_stops_reading_does_not_keep_the_process_from_ending(stdio_host, wire):
    host = opened(stdio_host(), wire)
    host.send(wire.request(1, "tools/call", {"name": "big", "arguments": {"size": 4_000_000}}))
    host.leave()
    assert host.process.wait(60) == 0


def test_a_host_whose_reading_end_is_gone_ends_the_process(stdio_host, wire):
    host = opened(stdio_host(), wire)
    assert host.process.stdout is not None
    host.process.stdout.close()
    host.send(wire.request(1, "ping"))
    assert host.process.wait(60) == 0


def test_the_opening_needs_nothing_but_the_standard_library():
    heavy = "{'mcp', 'mcp_types', 'pydantic', 'anyio', 'asyncio', 'logging', 'dataclasses', 'starlette', 'typer'}"
    code = f"import sys, gateway.serving.mcp.early_stdio; print(sorted({heavy} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
