"""`mcp-gateway status`: running gateways as their owner sees them."""

import json
import os
import signal
import sys
import urllib.request
from pathlib import Path

import pytest

from tests.servers.loopback import open_url

pytestmark = pytest.mark.skipif(os.name != "posix", reason="Unix sockets and signals are POSIX's")


def test_a_gateway_on_stdio_tells_of_its_host_and_of_each_upstream(start, pictures, command, ask):
    config = pictures('[upstreams.gone]\ncommand = "no-such-program-anywhere"\n')
    process = start("serve", "--config", config)
    process.initialize("claude-code")
    pid = int(ask(process, "pics__pid"))
    assert ask(process, "pics__refuse", fails=True)
    (gateway,) = command("status", "--json").json()["gateways"]
    assert (gateway["pid"], gateway["transports"], gateway["config"]) == (process.process.pid, ["stdio"], str(config))
    assert gateway["memory_bytes"] > 10_000_000
    assert gateway["store"] == {"url": "memory://", "bytes": 0, "pieces": 0, "max_bytes": 256 * 1024 * 1024}
    requests = gateway["requests"]
    assert (requests["running"], requests["waiting"], set(requests["refused"].values())) == (0, 0, {0})
    (host,) = gateway["hosts"]
    assert (host["name"], host["revision"], host["profile"]) == ("claude-code", "2025-06-18", "claude-code")
    assert (host["principal"], host["because"]) == ("local", "the client calls itself 'claude-code'")
    assert host["requests"] >= 2
    pics, gone = gateway["upstreams"]
    assert (pics["name"], pics["state"], pics["revision"], pics["pid"]) == ("pics", "ready", "2025-11-25", pid)
    assert (pics["calls"], pics["restarts"]) == ({"total": 2, "failed": 1, "running": 0}, 0)
    assert pics["memory_bytes"] > 1_000_000
    assert (gone["state"], gone["pid"]) == ("failed", None)
    assert "'no-such-program-anywhere' was not found" in gone["cause"]
    assert (gone["code"], pics["code"]) == ("command_not_found", None)
    shown = command("status").out
    for words in (
        "mcp-gateway 0.",
        "stdio",
        "store: memory://, ",
        "run, 0 wait",
        "host claude-code 1: 2025-06-18, profile claude-code",
        "was not found",
    ):
        assert words in shown


def test_a_tool_that_is_withheld_is_named_and_the_others_are_served(start, command, tmp_path):
    bad = {"name": "bad", "inputSchema": {"type": "object", "properties": {"when": {"type": "date"}}}}
    script = tmp_path / "script.json"
    script.write_text(json.dumps({"tools": [bad, {"name": "good", "inputSchema": {"type": "object"}}], "results": {}}))
    server = Path(__file__).parents[1] / "servers" / "scripted_stdio.py"
    config = tmp_path / "mcp-gateway.toml"
    arguments = json.dumps([str(server), str(script)])
    config.write_text(f"[upstreams.x]\ncommand = {json.dumps(sys.executable)}\nargs = {arguments}\n")
    process = start("serve", "--config", config)
    process.initialize("claude-code")
    assert [name for name in process.offered() if name.startswith("x__")] == ["x__good"]
    (upstream,) = command("status", "--json").json()["gateways"][0]["upstreams"]
    why = "its inputSchema is invalid (properties.when: there is no type 'date')"
    assert upstream["withheld"] == [{"tool": "bad", "why": why}]
    assert f"  x: the tool bad is withheld: {why}\n" in command("status").out


def test_lists_that_are_cut_are_named(start, command, tmp_path):
    tools = [{"name": f"tool{n}", "description": "x" * 10_000, "inputSchema": {"type": "object"}} for n in range(5)]
    script = tmp_path / "script.json"
    script.write_text(json.dumps({"tools": tools, "results": {}}))
    server = Path(__file__).parents[1] / "servers" / "scripted_stdio.py"
    config = tmp_path / "mcp-gateway.toml"
    arguments = json.dumps([str(server), str(script)])
    config.write_text(
        f"[upstreams.x]\ncommand = {json.dumps(sys.executable)}\nargs = {arguments}\n"
        "limits = { list_bytes = 35000 }\n"
    )
    process = start("serve", "--config", config)
    process.initialize("claude-code")
    assert [name for name in process.offered() if name.startswith("x__")] == ["x__tool0", "x__tool1", "x__tool2"]
    (upstream,) = command("status", "--json").json()["gateways"][0]["upstreams"]
    (why,) = upstream["left_out"]
    assert why.startswith("only the first 3 of its tools are offered: there are more bytes than limits.list_bytes")
    assert f"  x: {why}\n" in command("status").out


def test_an_upstream_that_was_killed_counts_its_restart(start, pictures, command, ask):
    process = start("serve", "--config", pictures())
    process.initialize()
    pid = int(ask(process, "pics__pid"))
    os.kill(pid, signal.SIGKILL)
    while (again := ask(process, "pics__pid", fails=None)) is None or int(again) == pid:
        pass
    (pics,) = command("status", "--json").json()["gateways"][0]["upstreams"]
    assert (pics["restarts"], pics["pid"]) == (1, int(again))


def test_several_gateways_are_listed_and_one_can_be_chosen(start, pictures, command):
    processes = [start("serve", "--http", "--port", "0", "--config", pictures()) for _ in range(2)]
    for process in processes:
        process.line_with("listening on")
    wait_for(command, 2)
    listed = command("status", "--json").json()["gateways"]
    assert {gateway["pid"] for gateway in listed} == {process.process.pid for process in processes}
    assert all(gateway["transports"][0].endswith("/mcp") for gateway in listed)
    pid = processes[1].process.pid
    assert [one["pid"] for one in command("status", "--json", "--pid", str(pid)).json()["gateways"]] == [pid]
    assert len(command("status", "--json", "--name", "mcp-gateway").json()["gateways"]) == 2
    wrong = command("status", "--name", "nobody")
    assert (wrong.code, wrong.out) == (1, "")
    assert f"no running gateway called 'nobody' (there are: {listed[0]['pid']} (mcp-gateway, " in wrong.err
    for several in ("reload", "stop"):
        refused = command(several)
        assert refused.code == 2
        assert "2 gateways are running (choose one with --pid: " in refused.err


def test_without_any_it_says_how_one_is_started(command):
    for arguments in (["status"], ["reload"], ["stop"], ["status", "--pid", "1"]):
        ended = command(*arguments)
        assert (ended.code, ended.out) == (1, "")
        assert ended.err == "error: no gateway is running (a host starts one, or you do: mcp-gateway serve --http)\n"
    assert json.loads(command("status", "--json").out) == {"gateways": []}


def test_a_killed_gateway_is_not_listed_and_one_that_hangs_is_named(start, pictures, command):
    killed, hanging = (start("serve", "--http", "--port", "0", "--config", pictures()) for _ in range(2))
    for process in (killed, hanging):
        process.line_with("listening on")
    wait_for(command, 2)
    killed.process.kill()
    killed.wait()
    os.kill(hanging.process.pid, signal.SIGSTOP)
    ended = command("status")
    os.kill(hanging.process.pid, signal.SIGCONT)
    assert (ended.code, ended.out) == (1, "")
    assert ended.err == f"error: the gateway {hanging.process.pid} did not answer within 5 s\n"


def test_a_door_that_cannot_be_opened_costs_one_warning(start, pictures, monkeypatch, tmp_path, ask):
    in_the_way = tmp_path / "file"
    in_the_way.write_text("")
    monkeypatch.setenv("XDG_DATA_HOME", str(in_the_way))
    runtime = tmp_path / "runtime"
    runtime.mkdir(mode=0o700)
    (runtime / "mcp-gateway").write_text("")
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(runtime))
    process = start("serve", "--config", pictures())
    process.initialize()
    assert int(ask(process, "pics__pid"))
    process.process.stdin.close()
    assert process.wait() == 0
    assert len([line for line in process.rest(process.err) if "no control endpoint" in line]) == 1


def wait_for(command, count):
    while len(command("status", "--json").json()["gateways"]) < count:
        pass


def test_a_host_with_a_token_is_named_with_its_principal_until_the_token_is_removed(start, command, pictures):
    config = pictures("[http]\nport = 0\n")
    token = command("token", "add", "bob", "--calls-per-minute", "1", "--config", config).out.strip()
    process = start("serve", "--http", "--config", config)
    url = process.line_with("listening on ").split()[2]

    def ask(method, params):
        headers = {"MCP-Protocol-Version": "2026-07-28", "Mcp-Method": method, "Authorization": f"Bearer {token}"}
        headers |= {"Accept": "application/json, text/event-stream", "Content-Type": "application/json"}
        headers |= {"Mcp-Name": params["name"]} if "name" in params else {}
        about = "io.modelcontextprotocol/"
        client = {f"{about}clientInfo": {"name": "tester", "version": "9"}, f"{about}clientCapabilities": {}}
        params = {**params, "_meta": {f"{about}protocolVersion": "2026-07-28", **client}}
        message = json.dumps({"jsonrpc": "2.0", "id": 1, "method": method, "params": params}).encode()
        with open_url(urllib.request.Request(url, message, headers), 60) as response:
            return response.read().decode()

    for _ in range(2):
        answer = ask("tools/call", {"name": "pics__pid", "arguments": {}})
    assert "only 1 tool call a minute is allowed" in answer
    assert "call pics__pid: ok" in (line := process.line_with("call pics__pid"))
    assert "host tester, principal bob, profile" in line
    line = process.line_with("call pics__pid: denied")
    assert "cause only 1 tool call a minute is allowed" in line
    (gateway,) = command("status", "--json").json()["gateways"]
    assert [(host["principal"], host["token"]) for host in gateway["hosts"]] == [("bob", "bob")]
    assert "host tester 9 of bob: 2026-07-28" in command("status").out
    assert command("token", "add", "carol", "--config", config).code == 0
    assert command("token", "rm", "bob", "--config", config).code == 0
    assert command("reload").code == 0
    (gateway,) = command("status", "--json").json()["gateways"]
    assert gateway["hosts"] == []


def test_a_resource_that_an_upstream_does_not_have_is_no_failed_call(start, command, pictures):
    process = start("serve", "--config", pictures())
    process.initialize("claude-code")
    process.send(id="read", method="resources/read", params={"uri": "file:///nobody/has/this"})
    assert "error" in process.answer("read")
    (gateway,) = command("status", "--json").json()["gateways"]
    assert gateway["upstreams"][0]["calls"]["failed"] == 0
