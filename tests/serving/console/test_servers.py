"""Servers in the console: what is shown of them, what can be done with them, and changes of the configuration."""

import json
import os
import sys
import time
import tomllib
from collections.abc import Callable, Generator
from pathlib import Path
from typing import Any

import pytest

from tests.servers.registry_server import Registry, running_registry
from tests.serving.console.browser import Browser, opened, with_hosts_of
from tests.telemetry.conftest import META, PATIENCE, SERVERS

PYTHON = json.dumps(sys.executable)
TURNCOAT = json.dumps(str(SERVERS / "turncoat_stdio.py"))
CONFIG = f"""\
# my own words
[upstreams.mail]   # mine
command = {PYTHON}
args = [{TURNCOAT}]
env = {{ API_TOKEN = "env-secret-1" }}
pins = "hold"

# nobody is there
[upstreams.gone]
url = "http://127.0.0.1:9/mcp?api_key=query-secret-2"
headers = {{ Authorization = "Bearer header-secret-3" }}

[[policy.rules]]
name = "look-first"
effect = "approve"
tools = ["mail__send"]
reason = "It sends."
"""
SECRETS = ("env-secret-1", "query-secret-2", "header-secret-3")


@pytest.fixture
def config(tmp_path: Path) -> Path:
    return tmp_path / "gateway.toml"


@pytest.fixture
def console(config: Path) -> Generator[Browser]:
    with opened(config, CONFIG) as browser:
        until(lambda: browser.json("/servers/mail")["state"] == "ready")
        yield browser


def until(is_so: Callable[[], bool]) -> None:
    ends = time.monotonic() + PATIENCE
    while not is_so():
        assert time.monotonic() < ends
        time.sleep(0.05)


def called(browser: Browser, tool: str, **arguments: Any) -> Any:
    about = {f"{META}protocolVersion": "2026-07-28", f"{META}clientCapabilities": {}}
    message = {"jsonrpc": "2.0", "id": 1, "method": "tools/call"}
    headers = {"Accept": "application/json, text/event-stream", "MCP-Protocol-Version": "2026-07-28"}
    answer = browser.client.post(
        browser.base.removesuffix("/console") + "/mcp",
        json={**message, "params": {"name": tool, "arguments": arguments, "_meta": about}},
        headers={**headers, "Mcp-Method": "tools/call", "Mcp-Name": tool},
    )
    return answer.text


def test_what_is_known_of_servers_is_shown_without_secrets(console: Browser) -> None:
    until(lambda: console.json("/servers/gone")["state"] == "failed")
    listed = {one["name"]: one for one in console.json("/servers")["servers"]}
    assert listed["mail"]["tools"] == 3
    assert listed["gone"]["state"] == "failed"
    assert "refused" in listed["gone"]["cause"]
    assert listed["gone"]["remedy"]
    mail = console.json("/servers/mail")
    assert mail["server"] == "turncoat"
    assert [tool["name"] for tool in mail["listed"]["tools"]] == ["turn", "send", "look"]
    assert all(tool["is_chosen"] for tool in mail["listed"]["tools"])
    assert "mail: ready" in "\n".join(console.json("/servers/mail/log")["lines"])
    pages = ["/", "/servers", "/servers/mail", "/servers/gone", "/servers/gone/log", "/access", "/approvals"]
    for path in pages:
        assert not [secret for secret in SECRETS if secret in console.page(path)], path
    assert 'API_TOKEN = "***"' in console.json("/servers/mail")["settings"]["text"]
    assert 'href="/console/servers/mail"' in console.page("/")
    console.json("/servers/nobody", 404)


def test_a_change_is_shown_then_written_and_in_force_at_once(console: Browser, config: Path) -> None:
    form = {"change": "disable", "name": "mail"}
    shown = console.post("/changes/show", form)
    assert [line["text"] for line in shown["lines"] if line["kind"] == "added"] == ["+enabled = false"]
    assert not [secret for secret in SECRETS if secret in json.dumps(shown)]
    assert config.read_text("utf-8") == CONFIG
    written = console.post("/changes/write", {**form, "mark": shown["mark"]})
    assert (written["applied"], written["problem"]) == (["mail disabled"], None)
    assert config.read_text("utf-8") == CONFIG.replace('pins = "hold"\n', 'pins = "hold"\nenabled = false\n')
    assert console.json("/servers/mail")["state"] == "disabled"
    console.change(change="enable", name="mail")
    until(lambda: console.json("/servers/mail")["state"] == "ready")
    assert console.post("/changes/show", {"change": "enable", "name": "mail"})["lines"] == []


def test_a_file_that_changed_meanwhile_is_not_written(console: Browser, config: Path) -> None:
    form = {"change": "disable", "name": "mail"}
    mark = console.post("/changes/show", form)["mark"]
    config.write_text(CONFIG + "# another word\n")
    assert "changed meanwhile" in console.post("/changes/write", {**form, "mark": mark}, 400)["error"]
    assert config.read_text() == CONFIG + "# another word\n"
    other = {"change": "remove", "name": "mail"}
    mark = console.post("/changes/show", form)["mark"]
    console.post("/changes/write", {**other, "mark": mark}, 400)  # not what was shown
    console.post("/changes/write", form, 400)
    assert "[upstreams.mail]" in config.read_text()


def test_tools_are_chosen_and_keep_what_else_is_written(console: Browser, config: Path) -> None:
    written = console.change(change="tools", name="mail", listed=["turn", "send", "look"], offered=["look"])
    assert written["applied"] == ["mail adjusted"]
    assert 'exclude = ["turn", "send"]' in config.read_text()
    chosen = {tool["name"]: tool["is_chosen"] for tool in console.json("/servers/mail")["listed"]["tools"]}
    assert chosen == {"turn": False, "send": False, "look": True}
    console.change(change="tools", name="mail", listed=["send"], offered=["send"])
    assert 'exclude = ["turn"]' in config.read_text()
    assert config.read_text().startswith("# my own words\n[upstreams.mail]   # mine\n")


def test_servers_are_added_and_removed(console: Browser, config: Path) -> None:
    console.change(change="add", name="more", server=f'{sys.executable} "{SERVERS / "turncoat_stdio.py"}" more')
    until(lambda: console.json("/servers/more")["state"] == "ready")
    assert console.json("/servers/more")["server"] == "more"
    console.change(change="add", name="far", server="http://127.0.0.1:9/mcp", headers="X-Key: header-secret-9")
    assert 'X-Key = "header-secret-9"' in config.read_text()
    shown = console.post("/changes/show", {"change": "remove", "name": "far"})
    assert "header-secret-9" not in json.dumps(shown)
    console.change(change="remove", name="more")
    console.change(change="remove", name="far")
    assert config.read_text() == CONFIG
    console.json("/servers/more", 404)


IMPOSSIBLE: list[dict[str, str]] = [
    {},
    {"change": "explode"},
    {"change": "add", "name": "x"},
    {"change": "add", "name": "<script>", "server": "npx y"},
    {"change": "add", "name": "a__b", "server": "npx y"},
    {"change": "add", "name": "mail", "server": "npx y"},
    {"change": "add", "name": "gateway", "server": "npx y"},
    {"change": "add", "name": "x", "server": 'npx "y'},
    {"change": "add", "name": "x", "server": "npx y", "headers": "A: b"},
    {"change": "add", "name": "x", "server": "http://h/mcp", "env": "A=b"},
    {"change": "add", "name": "x", "server": "http://h/mcp", "headers": "no colon"},
    {"change": "add", "name": "x" * 100_000, "server": "npx y"},
    {"change": "enable", "name": "\x1b[31mnobody"},
    {"change": "tools", "name": "nobody", "listed": "a"},
    {"change": "import"},
    {"change": "import", "server": "nobody"},
]


def test_changes_that_cannot_be_made_are_refused_with_words(console: Browser, config: Path) -> None:
    for form in IMPOSSIBLE:
        assert console.post("/changes/show", form, 400)["error"], form
        part = console.part("/changes/show", form)
        assert "<script>" not in part
        assert "\x1b" not in part
        console.post("/changes/write", form, 400)
    assert config.read_text() == CONFIG


def test_forms_of_other_pages_and_too_large_ones_are_refused(console: Browser, config: Path) -> None:
    form = {"change": "disable", "name": "mail"}
    for headers in ({}, {"X-Console-Token": "0" * 64}):
        for path in ("/changes/show", "/changes/write", "/servers/mail/restart", "/servers/mail/logout"):
            answer = console.client.post(f"{console.base}/api{path}", data=form, headers=headers)
            assert answer.status_code == 403
    console.post("/changes/show", {**form, "more": "x" * 5_000_000}, 400)
    for body in (b"[1]", b"{", b'{"change": {}}', b'{"change": "\\ud800"}'):
        own = {"X-Console-Token": console.token, "Content-Type": "application/json"}
        assert console.client.post(f"{console.base}/api/changes/show", content=body, headers=own).status_code == 400
    assert config.read_text() == CONFIG


def test_a_server_is_restarted(console: Browser) -> None:
    before = console.json("/servers/mail")
    assert console.post("/servers/mail/restart")["name"] == "mail"
    until(lambda: console.json("/servers/mail/state")["state"] == "ready")
    after = console.json("/servers/mail")
    assert after["pid"] != before["pid"]
    assert after["restarts"] == before["restarts"] + 1
    console.change(change="disable", name="mail")
    console.post("/servers/mail/restart", status=400)
    console.post("/servers/nobody/restart", status=400)


def test_changed_tools_are_shown_and_approved_as_they_were_seen(console: Browser) -> None:
    called(console, "mail__look")
    called(console, "mail__turn")
    until(lambda: called(console, "mail__look") and bool(console.json("/servers/mail")["pins"]["changes"]))
    pins = console.json("/servers/mail")["pins"]
    assert {change["tool"] for change in pins["changes"]} == {"send", "look", "find"}
    withheld = {tool["name"]: tool["withheld"] for tool in console.json("/servers/mail")["listed"]["tools"]}
    assert "bcc" in withheld["send"]
    assert (withheld["turn"], withheld["look"]) == (None, None)
    assert "Changed since it was pinned" in console.page("/servers/mail")
    console.post("/servers/mail/pins", {"mark": "0" * 64}, 400)
    assert console.post("/servers/mail/pins", {"mark": pins["mark"]})["approved"] == 3
    assert console.json("/servers/mail")["pins"]["changes"] == []


def test_waiting_calls_are_approved_and_denied(console: Browser) -> None:
    assert "No call waits" in console.page("/approvals")
    called(console, "mail__send", to="<script>alert(1)</script>\x1b[31m")
    (waiting,) = console.json("/approvals")["waiting"]
    assert (waiting["tool"], waiting["rule"], waiting["reason"]) == ("send", "look-first", "It sends.")
    page = console.page("/approvals")
    assert "<script>alert" not in page
    assert "\x1b" not in page
    assert console.json("/servers")["approvals"] == 1
    assert console.post(f"/approvals/{waiting['id']}/deny")["verdict"] == "denied"
    console.post("/approvals/nothing/approve", status=400)
    called(console, "mail__send", to="you")
    (waiting,) = console.json("/approvals")["waiting"]
    assert "approved" in console.part(f"/approvals/{waiting['id']}/approve")
    assert "approval" not in called(console, "mail__send", to="you")


def test_who_has_access_is_shown_without_secrets(config: Path) -> None:
    text = """
[http]
token = "the-shared-secret-token"
[access.tokens.alice]
token = "the-secret-of-alice-1"
upstreams = ["mail"]
expires = 2020-01-01
[policy]
read_only = true
[audit]
path = "audit.jsonl"
"""
    with opened(config, CONFIG.replace("[[policy.rules]]", "[[policy.rules]]", 1) + text) as console:
        access = console.json("/access")
        assert access["tokens"][0]["state"] == "expired"
        assert access["tokens"][0]["upstreams"] == ["mail"]
        assert access["rules"][0]["conditions"] == {"tools": ["mail__send"]}
        assert access["audit"]["problem"] is None
        page = console.page("/access")
        assert "alice" in page
        assert "secret" not in page


def test_an_empty_gateway_takes_over_the_servers_of_hosts(config: Path) -> None:
    servers = {
        "mail": {"command": sys.executable, "args": [str(SERVERS / "turncoat_stdio.py")], "env": {"MY_KEY": "plain-9"}},
        "<b>other</b>": {"command": "npx", "args": ["x"]},
    }
    with_hosts_of(config.parent, servers)
    with opened(config, "# nothing yet\n") as console:
        assert "found-servers" in console.page("/")
        assert "found-servers" in console.page("/servers")
        found = console.json("/found-servers")
        assert [(one["name"], one["result"]) for one in found["servers"]] == [("mail", "new"), ("<b>other</b>", "new")]
        assert found["servers"][0]["has_plain_secrets"]
        page = console.page("/found-servers")
        assert "<b>other" not in page
        assert "plain-9" not in page
        form = {"change": "import", "server": ["mail"]}
        assert "plain-9" not in json.dumps(console.post("/changes/show", form))
        assert console.change(**form)["applied"] == ["mail added"]
        until(lambda: console.json("/servers/mail")["state"] == "ready")
        assert config.read_text().startswith("# nothing yet\n")
        assert 'MY_KEY = "plain-9"' in config.read_text()
        assert [one["result"] for one in console.json("/found-servers")["servers"]] == ["known", "new"]


def test_a_file_that_cannot_be_used_is_written_but_not_in_force(console: Browser, config: Path) -> None:
    config.write_text(CONFIG + "\n[nonsense]\nx = 1\n")
    written = console.change(change="disable", name="mail")
    assert "nonsense" in written["problem"]
    assert console.json("/servers/mail")["state"] == "ready"
    assert "not in force" in console.page("/servers")


def test_hostile_names_and_words_of_a_server_do_nothing(config: Path, tmp_path: Path) -> None:
    tools = [
        {"name": "<img src=x onerror=alert(1)>", "description": "<script>alert(1)</script>\x1b[31m", "inputSchema": {}},
        {"name": "odd \x1b[31m \ud800", "description": "\u202ereversed", "inputSchema": {"type": "object"}},
        {"name": "[a]*", "description": "x" * 100_000, "inputSchema": {"type": "object"}},
        {"name": 7},
        *({"name": f"tool_{number}", "inputSchema": {"type": "object"}} for number in range(1_000)),
    ]
    script = tmp_path / "hostile.py"
    script.write_text(
        "import json, sys\n"
        f"TOOLS = json.loads({json.dumps(json.dumps(tools))})\n"
        "for line in sys.stdin:\n"
        "    message = json.loads(line)\n"
        "    if 'id' not in message: continue\n"
        "    result = {'tools': TOOLS} if message['method'] == 'tools/list' else {\n"
        "        'protocolVersion': '2025-11-25', 'capabilities': {'tools': {}}, 'instructions': '<script>',\n"
        "        'serverInfo': {'name': '<script>', 'version': '\\ud800'}}\n"
        "    print(json.dumps({'jsonrpc': '2.0', 'id': message['id'], 'result': result}), flush=True)\n"
    )
    text = f"[upstreams.bad]\ncommand = {PYTHON}\nargs = [{json.dumps(str(script))}]\n"
    with opened(config, text) as console:
        until(lambda: console.json("/servers/bad")["state"] == "ready")
        page = console.page("/servers/bad")
        for forbidden in ("<script>", "<img", "\x1b", "\u202e"):
            assert forbidden not in page
        listed = console.json("/servers/bad")["listed"]
        assert len(listed["tools"]) == 100
        assert listed["count"] >= 1_000
        assert not next(one for one in listed["tools"] if one["name"].startswith("odd"))["may_be_chosen"]
        more = console.json("/servers/bad?text=tool_99&from=0")["listed"]
        assert more["fitting"] == 11
        console.change(change="tools", name="bad", listed=["[a]*", "tool_1"], offered=["tool_1"])
        chosen = {one["name"]: one["is_chosen"] for one in console.json("/servers/bad")["listed"]["tools"]}
        assert not chosen["[a]*"]
        assert chosen["tool_1"]


def test_each_page_names_the_configuration_of_its_gateway(console: Browser, config: Path) -> None:
    for path in ("/", "/servers", "/approvals"):
        assert str(config) in console.page(path).split('<footer class="foot">')[1]


@pytest.fixture
def registry() -> Generator[Registry]:
    with running_registry() as one:
        yield one


def with_registry(registry: Registry) -> str:
    return f'# mine\n[registry]\nurl = "{registry.base}"\ncache = 0\n'


def test_a_server_of_the_registry_is_found_filled_in_and_added(
    registry: Registry, config: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYTHON_KEYRING_BACKEND", "tests.keyring_file.FileKeyring")
    monkeypatch.setenv("KEYRING_FILE", str(config.parent / "ring.json"))
    monkeypatch.setenv("PATH", f"{config.parent}{os.pathsep}{os.environ['PATH']}")
    npx = config.parent / "npx"
    npx.write_text(f"#!/bin/sh\nexec {sys.executable} {SERVERS / 'turncoat_stdio.py'}\n")
    npx.chmod(0o755)
    inputs = [
        {"name": "API_KEY", "isSecret": True, "isRequired": True, "description": "<script>alert(1)</script>"},
        {"name": "LOG", "default": "info"},
    ]
    units = {"type": "named", "name": "--units", "isRequired": True, "choices": ["metric", "imperial"]}
    folders = {"type": "positional", "valueHint": "folder", "isRepeated": True}
    package = {"registryType": "npm", "identifier": "@acme/weather", "version": "1.2.0"}
    registry.add(
        "io.github.acme/weather",
        "1.2.0",
        title="<img src=x onerror=alert(1)>",
        packages=[
            {**package, "packageArguments": [units, folders], "environmentVariables": inputs},
            {**package, "registryType": "mcpb"},
        ],
        remotes=[{"type": "sse", "url": "http://a.example/sse"}],
    )
    with opened(config, with_registry(registry)) as console:
        assert 'hx-get="/console/registry"' in console.page("/servers")
        (found,) = console.json("/registry?words=weather")["servers"]
        assert (found["name"], found["runs_with"]) == ("io.github.acme/weather", ["npx", "url"])
        page = console.page("/registry?words=weather") + console.page(
            "/registry/server?name=io.github.acme/weather@1.2.0"
        )
        assert "<script>alert" not in page
        assert "<img src=x" not in page
        server = console.json("/registry/server?name=io.github.acme/weather")
        assert (server["reference"], server["upstream"]) == ("io.github.acme/weather@1.2.0", "weather")
        assert [way["obstacle"] is None for way in server["ways"]] == [True, False, True]
        assert "not encrypted" in server["ways"][2]["risks"][0]
        form = {"change": "registry", "server": server["reference"], "way": "1", "name": "rain"}
        assert "values are missing: API_KEY, units" in console.post("/changes/show", form, 400)["error"]
        form |= {"value.API_KEY": "sesame-77", "value.units": "metric", "value.folder": "/a\n/b", "value.LOG": ""}
        shown = console.post("/changes/show", form)
        assert "sesame-77" not in json.dumps(shown)
        assert not (config.parent / "ring.json").exists()
        assert console.change(**form)["applied"] == ["rain added"]
        assert json.loads((config.parent / "ring.json").read_text()) == {"mcp-gateway/rain-API_KEY": "sesame-77"}
        until(lambda: console.json("/servers/rain")["state"] == "ready")
        assert tomllib.loads(config.read_text())["upstreams"]["rain"] == {
            "command": "npx",
            "args": ["-y", "@acme/weather@1.2.0", "--units", "metric", "/a", "/b"],
            "env": {"API_KEY": "${keyring:rain-API_KEY}"},
            "registry": "io.github.acme/weather@1.2.0",
        }
        assert "no way to run it" in console.post("/changes/show", {**form, "way": "9"}, 400)["error"]
        assert "desktop program" in console.post("/changes/show", {**form, "way": "2"}, 400)["error"]
        assert "not the name" in console.json("/registry/server?name=..%2F..%2Fx", 404)["error"]


def test_a_registry_that_is_away_is_said_in_the_page(registry: Registry, config: Path) -> None:
    registry.add("io.github.acme/weather", packages=[])
    with opened(config, with_registry(registry)) as console:
        console.json("/registry?words=weather")
        registry.status(503)
        assert "The registry does not answer. This is what it said" in console.page("/registry?words=weather")
        assert console.json("/registry?words=weather")["age"] >= 0
        failed = console.json("/registry?words=other", 404)
        assert "answers with HTTP 503" in failed["error"]
        assert "[registry] url" in failed["remedy"]
        asked = console.client.get(f"{console.base}/registry?words=other", headers={"HX-Request": "true"})
        assert (asked.status_code, "HTTP 503" in asked.text) == (200, True)
