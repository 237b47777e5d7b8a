"""`--toolset`, and the file in a project's folder: over stdio, with a shared gateway, and in the other commands."""

import json
import os
import sys
import time
import tomllib
from pathlib import Path

import pytest

from gateway.serving.control.records import running
from tests.cli.conftest import PICTURES

LISTS = PICTURES.parent / "lists_stdio.py"
TABLES = """
[toolsets.draw]
tools = ["pics__picture"]
[toolsets.memos]
upstreams = ["memos"]
[shared]
linger = 1.0
"""


@pytest.fixture
def config(pictures):
    memos = f"[upstreams.memos]\ncommand = {json.dumps(sys.executable)}\nargs = [{json.dumps(str(LISTS))}]\n"
    return pictures(memos + TABLES)


@pytest.fixture
def project(tmp_path):
    """A folder with a file that names a toolset."""

    def make(content: str = 'toolset = "draw"\n') -> Path:
        folder = tmp_path / "project"
        folder.mkdir()
        (folder / ".mcp-gateway.toml").write_text(content)
        return folder

    return make


@pytest.fixture
def ended():
    """No shared gateway outlives the test."""
    yield
    for record in running():
        os.kill(record.pid, 9)


def own(names):
    return [name for name in names if not name.startswith("gateway_")]


def test_the_commands_list_and_call_what_is_in_it(command, config):
    listed = command("tools", "--config", config, "--toolset", "draw", "--json")
    assert own(tool["name"] for tool in listed.json()["tools"]) == ["pics__picture"]
    assert command("call", "pics__picture", "--config", config, "--toolset", "draw").code == 0
    refused = command("call", "pics__fail", "--config", config, "--toolset", "draw")
    assert refused.code == 2
    assert "there is no tool named 'pics__fail'" in refused.err
    assert "the toolset 'draw' hides all but its own tools, and has pics__picture" in refused.err
    refused = command("call", "pics__fail", "--config", config, "--toolset", "memos")  # of an upstream that is hidden
    assert refused.code == 2
    assert "the toolset 'memos' hides all but its own tools, and has memos__*" in refused.err
    memos = command("resources", "--config", config, "--toolset", "memos", "--json").json()
    assert [one["uri"] for one in memos["resources"] if one["uri"].startswith("memo:")] == ["memo://one"]
    none = command("resources", "--config", config, "--toolset", "draw", "--json").json()
    assert not [one for one in none["resources"] if one["uri"].startswith("memo:")]


def test_one_that_does_not_exist_is_an_error_of_every_command(command, config):
    for words in (["tools"], ["call", "pics__picture"], ["resources"], ["install", "codex"], ["serve"]):
        ended = command(*words, "--config", config, "--toolset", "drw")
        assert ended.code == 2
        assert "there is no toolset 'drw'" in ended.err
        assert "did you mean 'draw'?" in ended.err


def test_a_host_on_stdio_has_the_one_that_it_was_started_with(start, config, ask):
    process = start("serve", "--config", config, "--toolset", "draw")
    process.initialize()
    assert own(process.offered()) == ["pics__picture"]
    assert "no tool named 'pics__fail'" in ask(process, "pics__fail", fails=True)


def test_the_projects_file_narrows_it_and_the_chosen_one_too(start, config, project):
    folder = project()
    (folder / "src").mkdir()
    process = start("serve", "--config", config, cwd=folder / "src")
    process.initialize()
    assert own(process.offered()) == ["pics__picture"]
    nothing = start("serve", "--config", config, "--toolset", "memos", cwd=folder)
    nothing.initialize()
    nothing.send(id="list", method="tools/list", params={})
    assert own(tool["name"] for tool in nothing.answer("list")["result"]["tools"]) == []


def test_a_host_that_has_the_project_open_gets_its_toolset(start, config, project):
    process = start("serve", "--config", config)
    client = {
        "protocolVersion": "2025-06-18",
        "capabilities": {"roots": {}},
        "clientInfo": {"name": "t", "version": "1"},
    }
    process.send(id=1, method="initialize", params=client)
    process.answer(1)
    process.send(method="notifications/initialized")
    process.send(id=2, method="tools/call", params={"name": "pics__fail", "arguments": {}})
    asked = process.next_request()
    assert asked["method"] == "roots/list"
    process.send(id=asked["id"], result={"roots": [{"uri": project().as_uri()}]})
    assert "no tool named 'pics__fail'" in json.dumps(process.answer(2)["error"])
    assert own(process.offered()) == ["pics__picture"]


@pytest.mark.parametrize("shared", [(), ("--shared",)])
def test_a_project_with_a_misspelt_toolset_gets_nothing_and_everybody_is_told_why(
    start, command, config, project, shared
):
    folder = project('toolset = "drw"\n')
    process = start("serve", *shared, "--config", config, cwd=folder)
    told = process.initialize()["instructions"]
    assert f"{folder / '.mcp-gateway.toml'} asks for the toolset 'drw', which the configuration" in told
    assert "did you mean 'draw'?" in told
    process.send(id="list", method="tools/list", params={})
    assert own(tool["name"] for tool in process.answer("list")["result"]["tools"]) == []
    process.send(id="call", method="tools/call", params={"name": "pics__picture", "arguments": {}})
    assert "there is no toolset 'drw' (did you mean 'draw'?" in json.dumps(process.answer("call"))
    words = "there is no toolset 'drw' (did you mean 'draw'?"
    while (status := command("status")).code == 1:  # the call was answered before the gateway can be asked
        assert "no gateway is running" in status.err
        time.sleep(0.1)
    where = "" if shared else f"{folder / '.mcp-gateway.toml'}: "  # a shared gateway is told the name only
    assert f"offered nothing: {where}{words}" in status.out
    log = command("logs").out
    assert sum(words in line and "offered no server's tools" in line for line in log.splitlines()) == 1
    process.process.stdin.close()
    assert process.wait() == 0


@pytest.mark.parametrize("shared", [(), ("--shared",)])
@pytest.mark.parametrize(
    ("content", "words"),
    [
        ('toolset = "draw"\n[upstreams.evil]\ncommand = "sh"\n', ".mcp-gateway.toml:2: has the key 'upstreams'"),
        ("toolset = draw\n", ".mcp-gateway.toml:1:11: is not TOML: invalid value"),
    ],
)
def test_a_project_whose_file_cannot_be_used_gets_nothing_and_everybody_is_told_why(
    start, command, config, project, shared, content, words
):
    folder = project(content)
    process = start("serve", *shared, "--config", config, cwd=folder)
    told = process.initialize()["instructions"]
    assert f"{folder / '.mcp-gateway.toml'} cannot be used" in told
    assert "evil" not in told
    process.send(id="list", method="tools/list", params={})
    assert own(tool["name"] for tool in process.answer("list")["result"]["tools"]) == []
    process.send(id="call", method="tools/call", params={"name": "pics__picture", "arguments": {}})
    assert words in json.dumps(process.answer("call"))
    while (status := command("status")).code == 1:  # the call was answered before the gateway can be asked
        assert "no gateway is running" in status.err
        time.sleep(0.1)
    assert f"offered nothing: {folder}" in status.out
    assert words in status.out
    assert "toolset unusable" not in status.out
    said = [line for line in command("logs").out.splitlines() if words in line]
    assert len(said) == 1
    assert 'it may only have one line: toolset = "NAME"' in said[0]
    process.process.stdin.close()
    assert process.wait() == 0


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ('toolset = "drw"\n', "there is no toolset 'drw': hosts on stdio are offered nothing in this folder"),
        ('[upstreams.evil]\ncommand = "sh"\n', "has the key 'upstreams'"),
        ("toolset = draw\n", "is not TOML: invalid value: hosts on stdio are offered nothing in this folder"),
        ('toolset = "draw"\n', "hosts on stdio get the toolset 'draw' in this folder"),
    ],
)
def test_doctor_examines_the_file_of_the_project(command, config, project, monkeypatch, content, words):
    folder = project(content)
    monkeypatch.chdir(folder)
    ended = command("doctor", "--config", config)
    assert ended.code in ((0, 1) if '"draw"' in content else (1,))
    found = next(line for line in ended.out.splitlines() if words in line)
    assert str(folder / ".mcp-gateway.toml") in found
    assert found.split()[0] == ("ok" if '"draw"' in content else "problem")


def test_upstreams_of_the_command_line_have_no_toolsets_so_the_projects_file_says_nothing(start, project):
    process = start("serve", "--", sys.executable, PICTURES, cwd=project())
    process.initialize()
    assert len(own(process.offered())) > 1


@pytest.mark.skipif(os.name != "posix", reason="the tests end gateways by signals")
@pytest.mark.usefixtures("ended")
def test_hosts_of_one_shared_gateway_have_each_their_own(start, config, project, command, ask):
    whole = start("serve", "--shared", "--config", config)
    chosen = start("serve", "--shared", "--config", config, "--toolset", "draw")
    inside = start("serve", "--shared", "--config", config, cwd=project())
    for process in (whole, chosen, inside):
        process.initialize()
    assert len(own(whole.offered())) > 1
    for process in (chosen, inside):
        assert own(process.offered()) == ["pics__picture"]
        assert "no tool named 'pics__fail'" in ask(process, "pics__fail", fails=True)
    (report,) = command("status", "--json").json()["gateways"]
    assert sorted(tuple(host["toolsets"]) for host in report["hosts"]) == [(), ("draw",), ("draw",)]
    assert ", toolset draw" in command("status").out
    wrong = start("serve", "--shared", "--config", config, "--toolset", "drw")
    assert wrong.wait() == 2
    assert any("there is no toolset 'drw'" in line for line in wrong.rest(wrong.err))


def test_over_http_the_hosts_choose(command, config):
    ended = command("serve", "--http", "--config", config, "--toolset", "draw")
    assert ended.code == 2
    assert "/mcp/auto/TOOLSET" in ended.err


def test_install_registers_it_and_doctor_misses_it_when_it_is_gone(command, config, monkeypatch):
    Path(".codex").mkdir()
    assert command("install", "codex", "--config", config, "--toolset", "draw").code == 0
    entry = tomllib.loads(Path(".codex/config.toml").read_text())["mcp_servers"]["gateway"]
    assert entry["args"][-2:] == ["--toolset", "draw"]
    text = config.read_text()
    config.write_text(text.replace("[toolsets.draw]", "[toolsets.paint]"))
    found = command("doctor", "--config", config).out
    assert "'gateway' asks for the toolset 'draw', which does not exist" in found


def test_doctor_names_patterns_that_match_nothing(command, config):
    config.write_text(config.read_text().replace('"pics__picture"', '"pics__picture", "pics__pictur", "memo__*"'))
    config.write_text(config.read_text().replace('upstreams = ["memos"]', 'upstreams = ["memos", "meme"]'))
    config.write_text(config.read_text() + '[toolsets.more]\nupstreams = ["pics"]\nprompts = ["mems__*"]\n')
    found = command("doctor", "--config", config).out
    assert "toolsets.draw.tools: 'pics__pictur' matches no tool" in found
    assert "toolsets.draw.tools: 'memo__*' matches no tool" in found
    assert "toolsets.memos.upstreams: 'meme' matches no upstream" in found
    assert "toolsets.more.prompts: 'mems__*' matches no upstream" in found
