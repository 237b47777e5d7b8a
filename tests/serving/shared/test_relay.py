"""The process of a host with `serve --shared`, against a stand-in for the gateway: a socket that the test answers."""

import json
import os
import queue
import signal
import socket
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from gateway.serving.control.endpoint import Endpoint
from gateway.serving.control.records import GatewayRecord, write_record
from gateway.serving.mcp.kept_lists import KeptLists
from gateway.serving.shared.attach import GOODBYE, shared_key
from gateway.system.runtime_dir import own_folder

PATIENCE = 60

pytestmark = pytest.mark.skipif(os.name != "posix", reason="the stand-in is a Unix socket")


class StandIn:
    """A gateway that accepts one host at a time, and does what the test says."""

    def __init__(self, config: Path):
        self.record = GatewayRecord(
            *(os.getpid(), time.time(), "stand-in", "0", str(config), None),
            Endpoint("unix", str(own_folder() / "stand-in.sock")),
            shared_key(config, os.environ),
        )
        self.listener = socket.socket(socket.AF_UNIX)
        self.listener.bind(self.record.endpoint.address)
        self.listener.listen()
        self.listener.settimeout(PATIENCE)
        self.accepted = []
        write_record(own_folder(), self.record)

    def accept(self, reply=None):
        """The next host: its connection, and what it has asked for. Probes, which close at once, are passed over."""
        while True:
            connection, _ = self.listener.accept()
            connection.settimeout(PATIENCE)
            lines = connection.makefile("rb")
            self.accepted += [lines, connection]
            if line := lines.readline():
                asked = json.loads(line)
                answer = {"ok": True, "result": {"pid": 1}} if reply is None else reply
                connection.sendall(json.dumps(answer).encode() + b"\n")
                return Attached(connection, lines, asked)

    def close(self):
        for one in (*self.accepted, self.listener):
            one.close()


class Attached:
    def __init__(self, connection, lines, asked):
        self.connection, self.lines, self.asked = connection, lines, asked

    def next(self):
        return json.loads(self.lines.readline())

    def send(self, **message):
        self.connection.sendall(json.dumps({"jsonrpc": "2.0", **message}, separators=(",", ":")).encode() + b"\n")

    def close(self, last=b""):
        self.connection.sendall(last)
        self.lines.close()
        self.connection.close()


class Host:
    def __init__(self, *arguments):
        command = [sys.executable, "-m", "gateway", "serve", "--shared", *map(str, arguments)]
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        self.lines = queue.Queue()
        self.reader = threading.Thread(target=self._read, daemon=True)
        self.reader.start()

    def _read(self):
        for line in self.process.stdout:
            self.lines.put(json.loads(line))

    def send(self, **message):
        self.process.stdin.write(json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n")
        self.process.stdin.flush()

    def next(self):
        return self.lines.get(timeout=PATIENCE)

    def initialize(self):
        params = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}}
        self.send(id=0, method="initialize", params=params)
        assert self.next()["result"]["protocolVersion"] == "2025-06-18"
        self.send(method="notifications/initialized")
        return params


@pytest.fixture
def config(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path / "run"))
    monkeypatch.setenv("PYTHONPATH", str(Path(__file__).parents[3]))
    (tmp_path / "run").mkdir(mode=0o700)
    path = tmp_path / "shared.toml"
    path.write_text('[upstreams.one]\nurl = "http://127.0.0.1:9/${A_NAME}"\n')
    return path


@pytest.fixture
def cache(tmp_path, monkeypatch):
    """The folder of kept lists, for fixtures and processes that are started after this."""
    monkeypatch.setenv("MCP_GATEWAY_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache" / "lists"


@pytest.fixture
def gateway(config):
    one = StandIn(config)
    yield one
    one.close()


@pytest.fixture
def host(config):
    hosts = []

    def start(*arguments):
        hosts.append(Host("--config", config, *arguments))
        return hosts[-1]

    yield start
    for one in hosts:
        one.process.send_signal(signal.SIGKILL)
        one.process.wait(PATIENCE)
        one.reader.join(PATIENCE)
        for stream in (one.process.stdin, one.process.stdout, one.process.stderr):
            stream.close()


def test_messages_are_passed_on_both_ways_whole_and_in_order(gateway, host, monkeypatch):
    monkeypatch.setenv("A_NAME", "secret")
    one = host("--profile", "cline", "--model", "m")
    params = one.initialize()
    attached = gateway.accept()
    asked = attached.asked
    assert (asked["profile"], asked["model"], asked["first_id"]) == ("cline", "m", 0)
    assert list(asked["environment"]) == ["A_NAME"]
    assert "secret" not in json.dumps(asked)
    opening = attached.next()
    assert (opening["method"], opening["params"]) == ("initialize", params)
    attached.send(id=opening["id"], result={"protocolVersion": "2025-06-18"})  # the host has its answer already
    assert attached.next().get("method") == "notifications/initialized"
    one.send(id="é\n", method="tools/call", params={"name": "ü"})
    assert attached.next() == {"jsonrpc": "2.0", "id": "é\n", "method": "tools/call", "params": {"name": "ü"}}
    large = {"content": [{"type": "text", "text": "x" * 5_000_000}]}
    attached.send(id="é\n", result=large)
    assert one.next() == {"jsonrpc": "2.0", "id": "é\n", "result": large}
    attached.send(id=1, method="roots/list")
    assert one.next()["method"] == "roots/list"
    one.send(id=1, result={"roots": []})
    assert attached.next()["result"] == {"roots": []}
    one.process.stdin.close()
    assert attached.lines.readline() == b""
    attached.close()
    assert one.process.wait(PATIENCE) == 0


def test_the_next_gateway_is_told_what_the_host_has_set_up_and_the_host_what_was_cut_off(gateway, host, config):
    one = host()
    one.initialize()
    first = gateway.accept()
    one.send(id=1, method="logging/setLevel", params={"level": "info"})
    one.send(id=2, method="resources/subscribe", params={"uri": "a:b"})
    one.send(id=3, method="resources/subscribe", params={"uri": "c:d"})
    one.send(id=4, method="resources/unsubscribe", params={"uri": "c:d"})
    one.send(id=5, method="tools/call", params={"name": "x"})
    one.send(id=6, method="tools/list")
    first.send(id=7, method="sampling/createMessage", params={})
    assert [first.next()["method"] for _ in range(8)][-1] == "tools/list"
    assert one.next()["id"] == 7
    first.close()
    answered = [one.next() for _ in range(5)]
    failed = {message["id"]: message for message in answered if "id" in message}
    assert set(failed) == {1, 2, 3, 4, 5}
    assert failed[5]["result"]["isError"] is True
    assert "error" in failed[1]
    assert one.next() == {
        "jsonrpc": "2.0",
        "method": "notifications/cancelled",
        "params": {"requestId": 7, "reason": "the gateway has ended"},
    }

    second = gateway.accept()
    assert second.asked["first_id"] == 7
    one.send(id=7, result={"late": True})  # no gateway waits for it
    told = [second.next() for _ in range(5)]
    assert [message["method"] for message in told] == [
        *("initialize", "notifications/initialized", "logging/setLevel", "resources/subscribe", "tools/list")
    ]
    assert told[3]["params"] == {"uri": "a:b"}
    assert told[4]["id"] == 6  # it only reads, and is sent again
    second.send(id=6, result={"tools": []})
    news = [one.next() for _ in range(4)]
    assert sum(message.get("method", "").endswith("list_changed") for message in news) == 3
    assert {"jsonrpc": "2.0", "id": 6, "result": {"tools": []}} in news
    one.send(id=8, method="ping")
    assert one.next()["id"] == 8
    one.send(id=9, method="tools/call", params={"name": "y"})
    assert second.next()["id"] == 9  # nothing of the late answer before it


def test_a_request_that_ends_two_gateways_is_not_sent_to_a_third(gateway, host):
    one = host()
    one.initialize()
    one.send(id=1, method="tools/list")
    for _ in range(2):
        attached = gateway.accept()
        while attached.next().get("method") != "tools/list":
            pass
        attached.close()
    while (message := one.next()).get("id") != 1:
        pass
    assert "ended unexpectedly" in message["error"]["message"]


def test_a_gateway_that_says_goodbye_is_left_alone_until_the_host_asks(gateway, host):
    one = host()
    one.initialize()
    attached = gateway.accept()
    while attached.next().get("method") != "notifications/initialized":
        pass
    attached.close(GOODBYE)
    while b"was stopped" not in one.process.stderr.readline():
        pass
    one.send(id=1, method="ping")  # which the relay answers itself
    assert one.next()["id"] == 1
    one.send(id=2, method="tools/list")
    following = gateway.accept()
    while following.next().get("method") != "tools/list":
        pass


def test_a_refusal_ends_the_host_with_its_reason(gateway, host):
    one = host()
    gateway.accept({"ok": False, "error": "no\x1b[31m room"})
    assert one.process.wait(PATIENCE) == 2
    assert b"error: no?[31m room" in one.process.stderr.read()


def test_it_ends_with_its_host_while_a_gateway_that_hangs_says_nothing(gateway, host):
    one = host()
    one.initialize()
    connection, _ = gateway.listener.accept()
    while not connection.recv(1_000_000):  # probes close at once
        connection.close()
        connection, _ = gateway.listener.accept()
    one.process.stdin.close()
    began = time.monotonic()
    assert one.process.wait(PATIENCE) == 0
    connection.close()
    assert time.monotonic() - began < 10, "it has not waited for the answer until its own time was over"


def test_it_ends_with_its_host_while_a_gateway_that_hangs_reads_nothing(gateway, host):
    one = host()
    one.initialize()
    attached = gateway.accept()
    large = "x" * 5_000_000
    for number in range(1, 4):
        one.send(id=number, method="tools/call", params={"name": "t", "arguments": {"a": large}})
    one.process.stdin.close()
    began = time.monotonic()
    assert one.process.wait(PATIENCE) == 0
    assert time.monotonic() - began < 25
    assert attached.asked["command"] == "attach"


def test_it_ends_at_once_with_a_host_that_waits_for_nothing(gateway, host):
    one = host()
    one.initialize()
    attached = gateway.accept()
    assert attached.next().get("method") == "initialize"
    assert attached.next().get("method") == "notifications/initialized"
    one.process.stdin.close()
    began = time.monotonic()
    assert one.process.wait(PATIENCE) == 0
    assert time.monotonic() - began < 4


def test_one_that_is_ending_is_tried_again(gateway, host):
    one = host()
    one.initialize()
    gateway.accept({"ok": True, "result": {"ending": True}}).close()
    attached = gateway.accept()
    assert attached.next().get("method") == "initialize"


@pytest.mark.parametrize("number", [[1], {"a": 1}, None, 1.5, True])
def test_a_cancellation_of_what_cannot_be_an_id_is_passed_on(gateway, host, number):
    one = host()
    one.initialize()
    one.send(id=1, method="tools/call", params={"name": "slow"})
    one.send(method="notifications/cancelled", params={"requestId": number})
    one.send(id=2, method="tools/list")
    attached = gateway.accept()
    while attached.next().get("method") != "tools/list":
        pass


def asked_for_tools(attached):
    """What a relay says of the next request for tools, and that request; what comes before is passed over."""
    told = None
    while (message := attached.next()).get("method") != "tools/list":
        told = message.get("relay", told)
    return told, message


def test_a_list_that_was_given_before_is_given_before_there_is_a_gateway_and_checked_by_the_next(
    cache, config, gateway, host
):
    changed = time.time() - 60
    os.utime(config, (changed, changed))
    one = host()
    one.initialize()
    one.send(id=1, method="tools/list")
    told, request = asked_for_tools(gateway.accept())
    assert (told["list"]["given"], request["id"]) == (None, 1)
    KeptLists(cache).keep(told["list"]["key"], b'{"tools":[{"name":"x","inputSchema":{}}]}', "digest")

    two = host()
    two.initialize()
    two.send(id="mine", method="tools/list", params={})
    assert two.next() == {"jsonrpc": "2.0", "id": "mine", "result": {"tools": [{"name": "x", "inputSchema": {}}]}}
    attached = gateway.accept()
    assert asked_for_tools(attached)[0]["list"] == {"key": told["list"]["key"], "given": "digest"}
    attached.close()  # before it has answered: the next gateway does, and the host hears of neither
    attached = gateway.accept()
    _, request = asked_for_tools(attached)
    assert {two.next()["method"] for _ in range(3)} == {
        f"notifications/{kind}/list_changed" for kind in ("tools", "prompts", "resources")
    }
    attached.send(id=request["id"], result={"tools": []})
    two.send(id=2, method="tools/list")
    _, request = asked_for_tools(attached)
    attached.send(id=request["id"], result={"tools": []})
    assert two.next() == {"jsonrpc": "2.0", "id": 2, "result": {"tools": []}}


def test_a_list_of_a_gateway_that_was_started_before_the_configuration_changed_is_not_kept(
    cache, config, gateway, host
):
    changed = time.time() + 60
    os.utime(config, (changed, changed))
    one = host()
    one.initialize()
    one.send(id=1, method="tools/list")
    assert asked_for_tools(gateway.accept())[0]["list"] == {"key": None, "given": None}
