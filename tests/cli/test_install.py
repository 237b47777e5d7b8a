"""`mcp-gateway install` and `uninstall`: from hosts' real files to a gateway that they can start, and back."""

import json
import os
import shutil
import subprocess
import sys
import time
import tomllib
from dataclasses import replace
from pathlib import Path

import pytest
import yaml

from gateway.config.documents import read_document as json_with_comments
from gateway.hosts.config_files.hosts import HOSTS

FILES = Path(__file__).parents[1] / "hosts" / "config_files" / "files"


@pytest.fixture
def home(monkeypatch):
    """A home with three hosts."""
    here = Path.cwd()
    monkeypatch.setenv("XDG_DATA_HOME", str(here / "data"))
    for name, target in (
        ("claude-desktop.json", "Claude/claude_desktop_config.json"),
        ("codex.toml", ".codex/config.toml"),
        ("zed.json", "zed/settings.json"),
    ):
        file = here / target
        file.parent.mkdir()
        shutil.copy(FILES / name, file)
    return here


THREE = {
    "claude-desktop": "Claude/claude_desktop_config.json",
    "codex": ".codex/config.toml",
    "zed": "zed/settings.json",
}


def test_three_hosts_are_imported_registered_and_undone_again(command, home):
    before = {host: (home / file).read_bytes() for host, file in THREE.items()}
    assert command("import", "--yes").code == 0
    for host, file in THREE.items():
        ended = command("install", host, "--only")
        assert ended.code == 0
        assert f"`mcp-gateway uninstall {host}` restores it" in ended.out
        assert (home / file).read_bytes() != before[host]
    listed = {one["host"]: one for one in command("install", "--list", "--json").json()}
    assert {host for host, one in listed.items() if one["registered"]} == set(THREE)
    assert {host: one["others"] for host, one in listed.items() if one["registered"]} == {host: [] for host in THREE}
    for host, file in THREE.items():
        ended = command("uninstall", host)
        assert (ended.code, ended.out) == (0, f"{home / file}: as it was before, byte for byte\n")
        assert (home / file).read_bytes() == before[host]


def test_a_first_start_that_is_still_to_come_is_told_of_with_what_saves_the_host_from_it(
    command, home, pictures, tmp_path, monkeypatch
):
    monkeypatch.setenv("MCP_GATEWAY_CACHE", str(tmp_path / "cache"))
    config = pictures('[upstreams.off]\ncommand = "no-such-command"\nenabled = false\n')
    once = f"run `mcp-gateway tools --config {config}` once: pics"
    first = command("install", "zed", "--config", config)
    assert first.out.splitlines()[-1].startswith(once)
    assert once not in command("install", "codex", "--config", config, "--dry-run").out
    assert command("tools", "--config", config).code == 0
    assert "mcp-gateway tools" not in command("install", "codex", "--config", config).out


def test_where_nothing_is_remembered_nobody_is_asked_to_start_anything_first(command, home, pictures):
    ended = command("install", "zed", "--config", pictures())
    assert (ended.code, "mcp-gateway tools" in ended.out) == (0, False)


def test_a_host_can_start_what_was_registered_in_it(command, home, pictures, tmp_path, monkeypatch):
    tools = tmp_path / "tools"
    tools.mkdir()
    program = tools / "pictures-server"
    server = Path(__file__).parents[1] / "servers" / "pictures_stdio.py"
    program.write_text(f'#!/bin/sh\nexec "{sys.executable}" "{server}"\n')
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tools}{os.pathsep}{os.environ['PATH']}")
    config = tmp_path / "mine.toml"
    config.write_text('[upstreams.pics]\ncommand = "pictures-server"\n')
    assert command("install", "codex", "--config", config, "--profile", "codex").code == 0
    entry = tomllib.loads((home / ".codex/config.toml").read_text())["mcp_servers"]["gateway"]
    hello = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "codex", "version": "1"}}
    messages = [
        {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": hello},
        {"jsonrpc": "2.0", "method": "notifications/initialized"},
    ]
    process = subprocess.Popen(  # as a desktop program does it: its own folder, and nothing but the entry's environment
        [entry["command"], *entry["args"]],
        env=entry["env"],
        cwd="/",
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    )
    answers = {}

    def ask(number, *said):
        process.stdin.write(b"".join(json.dumps(message).encode() + b"\n" for message in said))
        process.stdin.flush()
        while number not in answers:
            answer = json.loads(process.stdout.readline())
            answers[answer.get("id")] = answer
        return answers[number]["result"]

    try:
        ask(1, *messages)
        for number in range(2, 600):  # a list does not wait for ever for a server that starts slowly
            tools = ask(number, {"jsonrpc": "2.0", "id": number, "method": "tools/list"})["tools"]
            if any(tool["name"].startswith("pics__") for tool in tools):
                break
            time.sleep(0.1)
    finally:
        process.stdin.close()
        process.kill()
        process.wait(timeout=60)
        process.stdout.close()
    assert answers[1]["result"]["serverInfo"]["name"] == "mcp-gateway"
    assert any(tool["name"].startswith("pics__") for tool in tools)


def test_a_host_can_be_registered_with_a_gateway_that_others_share(command, home, pictures):
    config = pictures()
    assert command("install", "codex", "--config", config, "--profile", "codex", "--shared").code == 0
    entry = tomllib.loads((home / ".codex/config.toml").read_text())["mcp_servers"]["gateway"]
    assert entry["args"][-6:] == ["serve", "--config", str(config), "--profile", "codex", "--shared"]
    assert command("install", "codex", "--config", config).code == 0
    entry = tomllib.loads((home / ".codex/config.toml").read_text())["mcp_servers"]["gateway"]
    assert "--shared" not in entry["args"]


def test_other_servers_stay_and_are_named(command, home, pictures):
    ended = command("install", "claude-desktop", "--config", pictures())
    assert ended.code == 0
    assert "its other servers stay beside it: filesystem, my notes!\n" in ended.out
    named = f"claude-desktop --config {pictures()}`"
    assert f"`mcp-gateway import {named} puts them behind the gateway; then `mcp-gateway install" in ended.out
    again = command("install", "claude-desktop", "--config", pictures())
    assert f"Claude Desktop has the gateway already, as 'gateway', with {pictures()}\n" in again.out


def test_servers_that_are_behind_the_gateway_already_are_told_by_install_and_its_list(command, home):
    servers = {"a": {"command": "npx", "args": ["a"]}, "b": {"command": "npx", "args": ["b"]}}
    (home / ".claude.json").write_text(json.dumps({"mcpServers": servers}))
    assert command("import", "claude-code", "--yes").code == 0
    way = "both are behind the gateway already: `mcp-gateway install claude-code --only` takes them out of the host\n"
    twice = "both are upstreams of the gateway, too: their tools are offered twice\n"
    before = command("install", "--list")
    assert f"Claude Code: {way}" in before.out
    assert "twice" not in before.err
    ended, listed = command("install", "claude-code"), command("install", "--list")
    assert way in ended.out
    assert f"warning: {twice}" in ended.err
    assert f"Claude Code: {way}" in listed.out
    assert f"warning: Claude Code: {twice}" in listed.err
    assert command("install", "claude-code", "--only").code == 0
    assert "behind the gateway already" not in command("install", "--list").out


def test_taking_out_servers_that_the_gateway_does_not_have_is_a_warning(command, home, pictures):
    ended = command("install", "claude-desktop", "--only", "--config", pictures())
    assert ended.code == 0
    assert "taken out: filesystem, my notes!\n" in ended.out
    assert "warning: not behind the gateway: filesystem, my notes! (`mcp-gateway uninstall claude-desktop`" in ended.err


def test_a_server_that_claude_code_has_for_one_project_is_named_since_it_stays(command, home, tmp_path):
    mine, notes = {"command": "npx", "args": ["-y", "mine"]}, {"command": "npx", "args": ["-y", "notes"]}
    project = str(tmp_path / "work")
    own = {"mcpServers": {"mine": mine}, "projects": {project: {"mcpServers": {"notes": notes}}}}
    (home / ".claude.json").write_text(json.dumps(own))
    assert command("import", "claude-code", "--yes").code == 0
    ended = command("install", "claude-code", "--only")
    assert "taken out: mine\n" in ended.out
    assert f"Claude Code starts notes in {project} as well, beside the gateway" in ended.err
    assert "run `claude mcp remove notes -s local` there" in ended.err
    beside = {"command": "npx", "args": ["-y", "theirs"]}
    (tmp_path / "work").mkdir()
    (tmp_path / "work" / ".mcp.json").write_text(json.dumps({"mcpServers": {"theirs": beside}}))
    found = command("import", "claude-code", "--yes")
    assert f"not looked at: {project}/.mcp.json (1 server): `mcp-gateway import {project}/.mcp.json`" in found.err
    again = command("install", "claude-code", "--only")
    assert f"Claude Code also has in {project}: theirs ({project}/.mcp.json)" in again.out
    changed = json.loads((home / ".claude.json").read_text())
    del changed["projects"][project]["mcpServers"]
    (home / ".claude.json").write_text(json.dumps(changed))
    undone = command("uninstall", "claude-code")
    assert "put back: mine\n" in undone.out
    assert undone.err == f"not put back: notes for {project} alone, which was taken out since (not by the gateway)\n"


def test_a_variable_that_the_host_may_not_have_is_a_warning(command, home, pictures, monkeypatch):
    monkeypatch.setenv("SECRET_OF_MINE", "x")
    config = pictures('env = { A = "${SECRET_OF_MINE}", B = "${B:-x}", C = "${MCP_GATEWAY_PYTHON}" }\n')
    monkeypatch.delenv("NOT_HERE", raising=False)
    config.write_text(config.read_text() + '[describe.model]\napi_key = "${NOT_HERE:-}"\n')
    ended = command("install", "zed", "--config", config)
    assert ended.err.splitlines() == [
        f"warning: {config} needs SECRET_OF_MINE: where Zed does not have it, the gateway does not start",
        f"warning: {config} uses NOT_HERE: where Zed does not have it, upstreams get an empty value",
        "  this puts them into its file, for every start of the gateway:",
        f"  mcp-gateway install zed --config {config} --env SECRET_OF_MINE --env NOT_HERE=VALUE",
    ]


def test_variables_are_copied_into_the_hosts_entry_and_stay_there(command, home, pictures, monkeypatch):
    monkeypatch.setenv("SECRET_OF_MINE", 'sesame "1"')
    config = pictures('env = { A = "${SECRET_OF_MINE}", B = "${OTHER:-}" }\n')
    given = ("install", "zed", "--config", config, "--env", "SECRET_OF_MINE", "-e", "OTHER=x=y")
    dry = command(*given, "--dry-run")
    assert '"SECRET_OF_MINE": "***"' in dry.out
    assert "sesame" not in dry.out
    assert str(config) in dry.out
    ended = command(*given)
    assert (ended.code, ended.err) == (0, "")
    assert f"the gateway is registered in Zed as 'gateway', with {config} (" in ended.out

    def env():
        return json_with_comments(home / "zed/settings.json")["context_servers"]["gateway"]["env"]

    assert {name: env()[name] for name in ("SECRET_OF_MINE", "OTHER")} == {
        "SECRET_OF_MINE": 'sesame "1"',
        "OTHER": "x=y",
    }
    again = command("install", "zed", "--config", config)
    assert again.err == ""
    assert f"Zed has the gateway already, as 'gateway', with {config}\n" in again.out
    dry = command("install", "zed", "--config", config, "--env", "OTHER=zzzzzzzzz", "--dry-run")
    assert "sesame" not in dry.out + dry.err
    assert "zzzz" not in dry.out + dry.err
    assert command("install", "zed", "--config", config, "--env", "OTHER=z").code == 0
    assert (env()["OTHER"], env()["SECRET_OF_MINE"]) == ("z", 'sesame "1"')


def test_a_variable_that_is_not_set_cannot_be_copied(command, home, pictures, monkeypatch):
    monkeypatch.delenv("NOT_HERE", raising=False)
    ended = command("install", "zed", "--config", pictures(), "--env", "NOT_HERE")
    assert (ended.code, ended.out) == (2, "")
    assert "NOT_HERE is not set here: give it as --env NOT_HERE=VALUE" in ended.err


def test_a_dry_run_prints_a_diff_and_changes_nothing(command, home, pictures):
    before = (home / "zed/settings.json").read_bytes()
    ended = command("install", "zed", "--config", pictures(), "--dry-run")
    assert ended.code == 0
    assert ended.out.startswith(f"--- {home}/zed/settings.json\n+++ ")
    assert '\n+    "gateway": {\n' in ended.out
    assert (home / "zed/settings.json").read_bytes() == before
    assert not (home / "data").exists()


def test_a_projects_file_is_named_by_its_path(command, home, pictures):
    assert command("install", "vscode", "--config", pictures(), "--file", ".vscode/mcp.json", "--name", "g").code == 0
    entry = json.loads((home / ".vscode/mcp.json").read_text())["servers"]["g"]
    assert (entry["type"], entry["args"][-2:]) == ("stdio", ["--config", str(pictures())])
    ended = command("uninstall", "vscode", "--file", ".vscode/mcp.json", "--name", "g")
    assert ended.out == f"{home}/.vscode/mcp.json: removed again; there was no such file before\n"
    assert not (home / ".vscode").exists()


def test_what_others_changed_since_stays(command, home, pictures):
    file = home / "zed/settings.json"
    command("install", "zed", "--config", pictures())
    file.write_text(file.read_text().replace('"ui_font_size": 16', '"ui_font_size": 18'))
    ended = command("uninstall", "zed")
    assert ended.code == 0
    removed, changed = ended.out.splitlines()
    assert removed == f"{file}: removed the gateway's entry 'gateway'; everything else in it was kept as it is"
    assert "Zed, or you, changed the file since the gateway was registered, so the file of before was not" in changed
    assert file.read_text() == (FILES / "zed.json").read_text().replace("16", "18")


def test_uninstalling_what_is_not_there_is_no_error(command, home):
    ended = command("uninstall", "cursor")
    assert (ended.code, ended.err) == (0, "")
    assert ended.out.endswith(".cursor/mcp.json: the gateway is not registered as 'gateway'; nothing to do\n")


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (["codx"], "no host 'codx' is known (did you mean 'codex'?)\n"),
        (
            ["warp"],
            "the configuration file of the host 'warp' is not known (add the gateway there by hand: docs/hosts/",
        ),
        (["claude-ai"], "the configuration file of the host 'claude-ai' is not known (add the gateway there by hand"),
        (["vscode-copilot"], "no host 'vscode-copilot' is known (did you mean 'vscode'"),
        (["codex"], "there is no configuration to register (`mcp-gateway init` writes one, "),
        (["codex", "--config", "no.toml"], "no.toml: there is no such file\n"),
        (["codex", "--config", "CONFIG", "--profile", "codx"], "no profile"),
        ([], "Invalid value: name a host, or use --list ("),
        (["goose"], "there is no configuration to register (`mcp-gateway init` writes one, "),
        (["codex", "--json"], "Invalid value: --json goes with --list ("),
    ],
)
def test_what_cannot_be_registered_is_one_line_and_nothing_is_touched(command, home, pictures, given, message):
    before = (home / ".codex/config.toml").read_bytes()
    ended = command("install", *[str(pictures()) if word == "CONFIG" else word for word in given])
    assert (ended.code, ended.out) == (2, "")
    assert message in ended.err
    assert ended.err.count("\n") == 1
    assert (home / ".codex/config.toml").read_bytes() == before


def test_a_hosts_broken_file_is_refused_untouched_and_listed_as_such(command, home, pictures):
    file = home / "zed/settings.json"
    file.write_text('{"context_servers": {,}}')
    ended = command("install", "zed", "--config", pictures())
    assert (ended.code, ended.out) == (2, "")
    assert ended.err == (
        f"error: {file}:1:22: is not JSON: a string in double quotes is expected here (fix it first; nothing was "
        "changed)\n"
    )
    assert file.read_text() == '{"context_servers": {,}}'
    listed = command("install", "--list")
    assert listed.code == 0
    assert any(line.startswith("zed ") and "file cannot be read" in line for line in listed.out.splitlines())
    assert any(line.startswith("codex ") and "2 other servers" in line for line in listed.out.splitlines())
    assert str(file) in listed.err


def test_one_other_server_is_one(command):
    file = Path.home() / ".cursor" / "mcp.json"
    file.parent.mkdir()
    file.write_text('{"mcpServers": {"a": {"command": "a"}}}')
    listed = command("install", "--list")
    assert any(line.startswith("cursor ") and "1 other server  " in line for line in listed.out.splitlines())


def test_servers_of_a_project_that_are_behind_the_gateway_already_are_to_be_taken_out(command, home):
    (Path.cwd() / ".mcp.json").write_text('{"mcpServers": {"a": {"command": "a"}, "b": {"command": "b"}}}')
    assert command("import", "--yes").code == 0
    ended = command("install", "claude-code", "--only")
    said = ended.out.splitlines()
    at = said.index(f"Claude Code also has in {Path.cwd()}: a, b ({Path.cwd() / '.mcp.json'})")
    out = "behind the gateway already: take them out of that file, or their tools are offered twice"
    assert said[at + 1] == f"  {out}"
    assert out in command("doctor", "--host", "claude-code").out
    assert command("uninstall", "claude-code").code == 0


def test_the_list_names_the_servers_of_projects_and_where_they_are(command, home):
    (Path.cwd() / ".mcp.json").write_text('{"mcpServers": {"a": {"command": "a"}, "b": {"command": "b"}}}')
    shown = command("install", "--list").out.splitlines()
    at = shown.index(f"Claude Code also has in {Path.cwd()}: a, b ({Path.cwd() / '.mcp.json'})")
    assert shown[at + 1] == f"  mcp-gateway import {Path.cwd() / '.mcp.json'} puts them behind the gateway"
    listed = {one["host"]: one for one in command("install", "--list", "--json").json()}
    project = {"folder": str(Path.cwd()), "file": str(Path.cwd() / ".mcp.json"), "names": [], "others": ["a", "b"]}
    assert listed["claude-code"]["projects"] == [project]
    assert listed["codex"]["projects"] == []


def test_a_yaml_file_gets_the_gateway_with_its_comments_and_gives_it_back(command, home, pictures, monkeypatch):
    monkeypatch.setenv("KEY", 'a "quoted" value: # 1')
    file = home / "goose" / "config.yaml"
    file.parent.mkdir()
    before = "GOOSE_MODEL: x # mine\nextensions:\n  developer: # built in\n    type: builtin\n    enabled: true\n"
    file.write_text(before)
    config = pictures()
    ended = command("install", "Goose", "--config", config, "--name", "mine", "--env", "KEY")
    assert ended.code == 0
    assert "Goose: it lets no extension set PATH" in ended.err
    entry = yaml.safe_load(file.read_text())["extensions"]["mine"]
    assert entry["args"][-3:] == ["serve", "--config", str(config)]
    assert entry["envs"] == {"KEY": 'a "quoted" value: # 1'}  # Goose refuses PATH
    assert (entry["type"], entry["enabled"], entry["name"]) == ("stdio", True, "mine")
    assert file.read_text().startswith(before)
    listed = {one["host"]: one for one in command("install", "--list", "--json").json()}["goose"]
    assert (listed["names"], listed["others"]) == (["mine"], ["developer"])
    assert "byte for byte" in command("uninstall", "goose", "--name", "mine").out
    assert file.read_text() == before


def test_servers_in_a_yaml_file_are_imported_from_the_host_and_from_a_file(command, home, pictures):
    for file in (home / ".hermes" / "config.yaml", home / "elsewhere.yaml"):
        file.parent.mkdir(exist_ok=True)
        file.write_text("mcp_servers:\n  time: {command: uvx, args: [mcp-server-time]} # UTC\n")
    for source in ("hermes", "elsewhere.yaml"):
        config = Path.cwd() / f"{source}.toml"
        assert command("import", source, "--yes", "--config", config).code == 0
        assert tomllib.loads(config.read_text())["upstreams"] == {
            "time": {"command": "uvx", "args": ["mcp-server-time"]}
        }


def test_a_host_without_a_profile_is_said_to_get_the_default_one(command, home, pictures, monkeypatch):
    monkeypatch.setitem(HOSTS, "hermes", replace(HOSTS["hermes"], profile="not-there"))
    ended = command("install", "hermes", "--config", pictures())
    assert "--profile" not in (home / ".hermes" / "config.yaml").read_text()
    assert "Hermes Agent has no profile of its own yet: it gets `default`, which works everywhere" in ended.err


def test_a_client_with_the_name_of_others_gets_its_profile_in_its_entry(command, home, pictures, monkeypatch):
    monkeypatch.setitem(HOSTS, "hermes", replace(HOSTS["hermes"], profile="mine"))
    config = pictures()
    with config.open("a") as file:
        file.write('[profiles.mine]\nextends = "text-only"\n')
    ended = command("install", "hermes", "--config", config)
    entry = yaml.safe_load((home / ".hermes" / "config.yaml").read_text())["mcp_servers"]["gateway"]
    assert entry["args"][-2:] == ["--profile", "mine"]
    assert "no profile of its own" not in ended.err
    assert command("install", "hermes", "--config", config, "--profile", "default").code == 0
    entry = yaml.safe_load((home / ".hermes" / "config.yaml").read_text())["mcp_servers"]["gateway"]
    assert entry["args"][-2:] == ["--profile", "default"]
    config.write_text(config.read_text() + '[gateway]\nprofile = "codex"\n')
    assert command("install", "hermes", "--config", config).code == 0
    entry = yaml.safe_load((home / ".hermes" / "config.yaml").read_text())["mcp_servers"]["gateway"]
    assert "--profile" not in entry["args"]


def test_in_a_terminal_each_path_stays_in_one_piece(command, home, monkeypatch):
    monkeypatch.setattr("sys.stdout.isatty", lambda: True)
    monkeypatch.setenv("COLUMNS", "60")
    lines = command("install", "--list").out.splitlines()
    assert any(line.startswith("windsurf ") and "~/.codeium/windsurf/mcp_config.json" in line for line in lines)
    assert not any(line.startswith(" ") for line in lines)


def test_servers_that_cannot_be_imported_are_named_with_the_cause_in_place_of_advice(command, home):
    servers = {"a": {"command": "npx", "args": ["a"]}, "broken": {"comand": "npx"}}
    (home / ".claude.json").write_text(json.dumps({"mcpServers": servers}))
    cannot = "broken cannot be imported: has neither a command nor a url"
    import_, only = "`mcp-gateway import claude-code`", "`mcp-gateway install claude-code --only`"
    assert command("import", "claude-code", "--yes", "--dry-run").code == 0
    assert (
        f"Claude Code: {import_} puts it behind the gateway; then {only}; {cannot}\n"
        in command("install", "--list").out
    )
    assert command("import", "claude-code", "--yes").code == 0
    (home / ".claude.json").write_text(json.dumps({"mcpServers": {"broken": servers["broken"]}}))
    ended = command("import", "claude-code", "--yes")
    assert (ended.code, ended.out.splitlines()[-1].endswith(": there was nothing to add")) == (0, True)
    assert f"Claude Code: {cannot}\n" in command("install", "--list").out
    assert f"{cannot}\n" in command("install", "claude-code").out


def test_a_server_at_a_url_is_not_said_to_be_started_first(command, home, tmp_path, monkeypatch):
    monkeypatch.setenv("MCP_GATEWAY_CACHE", str(tmp_path / "cache"))
    config = tmp_path / "urls.toml"
    config.write_text('[upstreams.down]\nurl = "http://127.0.0.1:9/mcp"\n[upstreams.new]\ncommand = "new-server"\n')
    said = [line for line in command("install", "codex", "--config", config).out.splitlines() if "once" in line]
    assert len(said) == 1
    assert ": new is not yet started by the gateway" in said[0]
