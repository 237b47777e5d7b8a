"""`mcp-gateway logs`: what a gateway logged, while it runs and after."""

import os
import re
import signal
import time

import pytest

pytestmark = pytest.mark.skipif(os.name != "posix", reason="Unix sockets are POSIX's")

PATIENCE = 60
SECRET = "hidden-value-of-a-key"


def test_the_log_is_shown_while_the_gateway_runs_and_after(start, pictures, command, ask, monkeypatch):
    config = pictures(f'env = {{ API_KEY = "{SECRET}" }}\n')
    process = start("serve", "--config", config)
    process.initialize()
    ask(process, "pics__echo", {"name": "content-of-a-call"})
    log = command("status", "--json").json()["gateways"][0]["log"]
    assert os.stat(log).st_mode & 0o777 == 0o600
    shown = command("logs")
    assert shown.code == 0
    assert f"process {process.process.pid}, {config}" in shown.out
    assert "content-of-a-call" not in shown.out
    assert SECRET not in shown.out
    assert command("logs", "--lines", "1").out.count("\n") == 1
    process.process.stdin.close()
    assert process.wait() == 0
    monkeypatch.setenv("MCP_GATEWAY_CONFIG", str(config))
    after = command("logs")
    none, ended = after.err.splitlines()
    said = f"no gateway is running; this is the newest log that one with {config} has left (one that ends within"
    assert none.startswith(said)
    assert re.fullmatch(
        rf"the gateway {process.process.pid} has ended; its last line is from \d{{4}}-\d\d-\d\d \d\d:\d\d:\d\d",
        ended,
    )
    assert shown.out.splitlines()[0] in after.out
    by_pid = command("logs", "--pid", str(process.process.pid))
    assert (by_pid.out, by_pid.err) == (after.out, f"{ended}\n")
    assert command("logs", "--follow", "--pid", str(process.process.pid)) == by_pid
    assert command("logs", "--pid", "1").err.startswith("error: no gateway is running")


def test_what_is_written_is_followed_until_the_gateway_ends(start, pictures, command):
    gateway = start("serve", "--http", "--port", "0", "--config", pictures())
    gateway.line_with("listening on")
    while not command("status", "--json").json()["gateways"]:
        pass
    follower = start("logs", "--follow", "--lines", "0", "--pid", str(gateway.process.pid))
    # Whether it follows already cannot be seen; from then on every reload is told.
    while follower.out.empty():
        assert command("reload").code == 0
    assert "asked to read the configuration again" in follower.out.get()
    assert command("stop").code == 0
    assert follower.wait() == 0
    assert any("asked to stop" in line for line in follower.rest(follower.out))
    told = list(follower.rest(follower.err))
    pid = gateway.process.pid
    assert told == [
        f"the gateway {pid} is running; waiting for new lines (Ctrl-C ends this)",
        f"the gateway {pid} has ended",
    ]


def test_without_any_log_it_says_so(command):
    ended = command("logs")
    assert ended.code == 1
    assert ended.err.startswith("error: no gateway is running, and none has left a log (one that ends within a second")
    assert "mcp-gateway logs" not in command("status").err  # nothing that would not be there
    assert "mcp-gateway logs" not in command("reload").err


@pytest.mark.parametrize("words", [(), ("--name", "mine")])
def test_before_any_gateway_runs_and_after_one_has_ended_the_next_is_waited_for(start, pictures, words):
    follower = start("logs", "--follow", *words)
    waiting = "waiting for the next one (Ctrl-C ends this)"
    assert follower.err.get(timeout=PATIENCE).endswith(f"; {waiting}")
    for _ in range(2):
        gateway = start("serve", "--http", "--port", "0", "--config", pictures('[gateway]\nname = "mine"\n'))
        pid = gateway.process.pid
        assert follower.line_with("running") == f"the gateway {pid} is running; this is its log (Ctrl-C ends this)"
        while f"process {pid}, " not in follower.out.get(timeout=PATIENCE):
            pass
        gateway.process.send_signal(signal.SIGTERM)
        assert follower.line_with("ended") == f"the gateway {pid} has ended; {waiting}"
    follower.process.send_signal(signal.SIGINT)
    assert follower.wait() == 130


def test_a_gateway_that_has_come_and_gone_between_two_looks_is_shown_as_well(start, pictures):
    follower = start("logs", "--follow")
    follower.line_with("waiting for the next one")
    follower.process.send_signal(signal.SIGSTOP)  # between two looks
    gateway = start("serve", "--http", "--port", "0", "--config", pictures())
    gateway.line_with("listening on")
    gateway.process.send_signal(signal.SIGTERM)
    assert gateway.wait() == 0
    follower.process.send_signal(signal.SIGCONT)
    pid = gateway.process.pid
    assert follower.line_with("come and gone") == f"the gateway {pid} has come and gone; this is its log"
    while f"process {pid}, " not in follower.out.get(timeout=PATIENCE):
        pass
    assert follower.line_with("has ended").startswith(f"the gateway {pid} has ended; its last line is from")
    follower.process.send_signal(signal.SIGINT)
    assert follower.wait() == 130


def test_the_last_log_is_shown_before_the_next_gateway_is_waited_for(start, pictures):
    gateway = start("serve", "--http", "--port", "0", "--config", pictures())
    gateway.line_with("listening on")
    gateway.process.send_signal(signal.SIGTERM)
    assert gateway.wait() == 0
    follower = start("logs", "--follow")
    assert f"process {gateway.process.pid}, " in follower.out.get(timeout=PATIENCE)
    assert "this is the newest log that one with " in follower.err.get(timeout=PATIENCE)
    assert re.search(r"has ended; .*; waiting for the next one", follower.err.get(timeout=PATIENCE))


def test_of_the_logs_that_are_left_the_one_of_the_configuration_in_force_is_shown(
    start, pictures, command, tmp_path, monkeypatch
):
    own = pictures()
    other = tmp_path / "demo.toml"
    other.write_text(own.read_text())
    for config in (own, other):
        process = start("serve", "--config", config)
        process.initialize()
        time.sleep(1.1)  # logs are told apart by their time
        process.process.stdin.close()
        assert process.wait() == 0
    monkeypatch.setenv("MCP_GATEWAY_CONFIG", str(own))
    shown = command("logs")
    assert f"this is the newest log that one with {own} has left" in shown.err
    assert f", {own}" in shown.out
    new = tmp_path / "new.toml"
    monkeypatch.setenv("MCP_GATEWAY_CONFIG", str(new))
    shown = command("logs")
    assert f"none with {new} has left a log; this is the newest log that one with {other}" in shown.err
    assert f", {other}" in shown.out
