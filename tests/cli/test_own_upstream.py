"""A gateway is never its own upstream, however that is written: it would start itself, or list its lists, for ever."""

import json
import os
import socket
import subprocess
import sys
import time

import pytest

from gateway.system.gateway_chain import VARIABLE, chain_in, comes_from, gateway_id, join_chain, via

SHARED = pytest.mark.parametrize("shared", [(), ("--shared",)])


@pytest.fixture
def free_port():
    """A port on which nothing listens now."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return listener.getsockname()[1]


def with_itself(path, *shared):
    """Make the gateway with this configuration its own upstream, `me`, over stdio."""
    words = json.dumps(["-m", "gateway", "serve", *shared, "--config", str(path)])
    python = json.dumps(sys.executable)
    path.write_text(f"{path.read_text()}[upstreams.me]\ncommand = {python}\nargs = {words}\n")


@SHARED
def test_a_command_that_starts_the_same_gateway_is_refused(start, command, pictures, shared):
    path = pictures("[shared]\nlinger = 1\n")
    with_itself(path, *shared)
    process = start("serve", "--config", path, *shared)
    process.initialize()
    names = process.offered()
    assert {name.partition("__")[0] for name in names if not name.startswith("gateway_")} == {"pics"}
    for _ in range(100):
        if "would be its own upstream" in (told := command("logs").out):
            break
        time.sleep(0.1)
    assert f"the gateway with {path} would be its own upstream" in told
    assert "mcp-gateway remove NAME" in told


def test_its_own_address_is_refused(start, command, pictures, free_port):
    path = pictures(f'[upstreams.me]\nurl = "http://127.0.0.1:{free_port}/mcp"\n')
    process = start("serve", "--http", "--port", free_port, "--config", path)
    process.line_with("an upstream of this gateway leads back to it, and is refused")
    process.line_with("upstream me: failed: answered HTTP 508: it is this gateway itself, or leads back to it")
    assert "take it out of the configuration" in command("status").out


def test_a_gateway_that_serves_on_any_port_is_not_taken_over_from_a_host(over_http, command, pictures, tmp_path):
    _, address = over_http(pictures())
    hosts = tmp_path / "hosts.json"
    hosts.write_text(json.dumps({"mcpServers": {"mine": {"url": address}, "other": {"url": "http://127.0.0.1:9/mcp"}}}))
    shown = {row["name"]: row["result"] for row in command("import", hosts, "--dry-run", "--json").json()["servers"]}
    assert shown == {"mine": "own", "other": "new"}


def test_a_host_that_a_tool_starts_may_have_the_same_gateway(start, command, pictures, tmp_path):
    """`claude` in a shell, say: the environment is passed on, but it is that host that starts the gateway."""
    path = pictures()
    serve = [sys.executable, "-m", "gateway", "serve", "--config", str(path)]
    host = "import subprocess, sys; subprocess.run(sys.argv[1:])"
    tool = f"import subprocess, sys; subprocess.run([sys.executable, '-c', {host!r}, *sys.argv[1:]])"
    outer = tmp_path / "outer.toml"
    words = json.dumps(["-c", tool, *serve])
    outer.write_text(f"[upstreams.shell]\ncommand = {json.dumps(sys.executable)}\nargs = {words}\n")
    chain = dict(os.environ)
    join_chain(path, chain)
    process = start("serve", "--config", outer, env=chain)  # as if it had been started by the gateway with `path`
    process.initialize()
    assert "shell__pics__picture" in process.offered()


def test_a_chain_of_gateways_goes_on_until_one_comes_again(tmp_path):
    first, second, environ = tmp_path / "a.toml", tmp_path / "b.toml", dict(os.environ)
    for config in (first, second, None):
        join_chain(config, environ)
    assert [one.gateway for one in chain_in(environ)] == [gateway_id(first), gateway_id(second)]
    header = via(environ)["via"]
    assert comes_from(header, gateway_id(first))
    assert comes_from(f"1.1 proxy, {header}", gateway_id(second))
    assert not comes_from(header, gateway_id(tmp_path / "c.toml"))
    check = "import os; from pathlib import Path; from gateway.system.gateway_chain import check_chain; "
    for config, refused in ((first, True), (tmp_path / "c.toml", False)):
        words = f"{check}check_chain(Path({str(config)!r}), os.environ)"
        child = subprocess.run([sys.executable, "-c", words], env=environ, capture_output=True, text=True, timeout=60)
        assert ("a.toml would be its own upstream" in child.stderr) is refused, child.stderr


@pytest.mark.parametrize("value", ["", "nonsense", "," * 1_000, "1.1 mcp-gateway-zz"])
def test_a_variable_that_somebody_else_has_set_is_no_chain(value):
    assert chain_in({VARIABLE: value}) == ()
    assert via({VARIABLE: value}) == {}
