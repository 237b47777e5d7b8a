"""`mcp-gateway init`."""

import shutil
import tomllib
from pathlib import Path

import pytest
import typer

from gateway.cli.commands import init
from gateway.config.load_settings import load_settings


def test_a_new_configuration_is_valid_and_says_what_comes_next(command):
    ended = command("init", "--command", "time=uvx mcp-server-time", "--upstream", "charts=http://127.0.0.1:1/mcp")
    assert (ended.code, ended.err) == (0, "")
    assert f"{Path.cwd() / 'mcp-gateway.toml'}: written, with 2 upstreams\n" in ended.out
    assert "it is found in this folder only" in ended.out
    assert "\nnext: `mcp-gateway tools`" in ended.out
    checked = command("config", "check", "--json").json()
    assert checked["ok"]
    assert set(checked["upstreams"]) == {"time", "charts"}
    assert Path("mcp-gateway.toml").stat().st_mode & 0o777 == 0o600


def test_a_file_that_is_there_is_never_written_over_unasked(command):
    file = Path("mcp-gateway.toml")
    file.write_text("# mine\n")
    ended = command("init", "--yes")
    assert (ended.code, ended.err) == (2, "error: mcp-gateway.toml: exists already (--force overwrites it)\n")
    assert file.read_text() == "# mine\n"
    assert command("init", "--yes", "--force").code == 0
    assert file.read_text().startswith("# The configuration of mcp-gateway")


def test_a_configuration_that_is_used_already_is_not_hidden_unasked(command, tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    own = tmp_path / "config" / "mcp-gateway" / "mcp-gateway.toml"
    assert command("init", own, "--command", "time=uvx mcp-server-time").code == 0
    ended = command("init")
    assert (ended.code, ended.out) == (2, "")
    assert f"{own} is your configuration already (`mcp-gateway add` and `import` go on with it" in ended.err
    assert not Path("mcp-gateway.toml").exists()
    ended = command("init", ".")
    assert ended.code == 0
    assert (
        f"found in this folder only; elsewhere, name it with --config; {own} is used there, and not here" in ended.out
    )
    assert f"{own} is used in other folders, and not in this one" in command("doctor").out
    assert command("init").err == "error: mcp-gateway.toml: exists already (--force overwrites it)\n"


def test_the_path_may_be_a_folder_or_a_file_to_be(command, tmp_path):
    assert command("init", tmp_path, "--yes").code == 0
    assert (tmp_path / "mcp-gateway.toml").is_file()
    assert command("init", tmp_path / "new" / "x.toml", "--yes").code == 0
    assert (tmp_path / "new" / "x.toml").is_file()


@pytest.mark.parametrize("path", ["there/", "not/there/", "neither"])
def test_what_is_written_like_a_folder_becomes_one(command, path):
    Path("there").mkdir()
    assert command("init", path, "--yes").code == 0
    assert (Path(path) / "mcp-gateway.toml").is_file()
    again = command("init", path, "--yes")
    assert (again.code, again.out) == (2, "")
    assert "mcp-gateway.toml: exists already" in again.err


def test_what_is_no_server_leaves_no_file(command):
    ended = command("init", "--upstream", "x=nowhere")
    assert (ended.code, ended.out) == (2, "")
    assert ended.err.startswith("error: --upstream: is not the address of a server (")
    assert not Path("mcp-gateway.toml").exists()


def test_at_a_terminal_it_asks_until_nothing_is_answered(command, monkeypatch):
    answers = iter(
        ["npx -y server-x", "x", "'open", "http://h.example/mcp", "gateway", "http", "http://h.example/mcp", "h", ""]
    )
    monkeypatch.setattr(init.sys.stdin, "isatty", lambda: True, raising=False)
    monkeypatch.setattr(typer, "prompt", lambda *words, **more: next(answers))
    ended = command("init")
    assert ended.code == 0
    assert ended.out.count("that cannot be used: ") == 1
    assert ended.out.count("that cannot be its name: ") == 1
    assert list(command("config", "check", "--json").json()["upstreams"]) == ["x", "http", "h"]


def test_servers_of_one_launcher_get_names_of_their_own_and_none_is_lost(command, monkeypatch):
    lines = iter(
        ["npx -y @modelcontextprotocol/server-memory", "npx -y @acme/server-memory", "uvx mcp-server-time", ""]
    )
    answers = iter(["no name!", "memory", None])
    asked = []

    def prompt(words, default="", **_):
        asked.append((words, default))
        return next(lines) if words.startswith("command") else next(answers, None) or default

    monkeypatch.setattr(init.sys.stdin, "isatty", lambda: True, raising=False)
    monkeypatch.setattr(typer, "prompt", prompt)
    ended = command("init")
    assert [default for words, default in asked if words == "its name"] == ["memory", "memory", "memory-2", "time"]
    assert "that cannot be its name: " in ended.out
    upstreams = tomllib.loads(Path("mcp-gateway.toml").read_text())["upstreams"]
    assert {name: one["args"][-1] for name, one in upstreams.items()} == {
        "memory": "@modelcontextprotocol/server-memory",
        "memory-2": "@acme/server-memory",
        "time": "mcp-server-time",
    }


def test_a_relative_path_among_the_arguments_makes_this_folder_the_servers(command, tmp_path):
    Path("tools").mkdir()
    Path("tools/weather.py").write_text("")
    ended = command("init", tmp_path / "x.toml", "--command", "python tools/weather.py", "--command", "uvx clock --y")
    assert f"weather: its working folder is {Path.cwd()}" in ended.out
    upstreams = tomllib.loads((tmp_path / "x.toml").read_text())["upstreams"]
    assert upstreams["weather"]["cwd"] == str(Path.cwd())
    assert "cwd" not in upstreams["clock"]


@pytest.fixture
def codex():
    """Codex's file, with two servers."""
    file = Path.cwd() / ".codex" / "config.toml"
    file.parent.mkdir()
    shutil.copy(Path(__file__).parents[1] / "hosts" / "config_files" / "files" / "codex.toml", file)


@pytest.mark.parametrize("agreed", [True, False])
def test_at_a_terminal_it_offers_what_the_hosts_have(command, codex, monkeypatch, agreed):
    asked = []
    monkeypatch.setattr(init.sys.stdin, "isatty", lambda: True, raising=False)
    monkeypatch.setattr(typer, "confirm", lambda question, **_: asked.append(question) or agreed)
    monkeypatch.setattr(typer, "prompt", lambda *words, **more: "")
    ended = command("init")
    assert asked == ["Put all 2 behind the gateway?"]
    assert "context7  Codex\n" in ended.out
    assert f"mcp-gateway.toml: written, with {'2 upstreams' if agreed else 'no upstreams'}\n" in ended.out
    upstreams = command("config", "check", "--json").json()["upstreams"]
    assert list(upstreams) == (["context7", "figma"] if agreed else [])


def test_with_nobody_to_ask_it_names_them(command, codex, tmp_path):
    ended = command("init", tmp_path / "x.toml", "--yes")
    assert (
        f"next: `mcp-gateway add --config {tmp_path}/x.toml NAME -- COMMAND` adds a server, "
        f"`mcp-gateway import --config {tmp_path}/x.toml` those of your hosts (context7, figma)\n"
    ) in ended.out
    ended = command("init", "--yes")
    assert "next: `mcp-gateway add NAME -- COMMAND` adds a server, `mcp-gateway import` those of" in ended.out


@pytest.fixture
def account():
    """Codex's file, with a server that has a password in plain text."""
    file = Path.cwd() / ".codex" / "config.toml"
    file.parent.mkdir()
    table = '[mcp_servers.mail]\ncommand = "uvx"\nargs = ["mail"]\nenv = { MAIL_PASSWORD = "canary-one" }\n'
    file.write_text(table, "utf-8")


def answered(monkeypatch, agreed):
    """At a terminal, where everything is agreed to, but perhaps not the keyring; returns the questions."""
    asked = []

    def confirm(question, **_):
        asked.append(question)
        return agreed or "keyring" not in question

    monkeypatch.setattr(init.sys.stdin, "isatty", lambda: True, raising=False)
    monkeypatch.setattr(typer, "confirm", confirm)
    return asked


@pytest.mark.parametrize("agreed", [True, False])
def test_it_offers_to_move_plain_secrets_into_the_keyring(command, account, ring, monkeypatch, agreed):
    asked = answered(monkeypatch, agreed)
    ended = command("init")
    assert ended.code == 0
    assert asked[1:] == ["Plain secrets: mail (env.MAIL_PASSWORD). Move it into the keyring?"]
    written = Path("mcp-gateway.toml").read_text("utf-8")
    assert ("${keyring:mail-MAIL_PASSWORD}" in written) is agreed
    assert ("canary" in written) is not agreed
    assert ring.exists() is agreed
    assert load_settings(Path("mcp-gateway.toml")).settings.upstreams["mail"].env["MAIL_PASSWORD"] == "canary-one"


@pytest.mark.parametrize("wanted", [True, False])
def test_what_becomes_of_secrets_can_be_said_before(command, account, ring, monkeypatch, wanted):
    asked = answered(monkeypatch, agreed=True)
    assert command("init", "--keyring" if wanted else "--no-keyring").code == 0
    assert len(asked) == 1
    assert ring.exists() is wanted


def test_a_locked_keyring_leaves_no_file(command, account, ring, monkeypatch):
    ring.write_text("locked", "utf-8")
    answered(monkeypatch, agreed=True)
    ended = command("init", "--keyring")
    assert ended.code == 2
    assert "mail-MAIL_PASSWORD cannot be stored: the keyring cannot be used" in ended.err
    assert "canary" not in ended.err
    assert not Path("mcp-gateway.toml").exists()
