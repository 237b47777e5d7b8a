"""Servers that want a login (OAuth): said wherever they are seen, with the command that logs in."""

import json
import tomllib
from pathlib import Path

import pytest


@pytest.fixture
def cursor(http_server):
    """Cursor's file, with these servers; `{here}` in a url is a server on loopback."""
    file = Path.cwd() / ".cursor" / "mcp.json"
    file.parent.mkdir()

    def write(**servers):
        text = json.dumps({"mcpServers": servers}).replace("{here}", http_server)
        file.write_text(text)
        return file

    return write


@pytest.fixture
def own():
    """The user's own configuration."""
    return Path.cwd() / "mcp-gateway" / "mcp-gateway.toml"


OPEN = {"url": "{here}/mcp"}
OAUTH = {"url": "{here}/login/oauth"}


def upstreams(path):
    return tomllib.loads(path.read_text()).get("upstreams", {})


def results(ended):
    return {one["name"]: one["result"] for one in ended.json()["servers"]}


def test_import_takes_it_over_and_names_the_command_that_logs_in(command, cursor, own, http_server):
    cursor(open=OPEN, linear=OAUTH)
    ended = command("import", "cursor", "--yes")
    assert ended.code == 0
    assert ended.err == "linear wants a login (OAuth): `mcp-gateway login linear` opens it in your browser\n"
    assert upstreams(own)["linear"] == {"url": f"{http_server}/login/oauth"}
    assert results(command("import", "cursor", "--yes", "--json")) == {"open": "known", "linear": "known"}


def test_with_mcp_remote_it_is_taken_over_and_then_is_there_already(command, cursor, own, http_server):
    cursor(linear={**OAUTH, "timeout": 60, "disabledTools": ["rm"]})
    ended = command("import", "cursor", "--yes", "--mcp-remote")
    assert ended.code == 0
    url = f"{http_server}/login/oauth"
    assert upstreams(own)["linear"] == {
        "command": "npx",
        "args": ["-y", "mcp-remote", url],
        "tools": {"exclude": ["rm"]},
        "timeout": {"start": 180},
    }
    assert results(command("import", "cursor", "--yes", "--json")) == {"linear": "known"}
    ended = command("install", "cursor", "--only")
    assert "taken out: linear\n" in ended.out
    assert ended.err == ""


def test_only_takes_it_out_as_any_other(command, cursor, own):
    file = cursor(open=OPEN, linear=OAUTH)
    assert command("import", "cursor", "--yes").code == 0
    ended = command("install", "cursor", "--only")
    assert (ended.code, ended.err) == (0, "")
    assert set(json.loads(file.read_text())["mcpServers"]) == {"gateway"}
    assert "taken out: open, linear\n" in ended.out
    assert "byte for byte" in command("uninstall", "cursor").out
    assert set(json.loads(file.read_text())["mcpServers"]) == {"open", "linear"}


@pytest.mark.parametrize(
    ("host", "path", "table", "entry"),
    [
        ("claude-code", ".claude.json", "mcpServers", {"type": "http", "oauth": {"clientId": "x"}}),
        ("gemini-cli", ".gemini/settings.json", "mcpServers", {"oauth": {"enabled": True}}),
        ("gemini-cli", ".gemini/settings.json", "mcpServers", {"authProviderType": "google_credentials"}),
        ("cursor", ".cursor/mcp.json", "mcpServers", {"auth": {"CLIENT_ID": "x"}}),
        ("opencode", "opencode/opencode.json", "mcp", {"type": "remote", "oauth": {}}),
    ],
)
def test_what_its_hosts_entry_says_needs_no_network(command, host, path, table, entry):
    file = Path.cwd() / path
    file.parent.mkdir(exist_ok=True)
    url = {"url": "https://mcp.example.invalid/mcp"}
    others = {"token": {**url, **entry, "headers": {"Authorization": "Bearer x"}}, "off": {**url, "oauth": False}}
    file.write_text(json.dumps({table: {"linear": {**url, **entry}, **others}}))
    ended = command("import", host, "--yes", "--json", "--offline")
    assert results(ended) == {"linear": "new", "token": "new", "off": "twin"}
    assert command("install", host, "--only").code == 0
    assert set(json.loads(file.read_text())[table]) == {"gateway"}


def test_another_hosts_mcp_remote_for_the_same_url_is_its_twin(command, cursor, own, http_server):
    through = {"command": "npx", "args": ["mcp-remote@latest", f"{http_server}/login/oauth"]}
    cursor(linear=OAUTH, again=through)
    ended = command("import", "cursor", "--yes", "--json")
    assert results(ended) == {"linear": "twin", "again": "new"}
    assert list(upstreams(own)) == ["again"]


def test_where_nobody_answers_that_is_said_and_nothing_waits(command, cursor, own):
    cursor(linear={"url": "https://mcp.example.invalid/mcp"}, here={"url": "http://127.0.0.1:9/mcp"})
    ended = command("import", "cursor", "--yes")
    assert ended.err == ("linear: no token is sent; should it want a login (OAuth), `mcp-gateway tools` says so\n")
    assert list(upstreams(own)) == ["linear", "here"]


def test_a_server_whose_host_asks_for_a_value_is_not_taken_silently(command, monkeypatch):
    monkeypatch.delenv("API_KEY", raising=False)
    file = Path.cwd() / "Code" / "User" / "mcp.json"
    file.parent.mkdir(parents=True)
    file.write_text('{"servers": {"x": {"command": "x", "env": {"KEY": "${input:api-key}"}}}}')
    assert command("import", "vscode", "--yes").code == 0
    ended = command("install", "vscode", "--only")
    assert "warning: not enabled behind the gateway: x (" in ended.err


def test_a_server_that_is_switched_off_behind_the_gateway_is_not_taken_silently(command, cursor, own):
    cursor(files={"command": "x"})
    assert command("import", "cursor", "--yes").code == 0
    assert command("disable", "files").code == 0
    ended = command("install", "cursor", "--only")
    assert "warning: not enabled behind the gateway: files (`mcp-gateway enable NAME` switches one on)\n" in ended.err


def test_status_and_tools_say_it_too(command, start, http_server, tmp_path, pictures, ask):
    config = pictures(f'[upstreams.linear]\nurl = "{http_server}/login/oauth"\n')
    process = start("serve", "--config", config)
    process.initialize()
    while "waits for a login" not in (said := command("status").out):
        ask(process, "pics__pid")
    assert "mcp-gateway login linear" in said
    ended = command("tools", "--config", config)
    assert ended.code == 3
    assert f"upstream linear: waits for a login (mcp-gateway login linear --config {config})" in ended.err
