"""Whose an upstream's state is, and one host's share of what all of them use."""

import http.client
import json
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path
from typing import Any

import pytest

from gateway.serving.access.tokens import hash_of

MODERN = {"modern": True}

KEEPER = """
import json, os, sys

kept = "nothing yet"

def tool(name, **properties):
    return {"name": name, "inputSchema": {"type": "object", "properties": properties}}

def answer(method, params):
    global kept
    if method == "initialize":
        server = {"name": "keeper", "version": "1"}
        capabilities = {"tools": {}, "resources": {}}
        return {"protocolVersion": params["protocolVersion"], "capabilities": capabilities, "serverInfo": server}
    if method == "tools/list":
        return {"tools": [tool("keep"), tool("look"), tool("picture")]}
    if method == "resources/list":
        return {"resources": [{"uri": "note://kept", "name": "what was kept"}]}
    if method == "resources/templates/list":
        return {"resourceTemplates": []}
    if method == "resources/read":
        return {"contents": [{"uri": params["uri"], "mimeType": "text/plain", "text": kept}]}
    if params["name"] == "keep":
        kept = params["arguments"]["text"]
    if params["name"] == "picture":
        return {"content": [{"type": "image", "mimeType": "image/png", "data": PIXEL}]}
    return {"content": [{"type": "text", "text": kept}]}

PIXEL = (
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
)
for line in sys.stdin:
    message = json.loads(line)
    if "id" in message and "method" in message:
        result = answer(message["method"], message.get("params") or {})
        print(json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": result}), flush=True)
"""
"""An upstream that keeps one text in its process, and gives it as a resource and as the result of its tools."""


LIBRARY = """
import json, sys

name = sys.argv[1]

def answer(method, params):
    if method == "initialize":
        server = {"name": name, "version": "1"}
        capabilities = {"tools": {}, "resources": {}}
        return {"protocolVersion": params["protocolVersion"], "capabilities": capabilities, "serverInfo": server}
    if method == "tools/list":
        return {"tools": [{"name": "cite", "inputSchema": {"type": "object"}}]}
    if method == "resources/list":
        return {"resources": []}
    if method == "resources/templates/list":
        own = [{"uriTemplate": "shelf://{book}", "name": "a book"}] if name == "good" else []
        return {"resourceTemplates": own}
    if method == "resources/read":
        return {"contents": [{"uri": params["uri"], "mimeType": "text/plain", "text": "read from " + name}]}
    return {"content": [{"type": "resource_link", "uri": params["arguments"]["uri"], "name": "a page"}]}

for line in sys.stdin:
    message = json.loads(line)
    if "id" in message and "method" in message:
        result = answer(message["method"], message.get("params") or {})
        print(json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": result}), flush=True)
"""
"""An upstream that names any uri in a result, and answers for any: `good` has a template for some of them."""


def text(result: Mapping[str, Any]) -> str:
    """The texts of a result, or the message of an error."""
    blocks: Sequence[Mapping[str, Any]] = result.get("content") or ()
    return " ".join(block["text"] for block in blocks if block["type"] == "text") or str(result.get("message"))


@contextmanager
def watched(gateway: Any) -> Iterator[None]:
    """While this is open, the bystander calls; each of its calls is answered, and soon."""
    with gateway.watched() as watch:
        yield
    assert watch.failures == []
    assert watch.longest < 5


@pytest.fixture
def host() -> Iterator[Callable[..., Any]]:
    """`host(gateway, name)`: a host, gone after the test."""
    there: list[Any] = []

    def connected(gateway: Any, name: str, **options: Any) -> Any:
        there.append(gateway.client(name, **options))
        return there[-1]

    yield connected
    for one in there:
        one.close()


@pytest.mark.parametrize("era", [{}, MODERN], ids=["handshake", "modern"])
def test_gateway_read_never_shows_what_another_host_keeps(attacked: Any, host: Any, era: dict[str, Any]) -> None:
    gateway = attacked({"keeper": KEEPER})
    with watched(gateway):
        victim = host(gateway, "victim", path="/mcp/default", **era)
        attacker = host(gateway, "attacker", path="/mcp/default", **era)
        assert text(victim.call("keeper__keep", {"text": "a secret"})) == "a secret"
        read = {"uri": "note://kept"}
        assert "a secret" in text(victim.call("gateway_read", read))
        assert "nothing yet" in text(attacker.call("gateway_read", read))


def test_a_tool_that_describes_is_called_in_the_session_of_the_host_in_front(attacked: Any, host: Any) -> None:
    describe = '[describe]\ntool = "keeper__look"\narguments = { data = "{type}" }\nkinds = ["image"]\n'
    gateway = attacked({"keeper": KEEPER}, describe)
    with watched(gateway):
        victim = host(gateway, "victim", path="/mcp/cline")
        assert text(victim.call("keeper__keep", {"text": "a secret"})) == "a secret"
        attacker = host(gateway, "attacker", path="/mcp/cline")
        assert "a secret" in text(victim.call("keeper__picture"))
        shown = text(attacker.call("keeper__picture"))  # the same picture, which was described for the victim before
        assert "nothing yet" in shown
        assert "a secret" not in shown


@pytest.fixture
def library(attacked: Any, tmp_path: Path) -> Any:
    """A gateway in front of an upstream `evil`, which claims whatever it can, and after it one that is `good`."""
    path = tmp_path / "library.py"
    path.write_text(LIBRARY, "utf-8")
    return attacked({name: [sys.executable, str(path), name] for name in ("evil", "good")})


def read(host: Any, uri: str) -> str:
    """Which upstream a host reads a uri from."""
    return host.ask("resources/read", {"uri": uri})["result"]["contents"][0]["text"]


@pytest.mark.parametrize("era", [{}, MODERN], ids=["handshake", "modern"])
def test_what_an_upstream_names_to_one_host_is_not_read_from_it_by_another(
    library: Any, host: Any, era: dict[str, Any]
) -> None:
    with watched(library):
        victim, other = (host(library, name, path="/mcp/passthrough", **era) for name in ("victim", "other"))
        victim.call("good__cite", {"uri": "page://of-good"})
        other.call("evil__cite", {"uri": "page://of-good"})
        assert read(victim, "page://of-good") == "read from good"
        assert read(other, "page://of-good") == "read from evil"


def test_an_upstream_that_names_anothers_uri_to_the_same_host_does_not_take_it_over(library: Any, host: Any) -> None:
    with watched(library):
        victim = host(library, "victim", path="/mcp/passthrough")
        victim.call("good__cite", {"uri": "page://of-good"})
        victim.call("evil__cite", {"uri": "page://of-good"})
        assert read(victim, "page://of-good") == "read from good"


def test_a_uri_is_read_from_whose_template_it_fits_whoever_else_names_it(library: Any, host: Any) -> None:
    with watched(library):
        victim = host(library, "victim", path="/mcp/passthrough")
        victim.call("good__cite", {"uri": "page://of-good"})  # it has started: before, nobody knows its templates
        victim.call("evil__cite", {"uri": "shelf://a-book"})
        assert read(victim, "shelf://a-book") == "read from good"


def test_the_next_host_of_one_name_and_token_gets_nothing_of_the_one_before(attacked: Any, host: Any) -> None:
    gateway = attacked({"keeper": KEEPER})
    with watched(gateway):
        victim = host(gateway, "claude-code", path="/mcp/default")
        victim.call("keeper__keep", {"text": "a secret"})
        victim.leave()
        for _ in range(3):
            attacker = host(gateway, "claude-code", path="/mcp/default")
            assert text(attacker.call("keeper__look")) == "nothing yet"
            attacker.leave()


def test_two_stateless_hosts_of_one_name_on_two_paths_share_nothing(attacked: Any, host: Any) -> None:
    gateway = attacked({"keeper": KEEPER})
    with watched(gateway):
        victim = host(gateway, "an-agent", path="/mcp/claude-code", **MODERN)
        attacker = host(gateway, "an-agent", path="/mcp/cline", **MODERN)
        victim.call("keeper__keep", {"text": "a secret"})
        assert text(attacker.call("keeper__look")) == "nothing yet"
        again = host(gateway, "an-agent", path="/mcp/claude-code", **MODERN)
        assert text(again.call("keeper__look")) == "a secret"


@pytest.mark.parametrize("name", ["gone", "gone-{number}"], ids=["one name", "many names"])
def test_hosts_that_left_without_a_word_keep_nobody_out(attacked: Any, host: Any, name: str) -> None:
    gateway = attacked({"keeper": KEEPER}, more={"keeper": "max_sessions = 4"})
    with watched(gateway):
        there = host(gateway, "there", path="/mcp/default")
        there.call("keeper__keep", {"text": "still mine"})
        with there.listening():
            for number in range(8):
                gone = host(gateway, name.format(number=number), path="/mcp/default")
                assert text(gone.call("keeper__look")) == "nothing yet"
                gone.close()
            assert text(there.call("keeper__look")) == "still mine"
        newcomer = host(gateway, "newcomer", path="/mcp/default")
        assert text(newcomer.call("keeper__look")) == "nothing yet"


ASKER = """
import json, sys

waiting = {}

def answer(method, params):
    if method == "initialize":
        server = {"name": "asker", "version": "1"}
        return {"protocolVersion": params["protocolVersion"], "capabilities": {"tools": {}}, "serverInfo": server}
    return {"tools": [{"name": "ask", "inputSchema": {"type": "object"}}]}

def say(message):
    print(json.dumps({"jsonrpc": "2.0", **message}), flush=True)

for line in sys.stdin:
    message = json.loads(line)
    if "method" not in message:
        said = message["result"]["action"]
        say({"id": waiting.pop(message["id"]), "result": {"content": [{"type": "text", "text": said}]}})
    elif message["method"] == "tools/call":
        question = f"question {message['id']}"
        waiting[question] = message["id"]
        params = {"message": "who?", "requestedSchema": {"type": "object", "properties": {}}}
        say({"id": question, "method": "elicitation/create", "params": params})
    elif message["method"] == "ping":
        say({"id": message["id"], "result": {}})
    elif "id" in message:
        say({"id": message["id"], "result": answer(message["method"], message.get("params") or {})})
"""
"""An upstream that asks the person in front of the host something in each call, and says what was answered."""


def test_a_host_that_never_answers_what_it_is_asked_keeps_no_other_host_from_being_asked(
    attacked: Any, host: Any
) -> None:
    gateway = attacked({"asker": ASKER})
    able = {"capabilities": {"elicitation": {}}, "path": "/mcp/passthrough", **MODERN}
    with watched(gateway):
        attacker, victim = (host(gateway, name, **able) for name in ("attacker", "victim"))
        results = [attacker.call("asker__ask") for _ in range(260)]
        asked = sum(result.get("resultType") == "input_required" for result in results)
        assert 0 < asked < 260
        assert "calls of this host are waiting" in text(results[-1])
        params = {"name": "asker__ask", "arguments": {}}
        question = victim.ask("tools/call", params)["result"]
        assert question["resultType"] == "input_required"
        answers = {key: {"action": "decline"} for key in question["inputRequests"]}
        retry = params | {"inputResponses": answers, "requestState": question["requestState"]}
        assert text(victim.ask("tools/call", retry)["result"]) == "decline"


TOKENS = {name: f"mcpg_{name}_0123456789" for name in ("attacker", "victim")}
NAMED = "".join(f'[access.tokens.{name}]\nhash = "{hash_of(token)}"\n' for name, token in TOKENS.items())
"""The configuration of two named tokens, each of which is a principal of its own."""


def of(name: str) -> dict[str, str]:
    """The headers with the token of that name."""
    return {"authorization": f"Bearer {TOKENS[name]}"}


def test_a_token_under_many_names_costs_another_token_neither_its_state_nor_its_turn(attacked: Any, host: Any) -> None:
    gateway = attacked(
        {"keeper": KEEPER}, NAMED, more={"keeper": "max_sessions = 4"}, token="mcpg_bystander_0123456789"
    )
    with watched(gateway), ExitStack() as streams:
        victim = host(gateway, "victim", headers=of("victim"), path="/mcp/default")
        victim.call("keeper__keep", {"text": "still mine"})
        for number in range(8):
            gone = host(gateway, f"gone-{number}", headers=of("attacker"), path="/mcp/default")
            assert text(gone.call("keeper__look")) == "nothing yet"
            gone.close()
        assert text(victim.call("keeper__look")) == "still mine"
        victim.leave()
        for number in range(5):
            there = host(gateway, f"there-{number}", headers=of("attacker"), path="/mcp/default")
            streams.enter_context(there.listening())
            answer = text(there.call("keeper__look"))
        assert "all 4 sessions that it may have are in use" in answer
        newcomer = host(gateway, "newcomer", headers=of("victim"), path="/mcp/default")
        assert text(newcomer.call("keeper__look")) == "nothing yet"


def test_a_token_that_never_answers_under_many_names_keeps_no_other_token_from_being_asked(
    attacked: Any, host: Any
) -> None:
    gateway = attacked({"asker": ASKER}, NAMED, more={"asker": "max_sessions = 3"}, token="mcpg_bystander_0123456789")
    able = {"capabilities": {"elicitation": {}}, "path": "/mcp/passthrough", **MODERN}
    with watched(gateway):
        attackers = [host(gateway, f"name {number}", headers=of("attacker"), **able) for number in range(4)]
        results = [attacker.call("asker__ask") for attacker in attackers]
        assert [result.get("resultType") == "input_required" for result in results] == [True, True, True, False]
        params = {"name": "asker__ask", "arguments": {}}
        victim = host(gateway, "victim", headers=of("victim"), **able)
        question = victim.ask("tools/call", params)["result"]
        answers = {key: {"action": "decline"} for key in question["inputRequests"]}
        retry = params | {"inputResponses": answers, "requestState": question["requestState"]}
        assert text(victim.ask("tools/call", retry)["result"]) == "decline"
        given_up = params | {"inputResponses": {}, "requestState": results[0]["requestState"]}
        assert "another host needed the session" in str(attackers[0].ask("tools/call", given_up))


SLOW = """
import json, sys, time

worked = 0

def answer(method, params):
    if method == "initialize":
        server = {"name": "slow", "version": "1"}
        return {"protocolVersion": params["protocolVersion"], "capabilities": {"tools": {}}, "serverInfo": server}
    if method == "tools/list":
        return {"tools": [{"name": "work", "inputSchema": {"type": "object"}}]}
    if method == "ping":
        return {}
    global worked
    time.sleep(0.25)
    worked += 1
    return {"content": [{"type": "text", "text": str(worked)}]}

for line in sys.stdin:
    message = json.loads(line)
    if "id" in message and "method" in message:
        result = answer(message["method"], message.get("params") or {})
        print(json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": result}), flush=True)
"""
"""An upstream that works on one call after the other, and reads nothing meanwhile; it says how many it has had."""


class SseHost:
    """A host over HTTP+SSE: what it sends waits for nothing, and what comes is read when it is wanted."""

    def __init__(self, port: int, name: str) -> None:
        self._stream = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
        self._stream.request("GET", "/sse/passthrough", headers={"accept": "text/event-stream"})
        self._events = self._stream.getresponse()
        self._posts = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
        self._path = self._next()
        info = {"name": name, "version": "1"}
        params = {"protocolVersion": "2024-11-05", "capabilities": {}, "clientInfo": info}
        self.send({"id": 0, "method": "initialize", "params": params})
        self.answer(0)
        self.send({"method": "notifications/initialized"})

    def send(self, message: Mapping[str, Any]) -> None:
        body = json.dumps({"jsonrpc": "2.0", **message})
        self._posts.request("POST", self._path, body, {"content-type": "application/json"})
        self._posts.getresponse().read()

    def answer(self, request: int) -> dict[str, Any]:
        """The result of a request; what comes before it is passed over."""
        while (message := json.loads(self._next())).get("id") != request:
            pass
        return message["result"]

    def close(self) -> None:
        for one in (self._events, self._stream, self._posts):
            one.close()

    def _next(self) -> str:
        while not (line := self._events.readline().decode()).startswith("data:"):
            assert line, "the stream ended"
        return line[5:].strip()


@pytest.mark.parametrize("rule", ["host-session", "shared"])
def test_calls_that_were_cancelled_do_not_keep_the_next_one_waiting(attacked: Any, host: Any, rule: str) -> None:
    gateway = attacked({"slow": SLOW}, more={"slow": f'session = "{rule}"'})
    call = {"method": "tools/call", "params": {"name": "slow__work", "arguments": {}}}
    with watched(gateway), closing(SseHost(gateway.port, "hasty")) as hasty:
        for number in range(1, 301):
            hasty.send({"id": number, **call})
        for number in range(1, 301):
            hasty.send({"method": "notifications/cancelled", "params": {"requestId": number}})
        began = time.monotonic()
        hasty.send({"id": 1_000, **call})
        worked = int(text(hasty.answer(1_000)))
        print(f"the next call waited {time.monotonic() - began:.1f} s; the upstream has worked on {worked} calls")
        assert worked < 150  # 301 if it had been sent them all


def test_one_hosts_many_calls_do_not_keep_the_next_host_waiting(attacked: Any, host: Any) -> None:
    gateway = attacked({"slow": SLOW}, more={"slow": 'session = "shared"'})
    call = {"method": "tools/call", "params": {"name": "slow__work", "arguments": {}}}
    with watched(gateway), closing(SseHost(gateway.port, "busy")) as busy:
        for number in range(1, 301):
            busy.send({"id": number, **call})
        began = time.monotonic()
        other = host(gateway, "other", path="/mcp/passthrough")
        worked = int(text(other.call("slow__work")))
        print(f"the other host waited {time.monotonic() - began:.1f} s; the upstream has worked on {worked} calls")
        assert worked < 150  # 301 if it had to wait for all of them
