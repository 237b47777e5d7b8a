"""Text from outside on a terminal."""

import re
import subprocess
import sys
from subprocess import PIPE, STDOUT

import pytest

from gateway.cli.terminal import neutral, say_table


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("plain", "plain"),
        ("ä ☃ 日本 🎨", "ä ☃ 日本 🎨"),
        ("a\tb\nc", "a\tb\nc"),
        ("\x1b[31mred", "\\x1b[31mred"),
        ("\x1b]0;title\x07", "\\x1b]0;title\\x07"),
        ("a\rb\x08c\x7f", "a\\rb\\x08c\\x7f"),
        ("\x9b31m", "\\x9b31m"),
        ("abc\u202edef", "abc\\u202edef"),
        ("half \ud800", "half \\ud800"),
    ],
)
def test_what_a_terminal_would_obey_is_written_out(text, shown):
    assert neutral(text) == shown


def test_what_is_said_last_stands_last_where_both_go_into_one_file():
    program = "from gateway.cli.terminal import remark, say; say('first'); remark('second')"
    ended = subprocess.run([sys.executable, "-c", program], stdout=PIPE, stderr=STDOUT, text=True, check=True)
    assert ended.stdout == "first\nsecond\n"


def test_a_table_that_goes_to_a_program_has_one_row_a_line(capsys):
    say_table(("name", "what"), [("a", "one\ntwo \x1b[2J"), ("longer", "x" * 300)])
    assert capsys.readouterr().out.splitlines() == [
        "name    what",
        "a       one two [2J",
        "longer  " + "x" * 300,
    ]


def test_a_table_on_a_terminal_is_drawn_without_obeying_its_cells(capsys, monkeypatch):
    monkeypatch.setattr("sys.stdout.isatty", lambda: True, raising=False)
    monkeypatch.setenv("COLUMNS", "40")
    say_table(("name", "what"), [("[bold]a", "word " * 20)])
    lines = re.sub(r"\x1b\[[0-9;]*m", "", capsys.readouterr().out).splitlines()
    assert "[bold]a" in lines[2]
    assert max(map(len, lines)) <= 40
