"""`mcp-gateway import`: three hosts' real files, as a user has them."""

import json
import re
import shutil
from pathlib import Path

import keyring
import pytest
import typer
from keyring.backends import fail

from gateway.cli.commands import import_servers
from gateway.config.load_settings import load_settings
from gateway.config.secret_sources import keep_in_keyring

FILES = Path(__file__).parents[1] / "hosts" / "config_files" / "files"


@pytest.fixture
def home():
    """A home with Cursor, Claude Code and Codex, and a project of VS Code's in the working folder."""
    here = Path.cwd()
    (here / ".cursor").mkdir()
    (here / ".codex").mkdir()
    (here / ".vscode").mkdir()
    shutil.copy(FILES / "cursor.json", here / ".cursor" / "mcp.json")
    shutil.copy(FILES / "claude-code.json", here / ".claude.json")
    shutil.copy(FILES / "codex.toml", here / ".codex" / "config.toml")
    shutil.copy(FILES / "vscode.json", here / ".vscode" / "mcp.json")
    return here


def bytes_below(folder):
    return {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_servers_of_every_host_are_found_and_moved_and_hosts_files_stay(command, home):
    before = bytes_below(home)
    ended = command("import", "--yes", "--json")
    assert ended.code == 0
    said = ended.json()
    assert {(one["name"], one["host"], one["result"]) for one in said["servers"]} == {
        ("github", "Claude Code", "new"),
        ("socket", "Claude Code", "unusable"),
        ("database", "Claude Code", "new"),
        ("playwright", "Cursor", "new"),
        ("linear", "Cursor", "new"),
        ("Perplexity", "VS Code", "new"),
        ("fetch", "VS Code", "new"),
        ("context7", "Codex", "new"),
        ("figma", "Codex", "new"),
    }
    target = Path(said["config"])
    assert target == home / "mcp-gateway" / "mcp-gateway.toml"
    assert target.stat().st_mode & 0o777 == 0o600
    assert {path: content for path, content in bytes_below(home).items() if path != target} == before
    checked = command("config", "check", "--json").json()
    assert checked["ok"]
    assert {name for name, one in checked["upstreams"].items() if not one["enabled"]} == {"Perplexity", "figma"}


def test_what_was_found_is_shown_without_secrets(command, home):
    ended = command("import", "--dry-run", "claude-code", "cursor")
    assert ended.code == 0
    assert "no: speaks ws, which the gateway does not" in ended.out
    assert "Claude Code, /home/me/shop" in ended.out
    assert "postgres://" not in ended.out
    assert "playwright: not set at the moment: PLAYWRIGHT_TOKEN\n" in ended.err
    assert not (home / "mcp-gateway").exists()
    target = home / "mcp-gateway" / "mcp-gateway.toml"
    count = re.fullmatch(rf"{re.escape(str(target))}: (\d+) upstreams would be added, in a new file", _last(ended.out))
    assert count
    command("import", "--yes", "claude-code", "cursor")
    assert _last(command("import", "--dry-run", "claude-code", "cursor").out) == f"{target}: nothing to add"
    assert re.search(r"toml: \d+ upstreams? would be added$", _last(command("import", "--dry-run").out))


def _last(text):
    return text.splitlines()[-1]


def test_a_second_import_finds_everything_there_already(command, home):
    command("import", "--yes")
    written = (home / "mcp-gateway" / "mcp-gateway.toml").read_bytes()
    ended = command("import", "--yes")
    assert ended.code == 0
    assert "context7 (there already)" in ended.out
    assert (home / "mcp-gateway" / "mcp-gateway.toml").read_bytes() == written


def test_it_adds_to_the_configuration_in_force_and_keeps_its_text(command, home):
    config = home / "mcp-gateway.toml"
    config.write_text('# mine\n[upstreams.fetch]\ncommand = "other"\n')
    assert command("import", "--yes", ".vscode/mcp.json").code == 0
    assert config.read_text().startswith('# mine\n[upstreams.fetch]\ncommand = "other"\n')
    assert "[upstreams.fetch-2]" in config.read_text()
    assert f'cwd = "{home}"' in config.read_text()


def test_at_a_terminal_it_asks_first(command, home, monkeypatch):
    monkeypatch.setattr(import_servers.sys.stdin, "isatty", lambda: True, raising=False)
    questions = []
    monkeypatch.setattr(typer, "confirm", lambda question, **more: bool(questions.append(question)))
    assert command("import", "codex").code == 0
    assert questions == [f"Put 2 servers into {home / 'mcp-gateway' / 'mcp-gateway.toml'}?"]
    assert not (home / "mcp-gateway").exists()


def test_with_nobody_to_ask_nothing_is_written(command, home):
    ended = command("import")
    assert ended.code == 2
    assert ended.err.splitlines()[-1].startswith(
        "error: nobody can be asked here: --yes writes, --dry-run only shows ("
    )
    assert command("import", "--json").code == 2
    assert not (home / "mcp-gateway").exists()


def test_one_hosts_broken_file_costs_only_that_host(command, home):
    (home / ".cursor" / "mcp.json").write_text("{")
    ended = command("import", "--yes")
    assert ended.code == 0
    assert f"error: {home}/.cursor/mcp.json:1:2: is not JSON: " in ended.err
    assert "context7" in ended.out


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (["curser"], "no host 'curser' is known (did you mean 'cursor'?)"),
        (["./nothing.json"], "./nothing.json: there is no such file"),
        (["package.json"], "package.json: names no servers in a way that a known host would ("),
        (["cursor", "--config", "x.json"], "x.json: is a JSON file of another program ("),
    ],
)
def test_what_cannot_be_imported_is_one_line(command, home, given, message):
    (home / "package.json").write_text('{"name": "x"}')
    ended = command("import", "--yes", *given)
    assert (ended.code, ended.out) == (2, "")
    assert ended.err.startswith(f"error: {message}")
    assert ended.err.count("\n") == 1


def test_where_no_host_has_servers_that_is_said(command):
    ended = command("import", "--yes")
    found, following = ended.out.splitlines()
    assert (ended.code, found) == (0, "no servers were found (no known host has a configuration here)")
    assert following.startswith("next: `mcp-gateway add` puts one behind the gateway")


@pytest.fixture
def accounts(tmp_path):
    """A host's file with two accounts of one server, and a header."""
    servers = {
        "work": {"command": "uvx", "args": ["mail"], "env": {"MAIL_PASSWORD": "canary-one", "MAIL_USER": "me"}},
        "home": {"command": "uvx", "args": ["mail"], "env": {"MAIL_PASSWORD": "canary-two", "MAIL_USER": "me"}},
        "docs": {"url": "http://127.0.0.1:1/mcp", "headers": {"Authorization": "Bearer canary-three"}},
    }
    file = tmp_path / "servers.json"
    file.write_text(json.dumps({"mcpServers": servers}), "utf-8")
    return str(file)


def test_plain_secrets_are_moved_into_the_keyring(command, ring, accounts, home):
    ended = command("import", accounts, "--yes", "--keyring", "--offline")
    assert ended.code == 0
    target = home / "mcp-gateway" / "mcp-gateway.toml"
    written = target.read_text("utf-8")
    assert "canary" not in written + ended.out + ended.err
    assert 'MAIL_USER = "me"' in written
    assert "Bearer ${keyring:docs-Authorization}" in written
    settings = load_settings(target).settings
    assert settings.upstreams["work"].env["MAIL_PASSWORD"] == "canary-one"
    assert settings.upstreams["docs"].headers["Authorization"] == "Bearer canary-three"
    # What is there already is recognised, whatever its secrets look like now; another account is another server.
    again = command("import", accounts, "--yes", "--json", "--offline").json()
    assert [one["result"] for one in again["servers"]] == ["known"] * 3
    keep_in_keyring("home-MAIL_PASSWORD", "another")
    again = command("import", accounts, "--dry-run", "--json", "--offline").json()
    assert [one["result"] for one in again["servers"]] == ["known", "new", "known"]


def test_with_nobody_to_ask_it_says_how_secrets_are_moved(command, ring, accounts, home):
    ended = command("import", accounts, "--yes", "--offline")
    assert "work (env.MAIL_PASSWORD), home (env.MAIL_PASSWORD), docs (headers.Authorization)" in ended.err
    assert "--keyring would move" in ended.err
    assert "canary" not in ended.out + ended.err
    assert not ring.exists()
    assert (home / "mcp-gateway" / "mcp-gateway.toml").read_text("utf-8").count("canary") == 3


@pytest.mark.parametrize("agreed", [True, False])
def test_at_a_terminal_it_asks_whether_to_move_secrets(command, ring, accounts, home, monkeypatch, agreed):
    monkeypatch.setattr("sys.stdin.isatty", lambda: True, raising=False)
    asked: list[str] = []

    def confirm(question, **_):
        asked.append(question)
        return agreed or "Put" in question

    monkeypatch.setattr("typer.confirm", confirm)
    command("import", accounts, "--offline")
    assert len(asked) == 2
    assert asked[1].endswith("Move them into the keyring?")
    assert ring.exists() is agreed


def asked_at_a_terminal(monkeypatch, *, agreed=True):
    """The questions that are asked from now on, all of which are answered alike."""
    asked: list[str] = []
    monkeypatch.setattr(import_servers.sys.stdin, "isatty", lambda: True, raising=False)
    monkeypatch.setattr(import_servers.typer, "confirm", lambda question, **_: asked.append(question) or agreed)
    return asked


def test_without_a_keyring_none_is_offered_and_the_servers_are_imported(command, accounts, home, monkeypatch):
    monkeypatch.setattr(keyring, "get_keyring", fail.Keyring)
    asked = asked_at_a_terminal(monkeypatch)
    ended = command("import", accounts, "--offline")
    assert (ended.code, len(asked)) == (0, 1)
    assert "stay in the file: this machine has no usable keyring" in ended.err
    assert (home / "mcp-gateway" / "mcp-gateway.toml").exists()
    refused = command("secret", "rm", "x")
    assert "this machine has no keyring that could be used (use ${file:...}" in refused.err
    assert "pypi" not in refused.err


def test_a_keyring_that_turns_out_to_be_locked_does_not_lose_the_import(command, ring, accounts, home, monkeypatch):
    ring.write_text("locked", "utf-8")
    asked = asked_at_a_terminal(monkeypatch)
    ended = command("import", accounts, "--offline")
    assert (ended.code, len(asked)) == (0, 3)
    assert asked[2] == "Leave the secrets in the file, which only you can read?"
    assert (home / "mcp-gateway" / "mcp-gateway.toml").exists()


def test_a_locked_keyring_changes_nothing(command, ring, accounts, home):
    ring.write_text("locked", "utf-8")
    ended = command("import", accounts, "--yes", "--keyring", "--offline")
    assert ended.code == 2
    assert "work-MAIL_PASSWORD cannot be stored: the keyring cannot be used" in ended.err
    assert "canary" not in ended.err
    assert not (home / "mcp-gateway").exists()
