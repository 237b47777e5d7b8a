"""`mcp-gateway init`."""

from pathlib import Path

import typer

from gateway.cli import init


def test_a_new_configuration_is_valid_and_says_what_comes_next(command):
    ended = command("init", "--command", "time=uvx mcp-server-time", "--upstream", "charts=http://127.0.0.1:1/mcp")
    assert (ended.code, ended.err) == (0, "")
    assert "mcp-gateway.toml: written, with 2 upstreams" in ended.out
    checked = command("config", "check", "--json").json()
    assert checked["ok"]
    assert set(checked["upstreams"]) == {"time", "charts"}
    assert Path("mcp-gateway.toml").stat().st_mode & 0o777 == 0o600


def test_a_file_that_is_there_is_never_written_over_unasked(command):
    file = Path("mcp-gateway.toml")
    file.write_text("# mine\n")
    ended = command("init", "--yes")
    assert (ended.code, ended.err) == (2, "error: mcp-gateway.toml: is there already (--force writes over it)\n")
    assert file.read_text() == "# mine\n"
    assert command("init", "--yes", "--force").code == 0
    assert file.read_text().startswith("# The configuration of mcp-gateway")


def test_the_path_may_be_a_folder_or_a_file_to_be(command, tmp_path):
    assert command("init", tmp_path, "--yes").code == 0
    assert (tmp_path / "mcp-gateway.toml").is_file()
    assert command("init", tmp_path / "new" / "x.toml", "--yes").code == 0
    assert (tmp_path / "new" / "x.toml").is_file()


def test_what_is_no_server_leaves_no_file(command):
    ended = command("init", "--upstream", "x=nowhere")
    assert (ended.code, ended.out) == (2, "")
    assert ended.err.startswith("error: --upstream: is no address of a server (")
    assert not Path("mcp-gateway.toml").exists()


def test_at_a_terminal_it_asks_until_nothing_is_answered(command, monkeypatch):
    answers = iter(
        ["npx -y server-x", "x", "'open", "http://h.example/mcp", "gateway", "http://h.example/mcp", "h", ""]
    )
    monkeypatch.setattr(init.sys.stdin, "isatty", lambda: True, raising=False)
    monkeypatch.setattr(typer, "prompt", lambda *words, **more: next(answers))
    ended = command("init")
    assert ended.code == 0
    assert ended.out.count("that cannot be used: ") == 2
    assert list(command("config", "check", "--json").json()["upstreams"]) == ["x", "h"]
