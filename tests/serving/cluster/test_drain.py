"""A gateway that is told to stop: nothing that it can still finish is broken off, and another goes on with the rest."""

import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import httpx2
import pytest

from tests.serving.cluster.conftest import BOB, Host, Replicas
from tests.telemetry.conftest import Serving

A_MINUTE = 60


def stopping(gateway: Serving) -> None:
    """Tell the gateway to stop, and wait until it says so."""
    gateway.process.terminate()
    gateway.line_with("stopping: ")


def test_running_calls_end_and_new_sessions_are_refused(replicas: Replicas, host: Callable[..., Host]) -> None:
    first = replicas.start(clustered=False)
    alice, late = host(), host()
    alice.open(first)
    with ThreadPoolExecutor() as threads:
        running = threads.submit(alice.call, first, "own__sleep", seconds=2)
        time.sleep(0.5)
        stopping(first)
        assert first.get("/readyz")[0] == 503
        refused = late.post(first, late.message("initialize", {}))
        assert refused.status_code == 503
        assert refused.headers["retry-after"]
        assert refused.headers["connection"] == "close"
        assert host().now(first, "all__count").startswith("1 "), "what needs no session is answered"
        assert running.result(A_MINUTE).startswith("1 ")
    assert first.process.wait(A_MINUTE) == 0


def test_a_second_signal_ends_at_once(replicas: Replicas, host: Callable[..., Host]) -> None:
    first = replicas.start(clustered=False)
    alice = host()
    alice.open(first)
    call = alice.message("tools/call", {"name": "own__sleep", "arguments": {"seconds": 30}})
    with alice.stream(first, call) as events:
        assert next(iter(events)) is None
        stopping(first)
        began = time.monotonic()
        first.process.terminate()
        list(events)  # it ends
    first.process.wait(A_MINUTE)
    assert time.monotonic() - began < 15


def test_stop_and_ctrl_c_let_running_calls_end_too(replicas: Replicas, host: Callable[..., Host]) -> None:
    for tell, code in (("stop", 0), ("ctrl-c", 130)):
        gateway = replicas.start(clustered=False)
        alice = host()
        alice.open(gateway)
        with ThreadPoolExecutor() as threads:
            running = threads.submit(alice.call, gateway, "own__sleep", seconds=4)
            time.sleep(1)
            if tell == "stop":
                home = str(gateway.config.parent)
                words = [sys.executable, "-m", "gateway", "stop", "--pid", str(gateway.process.pid)]
                environ = {**os.environ, "HOME": home, "PYTHONPATH": str(Path(__file__).parents[3])}
                ended = subprocess.run(words, capture_output=True, text=True, env=environ, timeout=90, check=False)
                assert ended.returncode == 0, ended.stderr
                assert "answers what it has been asked" in ended.stderr
            else:
                gateway.process.send_signal(signal.SIGINT)
                gateway.line_with("Ctrl-C again ends it at once")
            assert running.result(A_MINUTE).startswith("1 ")
        assert gateway.process.wait(A_MINUTE) == code


def test_a_session_goes_on_elsewhere_at_once(replicas: Replicas, host: Callable[..., Host]) -> None:
    first, second = replicas.start(), replicas.start()
    alice, late = host(), host()
    alice.open(first)
    with ThreadPoolExecutor() as threads:
        running = threads.submit(alice.call, second, "own__sleep", seconds=2)
        time.sleep(0.5)
        stopping(first)
        assert not late.open(first).startswith(alice.headers["Mcp-Session-Id"].split(".")[0]), "opened at the other"
        assert running.result(A_MINUTE).startswith("1 ")
    assert first.process.wait(A_MINUTE) == 0
    assert alice.call(second, "all__count").startswith("1 ")
    assert late.call(second, "all__count").startswith("2 ")


def test_sessions_of_which_nothing_runs_go_on_elsewhere_meanwhile(
    replicas: Replicas, host: Callable[..., Host]
) -> None:
    first, second = replicas.start(), replicas.start()
    busy, idle, listening, stateful = host(), host(), host(BOB), host(BOB)
    for one in (busy, idle, listening, stateful):
        one.open(first)
    assert stateful.call(first, "own__count").startswith("1 ")
    with ThreadPoolExecutor() as threads:
        running = threads.submit(busy.call, first, "all__sleep", seconds=5)
        time.sleep(0.5)
        with listening.stream(first) as events:
            stopping(first)
            list(events)  # its session has been left
        for one in (idle, listening):
            assert one.call(second, "all__count")
            second.line_with("is taken over from replica that left it")
        assert idle.call(first, "all__count"), "passed on by the one that has left it"
        assert stateful.call(second, "own__count").startswith("2 "), "what upstreams keep stays until the end"
        assert not running.done()
        assert running.result(A_MINUTE)
    assert first.process.wait(A_MINUTE) == 0


def test_an_answer_that_the_host_has_not_got_is_left_behind_for_it(
    replicas: Replicas, host: Callable[..., Host]
) -> None:
    first, second = replicas.start(), replicas.start()
    alice = host()
    alice.open(first)
    call = alice.message("tools/call", {"name": "own__sleep", "arguments": {"seconds": 1}})
    with alice.stream(first, call) as events:
        assert next(iter(events)) is None  # and leaves with the id to resume from
    time.sleep(2)
    stopping(first)
    assert first.process.wait(A_MINUTE) == 0
    with alice.stream(second, **{"Last-Event-ID": events.id}) as rest:
        (answer,) = rest
    assert answer["id"] == call["id"]
    assert answer["result"]["content"][0]["text"].startswith("1 ")


@pytest.mark.parametrize("revision", ["2025-06-18", "2025-11-25"])
def test_a_stream_of_changes_goes_on_elsewhere(replicas: Replicas, host: Callable[..., Host], revision: str) -> None:
    first, second = replicas.start(), replicas.start()
    alice = host(revision=revision)
    alice.open(first)
    alice.ask(first, "resources/list")
    assert alice.ask(first, "resources/subscribe", uri="memo://all") == {"jsonrpc": "2.0", "id": 3, "result": {}}
    replicas.settle()
    with alice.stream(first) as events:
        threading.Timer(0.5, first.process.terminate).start()
        list(events)  # it ends
    first.process.wait(A_MINUTE)
    other = host(revision=revision)
    other.open(second)
    resumed = {"Last-Event-ID": events.id} if events.id else {}
    with alice.stream(second, **resumed) as rest:
        counting = threading.Timer(1.0, lambda: other.call(second, "all__count"))
        counting.start()
        changes = (event for event in rest if event is not None)
        assert next(changes)["params"] == {"uri": "memo://all"}
        counting.join(A_MINUTE)  # before its client is closed


def test_an_upload_that_is_on_its_way_is_kept(replicas: Replicas, host: Callable[..., Host]) -> None:
    first = replicas.start(clustered=False)
    alice = host()
    alice.open(first)
    began = threading.Event()

    def pieces() -> Iterator[bytes]:
        yield b"a first piece, "
        began.set()
        time.sleep(3)
        yield b"and the last one"

    with ThreadPoolExecutor() as threads:
        sending = threads.submit(alice.http.post, f"{first.url}/content", content=pieces(), headers=alice.headers)
        assert began.wait(A_MINUTE)
        stopping(first)
        assert sending.result(A_MINUTE).status_code == 201
    assert first.process.wait(A_MINUTE) == 0


def test_nobody_waits_for_lists_and_streams_that_are_idle(replicas: Replicas, host: Callable[..., Host]) -> None:
    silent = json.dumps(["-c", "import time; time.sleep(600)"])
    replicas.more = f"[upstreams.silent]\ncommand = {json.dumps(sys.executable)}\nargs = {silent}\n"
    first = replicas.start(clustered=False)
    alice, bob = host(revision="2025-06-18"), host(BOB)
    alice.open(first)
    for _ in range(2):
        first.line_with(": ready, 3 tools")
    with ThreadPoolExecutor() as threads, alice.stream(first) as idle:
        listing = threads.submit(bob.ask_tools, first)
        time.sleep(1)
        assert not listing.done(), "it waits for the third"
        began = time.monotonic()
        first.process.send_signal(signal.SIGINT)
        assert {"own__count", "all__count"} <= set(listing.result(A_MINUTE)), "what is there"
        list(idle)  # it ends properly
        assert first.process.wait(A_MINUTE) == 130
    assert time.monotonic() - began < 12


def test_a_list_that_waits_when_the_grace_is_over_is_answered(replicas: Replicas, host: Callable[..., Host]) -> None:
    silent = json.dumps(["-c", "import time; time.sleep(600)"])
    server = f"[upstreams.silent]\ncommand = {json.dumps(sys.executable)}\nargs = {silent}\n"
    replicas.more = f'[http]\ndrain_grace = "2s"\n{server}'
    first = replicas.start(clustered=False)
    alice, bob = host(), host(BOB)
    alice.open(first)
    for _ in range(2):
        first.line_with(": ready, 3 tools")
    with ThreadPoolExecutor() as threads:
        running = threads.submit(alice.post, first, sleeping(alice))  # its host would resume the stream elsewhere
        listing = threads.submit(bob.ask_tools, first)
        time.sleep(1)
        stopping(first)
        assert {"own__count", "all__count"} <= set(listing.result(A_MINUTE))
        assert isinstance(running.exception(A_MINUTE), httpx2.RemoteProtocolError)
    assert first.process.wait(A_MINUTE) == 0


def sleeping(host: Host) -> dict[str, Any]:
    """A call that takes longer than anybody waits."""
    return host.message("tools/call", {"name": "own__sleep", "arguments": {"seconds": 300}})
