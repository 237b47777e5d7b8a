"""`mcp-gateway run`: a script of code mode on the command line, with a real upstream process."""

import io
import json
import sys
from pathlib import Path

SCRIPT = "shot = pics__picture()\nprint(len(media(shot)), pics__echo(name='x'))\nshow(media(shot)[0])\n"
NAMED = '[code_mode]\nmay_change = ["pics__*"]\n'


def test_a_script_shows_what_the_host_would_get_and_saves_its_pictures(command, pictures, tmp_path):
    script = tmp_path / "script.py"
    script.write_text(SCRIPT, "utf-8")
    ended = command("run", script, "--config", pictures(NAMED), "--save", tmp_path / "out", "--tokens")
    assert (ended.code, ended.err) == (0, "")
    assert '1 {"name": "x"}' in ended.out
    (saved,) = (tmp_path / "out").iterdir()
    assert saved.read_bytes().startswith(b"\x89PNG")


def test_a_script_that_fails_is_a_failure(command, pictures, monkeypatch):
    monkeypatch.setattr(sys, "stdin", io.StringIO("print('one')\n1 / 0\n"))
    ended = command("run", "-", "--config", pictures(), "--profile", "text-only")
    assert ended.code == 1
    assert "one" in ended.out
    assert "at line 2: ZeroDivisionError" in ended.out


def test_only_what_the_configuration_allows_is_called(command, pictures, monkeypatch):
    monkeypatch.setattr(sys, "stdin", io.StringIO("pics__picture()"))
    ended = command("run", "-", "--config", pictures())
    assert "scripts may not call pics__picture" in ended.out
    said = "note: scripts may not call pics__picture, which does not declare that it only reads: "
    assert f'{said}[code_mode] may_change = ["pics__picture"] lets them\n' in ended.err


def test_a_tool_that_the_configuration_leaves_out_is_said_to_be(command, tmp_path, monkeypatch):
    monkeypatch.setattr(sys, "stdin", io.StringIO("browser__words('a')"))
    config = tmp_path / "gateway.toml"
    server = [str(Path(__file__).parents[1] / "servers" / "screenshots_stdio.py"), str(tmp_path / "log")]
    only = '[code_mode]\ntools = ["other__*"]\n'
    config.write_text(
        f"[upstreams.browser]\ncommand = {json.dumps(sys.executable)}\nargs = {json.dumps(server)}\n{only}"
    )
    ended = command("run", "-", "--config", config)
    assert 'browser__words, which [code_mode] tools leaves out: "browser__words" there lets them\n' in ended.err


def test_a_file_that_is_not_there_is_one_line_of_error(command, pictures, tmp_path):
    ended = command("run", tmp_path / "none.py", "--config", pictures())
    assert ended.code == 2
    assert "none.py cannot be read" in ended.err


def test_the_note_about_pages_names_an_option_that_run_has(command, pictures, monkeypatch):
    """The fixture `command` fails for every option in a note that the command does not have."""
    for given, noted in (((), True), (("--app",), False)):
        monkeypatch.setattr(sys, "stdin", io.StringIO("print('one')"))
        ended = command("run", "-", "--config", pictures(), "--profile", "cursor", *given)
        assert (ended.code, "cursor declares that it shows pages: --app" in ended.err) == (0, noted)
