"""A gateway that is told to stop: nothing that it can still finish is broken off, and another goes on with the rest."""

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tests.serving.cluster.conftest import Host, Replicas
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
