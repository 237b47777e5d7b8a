"""`mcp-gateway serve --shared`: several hosts, each with a process of its own, and one gateway behind them all."""

import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from gateway.serving.control.records import running

COUNTED = Path(__file__).parents[1] / "servers" / "counted_stdio.py"
PATIENCE = 60

pytestmark = pytest.mark.skipif(os.name != "posix", reason="the tests end gateways by signals")

MODERN = {
    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
    "io.modelcontextprotocol/clientInfo": {"name": "codex-mcp-client", "version": "2"},
    "io.modelcontextprotocol/clientCapabilities": {},
}


@pytest.fixture
def counted(tmp_path):
    """A configuration with one server that counts its starts; `counted.notes()` is what it has noted."""

    def write(more: str = "", *, session: str = "shared", linger: float = 1.0) -> Path:
        path = tmp_path / "shared.toml"
        path.write_text(
            f"{more}\n[shared]\nlinger = {linger}\n"
            f"[upstreams.one]\ncommand = {json.dumps(sys.executable)}\nsession = {json.dumps(session)}\n"
            f"args = [{json.dumps(str(COUNTED))}, {json.dumps(str(tmp_path / 'notes'))}]\n"
            'env = { TOKEN = "${TOKEN:-none}" }\n'
        )
        return path

    write.notes = lambda: (tmp_path / "notes").read_text().split() if (tmp_path / "notes").exists() else []
    yield write
    for record in running():  # in the runtime folder of this test alone
        os.kill(record.pid, signal.SIGKILL)


@pytest.fixture
def host(start):
    """Start a host's process, and return it introduced."""

    def call(config, *arguments, name="claude-code", **options):
        process = start("serve", "--shared", "--config", config, *arguments, **options)
        process.initialize(name)
        return process

    return call


def until(condition, what):
    deadline = time.monotonic() + PATIENCE
    while not (found := condition()):
        assert time.monotonic() < deadline, what
        time.sleep(0.05)
    return found


def call(process, name, **more):
    process.send(id=name, method="tools/call", params={"name": f"one__{name}", "arguments": {}, **more})
    result = process.answer(name)["result"]
    return result["content"][0]["text"]


def test_hosts_of_two_eras_that_start_at_once_share_one_gateway_which_ends_after_the_last(
    start, counted, command, tmp_path, monkeypatch
):
    monkeypatch.setenv("MCP_GATEWAY_CACHE", str(tmp_path / "cache"))
    config = counted()
    older = start("serve", "--shared", "--config", config)
    modern = start("serve", "--shared", "--config", config, "--profile", "cline")
    older.initialize("claude-code")
    call(older, "pid")
    call(modern, "pid", _meta=MODERN)
    (report,) = command("status", "--json").json()["gateways"]
    attached = {host["pid"]: host for host in report["attached"]}
    assert set(attached) == {older.process.pid, modern.process.pid}
    assert attached[modern.process.pid]["profile"] == "cline"
    profiles = {host["name"]: host["profile"] for host in report["hosts"]}
    assert profiles == {"claude-code": "claude-code", "codex-mcp-client": "cline"}
    told = command("status").out
    assert re.search(rf"1 request, last request \S+ s ago, process {modern.process.pid}\b", told), told

    assert command("stop").code == 0
    for process in (older, modern):
        process.line_with("the shared gateway was stopped")
    assert running() == []
    # Which eras the upstream speaks was found out above, with a start of its own, and is remembered.
    before = counted.notes().count("start")
    for process, more in ((older, {}), (modern, {"_meta": MODERN})):
        process.send(id="again", method="tools/call", params={"name": "one__pid", "arguments": {}, **more})
    assert len({process.answer("again")["result"]["content"][0]["text"] for process in (older, modern)}) == 1
    assert counted.notes().count("start") == before + 1

    (record,) = running()
    older.process.stdin.close()
    assert older.wait() == 0
    call(modern, "pid", _meta=MODERN)
    modern.process.stdin.close()
    assert modern.wait() == 0
    until(lambda: not running(), "the gateway stays though nobody is there")
    assert "has left" in Path(record.log or "").read_text()


def test_state_stays_with_its_host_unless_the_upstream_is_shared(host, counted):
    config = counted(session="host-session")
    one, other = host(config), host(config)
    assert call(one, "pid") != call(other, "pid")
    assert len(running()) == 1


def test_a_gateway_that_is_killed_in_a_call_is_replaced_and_the_call_says_what_happened(host, counted):
    config = counted()
    process = host(config)
    call(process, "pid")
    (record,) = running()
    process.send(id="cut", method="tools/call", params={"name": "one__wait", "arguments": {}})
    until(lambda: "wait" in counted.notes(), "the call has not arrived")
    os.kill(record.pid, signal.SIGKILL)
    cut = process.answer("cut")["result"]
    assert cut["isError"] is True
    assert "ended unexpectedly" in cut["content"][0]["text"]
    lists = [json.loads(process.out.get(timeout=PATIENCE))["method"] for _ in range(3)]
    assert lists == [f"notifications/{kind}/list_changed" for kind in ("tools", "resources", "prompts")]
    assert call(process, "pid")
    (following,) = running()
    assert following.pid != record.pid


def test_what_is_wrong_with_the_configuration_reaches_the_host_as_from_a_gateway_of_its_own(start, counted):
    config = counted("[gateway]\nnosuch = 1\n")
    ended = []
    for more in ([], ["--shared"]):
        process = start("serve", "--config", config, *more)
        process.initialize()
        process.send(id=2, method="tools/list")
        ended.append(process.answer(2))
        process.process.stdin.close()
        assert process.wait() == 2
    assert ended[0] == ended[1]
    assert "gateway.nosuch: unknown key" in str(ended[0])


def test_a_host_that_may_not_attach_is_told_why(host, start, counted):
    config = counted(linger=30).read_text().replace("[shared]", "[shared]\nmax_hosts = 1")
    path = counted()
    path.write_text(config)
    first = host(path)
    call(first, "pid")
    second = start("serve", "--shared", "--config", path)
    assert second.wait() == 2
    assert "max_hosts" in second.line_with("1 hosts are attached")
    first.process.stdin.close()
    first.wait()
    third = start("serve", "--shared", "--config", path, "--profile", "nosuch")
    assert third.wait() == 2
    assert "nosuch" in third.line_with("there is no profile")


def test_the_environment_is_that_of_the_first_host_and_others_are_told_of_what_differs(host, counted, command):
    config = counted()
    first = host(config, env={**os.environ, "TOKEN": "secret-one"})
    assert call(first, "token") == "secret-one"
    second = host(config, env={**os.environ, "TOKEN": "secret-two"})
    assert call(second, "token") == "secret-one"
    shown = command("status").out
    assert f"process {second.process.pid} was started with other values of TOKEN" in shown
    assert f"process {first.process.pid} was started" not in shown
    examined = command("doctor", "--config", config, "--json")
    (found,) = [one for one in examined.json()["findings"] if one["about"] == "shared gateway"]
    assert (found["level"], "TOKEN" in found["text"]) == ("warning", True)
    assert "secret" not in shown + examined.out + Path(running()[0].log or "").read_text()


def test_a_gateway_over_http_can_be_shared_with_hosts_on_stdio(start, host, counted):
    config = counted()
    http = start("serve", "--http", "--shared", "--port", "0", "--config", config)
    http.line_with("listening on")
    process = host(config)
    call(process, "pid")
    assert [record.pid for record in running()] == [http.process.pid]
    process.process.stdin.close()
    process.wait()
    http.process.send_signal(signal.SIGTERM)
    assert http.wait() == 0


@pytest.mark.parametrize(
    "arguments",
    [("--upstream", "http://127.0.0.1:9/mcp"), ("--calibrate",), ("--log-level", "debug"), ("--", "python")],
)
def test_options_of_a_gateway_of_its_own_are_refused(command, counted, arguments):
    ended = command("serve", "--shared", *arguments)
    assert ended.code == 2
    assert "--shared" in ended.err


def test_a_relay_loads_nothing_heavy():
    """Each host has one: it stays small, and answers at once."""
    program = "import sys, gateway.cli.main, gateway.serving.shared.relay\nprint(*sys.modules)"
    loaded = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout.split()
    assert not {"pydantic", "mcp", "anyio", "asyncio", "typer", "logging", "starlette"} & set(loaded)
