"""Two tokens on one gateway, two hosts of one name: what is of one principal does not exist for the other."""

import base64
import hashlib
import http.client
import json
import re
import sys
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import parse_qsl, urlencode, urlsplit

import pytest

from gateway.config.token_hashes import hash_of
from tests.bridges import hosts
from tests.servers.bridge_server import BLOCKS

TASKS = "io.modelcontextprotocol/tasks"
TEXT = b"What only Alice may read."
NOBODYS = "doc_000000000000"

TAKER = """
import base64, hashlib, json, sys

CONTENT = {"type": "string", "contentEncoding": "base64"}
TOOL = {"name": "take", "inputSchema": {"type": "object", "properties": {"file": CONTENT}}}

def answer(method, params):
    if method == "initialize":
        server = {"name": "taker", "version": "1"}
        return {"protocolVersion": params["protocolVersion"], "capabilities": {"tools": {}}, "serverInfo": server}
    if method == "tools/list":
        return {"tools": [TOOL]}
    digest = hashlib.sha256(base64.b64decode(params["arguments"]["file"])).hexdigest()
    return {"content": [{"type": "text", "text": digest}]}

for line in sys.stdin:
    message = json.loads(line)
    if "id" in message and "method" in message:
        result = answer(message["method"], message.get("params") or {})
        print(json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": result}), flush=True)
"""
"""An upstream with a tool that takes content, and says which it was given."""


class Person(NamedTuple):
    """Someone with a token, and a host."""

    origin: str
    token: str
    host: Any

    def ask(self, method: str, path: str, body: bytes | None = None, *, signed: bool = False) -> tuple[int, bytes]:
        """Send a request to the gateway, with the token unless a signature is to do: its status and its body."""
        connection = http.client.HTTPConnection(urlsplit(self.origin).netloc, timeout=60)
        try:
            connection.request(method, path, body, {} if signed else {"Authorization": f"Bearer {self.token}"})
            response = connection.getresponse()
            return response.status, response.read()
        finally:
            connection.close()

    def upload(self, content: bytes) -> dict[str, Any]:
        """Keep content: its handle, and its link."""
        status, said = self.ask("POST", "/content?name=letter.txt", content)
        assert status == 201, said
        return json.loads(said)

    def words(self, tool: str, **arguments: Any) -> str:
        """What a tool says."""
        return " ".join(block.get("text", "") for block in self.host.call(tool, **arguments)["content"])


@pytest.fixture(scope="module")
def origin(tmp_path_factory, make_bridge):
    folder: Path = tmp_path_factory.mktemp("principals")
    made = make_bridge(folder)
    (folder / "taker.py").write_text(TAKER, "utf-8")
    upstreams = {
        "taker": {"command": sys.executable, "args": [str(folder / "taker.py")]},
        "bridge": made.upstream("modern-http", "principals"),
    }
    access = {f"access.tokens.{name}": {"hash": hash_of(token_of(name))} for name in ("alice", "bob")}
    yield made.gateway(made.config(upstreams, **access), profile="default")
    made.close()


def token_of(name: str) -> str:
    return f"{name}s-token-of-this-test"


@pytest.fixture(params=["handshake-http", "modern-http"])
def kind(request) -> str:
    return request.param


@pytest.fixture
def people(origin, fresh, kind) -> tuple[Person, Person]:
    def of(name: str) -> Person:
        token = token_of(name)
        able = {"elicitation": {"form": {}}, "extensions": {TASKS: {}}}
        headers = {"Authorization": f"Bearer {token}"}
        return Person(origin, token, fresh.host(kind, origin, name="one", headers=headers, capabilities=able))

    return of("alice"), of("bob")


def refused(host: Any, method: str, params: dict[str, Any]) -> str:
    with pytest.raises(hosts.Refused) as error:
        host.request(method, params)
    return str(error.value)


def test_a_kept_text_is_its_owners_whichever_way_it_is_asked_for(people):
    alice, bob = people
    handle = alice.upload(TEXT)["handle"]
    uri, digest = f"content://{handle}", hashlib.sha256(TEXT).hexdigest()
    assert TEXT.decode() in alice.words("gateway_read", handle=handle)
    assert alice.words("taker__take", file=handle) == digest
    assert alice.host.request("resources/read", {"uri": uri})["contents"]
    for tool, argument in (("gateway_read", "handle"), ("gateway_view", "handle"), ("taker__take", "file")):
        unknown = bob.words(tool, **{argument: NOBODYS})
        assert bob.words(tool, **{argument: handle}).replace(handle, NOBODYS) == unknown
    unknown = refused(bob.host, "resources/read", {"uri": f"content://{NOBODYS}"})
    assert refused(bob.host, "resources/read", {"uri": uri}).replace(handle, NOBODYS) == unknown
    assert handle not in json.dumps(bob.host.everything("resources"))


def test_equal_bytes_have_another_handle_for_each_principal(people):
    alice, bob = people
    hers, his = alice.upload(TEXT), bob.upload(TEXT)
    assert hers["handle"] != his["handle"]
    assert hers["sha256"] == his["sha256"]


def test_a_link_is_good_for_the_content_that_it_was_signed_for_alone(people):
    alice, bob = people
    hers, his = alice.upload(TEXT), bob.upload(b"What Bob has kept.")
    link, own = urlsplit(hers["url"]), urlsplit(his["url"])
    assert alice.ask("GET", f"{link.path}?{link.query}", signed=True) == (200, TEXT)
    for path in (f"{link.path}?{own.query}", f"{own.path}?{link.query}", link.path):
        for signed in (True, False):  # nor does a token open what a link does
            status, said = bob.ask("GET", path, signed=signed)
            assert (status, TEXT in said) == (403, False)
    later = [(key, "9999999999" if key == "expires" else value) for key, value in parse_qsl(link.query)]
    assert bob.ask("GET", f"{link.path}?{urlencode(later)}", signed=True)[0] == 403


def test_a_picture_of_a_result_is_its_hosts(people):
    alice, bob = people
    handle = upload_of_picture(alice)
    shown = alice.host.call("gateway_view", handle=handle)["content"]
    assert [block["type"] for block in shown if block["type"] == "image"] == ["image"]
    denied = bob.host.call("gateway_view", handle=handle)
    assert denied["isError"] is True
    assert [block["type"] for block in denied["content"]] == ["text"]
    assert "there is no content with the handle" in denied["content"][0]["text"]


def upload_of_picture(person: Person) -> str:
    handle = person.upload(base64.b64decode(str(BLOCKS["image"]["data"])))["handle"]
    assert re.fullmatch(r"img_\w+", handle)
    return handle


@pytest.mark.parametrize("kind", ["modern-http"], indirect=True)
def test_a_task_is_its_principals_though_both_hosts_have_one_name(people):
    alice, bob = people
    task = alice.host.call("bridge__later")
    name = {"taskId": task["taskId"]}
    answers = {"inputResponses": {"name": {"action": "accept", "content": {"name": "Eve"}}}}
    assert alice.host.request("tasks/get", name)["status"] == "input_required"
    for method, more in (("tasks/get", {}), ("tasks/update", answers), ("tasks/cancel", {})):
        assert "this caller has no task" in refused(bob.host, method, name | more)
    for method in ("tasks/list", "tasks/result"):  # methods of 2025-11-25: nobody is shown whose tasks there are
        assert task["taskId"] not in refused(bob.host, method, {} if method == "tasks/list" else name)
    assert alice.host.request("tasks/get", name)["status"] == "input_required"  # neither answered nor cancelled
    answers["inputResponses"]["name"]["content"]["name"] = "Ada"
    alice.host.request("tasks/update", name | answers)
    done = alice.host.request("tasks/get", name)
    assert done["status"] == "completed"
    assert "Ada" in json.dumps(done["result"]["content"])


@pytest.mark.parametrize("kind", ["handshake-http"], indirect=True)
def test_a_session_is_its_principals(people):
    alice, bob = people
    info = {"name": "one", "version": "1"}
    opening = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": info}
    status, session = in_session(alice, "POST", {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": opening})
    assert (status, bool(session)) == (200, True)
    ping = {"jsonrpc": "2.0", "id": 2, "method": "ping"}
    for verb, message in (("POST", ping), ("GET", None), ("DELETE", None)):
        assert in_session(bob, verb, message, session)[0] == 404
    assert in_session(alice, "POST", ping, session)[0] == 200


def in_session(person: Person, verb: str, message: Any, session: str | None = None) -> tuple[int, str | None]:
    """Send a request as one of a session: the status, and the session that the answer names."""
    headers = {
        "Authorization": f"Bearer {person.token}",
        "Accept": "application/json, text/event-stream",
        "Content-Type": "application/json",
        **({} if session is None else {"Mcp-Session-Id": session, "MCP-Protocol-Version": "2025-11-25"}),
    }
    connection = http.client.HTTPConnection(urlsplit(person.origin).netloc, timeout=60)
    connection.request(verb, "/mcp", None if message is None else json.dumps(message), headers)
    response = connection.getresponse()
    try:
        return response.status, response.getheader("mcp-session-id")
    finally:
        response.close()
        connection.close()
