"""The command line as a whole: errors in one line, exit codes, help, and what a start on stdio is."""

import inspect
import json
import os
import re
import subprocess
import sys

import pytest
import typer

import gateway.errors
from gateway._version import __version__
from gateway.cli.app import application
from gateway.cli.exit_codes import CODES, ending, exit_code
from gateway.cli.main import starts_stdio
from gateway.errors import (
    ConfigError,
    GatewayError,
    StoreUnavailable,
    UnknownTool,
    UpstreamLost,
    UpstreamRefused,
    UpstreamUnavailable,
)


def commands():
    """Every command and group of commands, with the words that lead to it."""

    def below(words, command):
        yield words, command
        for name, inner in getattr(command, "commands", {}).items():
            yield from below((*words, name), inner)

    return list(below((), typer.main.get_command(application())))


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (["serve"], True),
        (["serve", "--config", "x.toml", "--profile", "codex"], True),
        (["--debug", "serve"], True),
        (["serve", "--debug"], True),
        (["serve", "--", "server", "--http"], True),
        (["serve", "--upstream", "http://x"], True),
        (["serve", "--http"], False),
        (["serve", "--port", "1", "--http", "--", "x"], False),
        (["serve", "--help"], False),
        (["serve", "-h"], False),
        (["serve", "--", "server", "-h"], True),
        (["tools"], False),
        (["tools", "serve"], False),
        (["--", "serve"], False),
        ([], False),
    ],
)
def test_a_start_on_stdio_is_recognised(arguments, expected):
    assert starts_stdio(arguments) is expected


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["xyzzy"], "error: No such command 'xyzzy'. (--help shows how it is used)"),
        (["call"], "error: Missing argument 'TOOL'. (--help shows how it is used)"),
        (["tools", "--bogus"], "error: No such option: --bogus"),
        (["--config", "x.toml", "tools"], "error: No such option: --config (options go after the command"),
        (["serve", "--port", "1"], "error: Invalid value: --port and --bind need --http"),
        (["serve", "--http", "--port", "99999"], "error: Invalid value for '--port'"),
        (
            ["tools"],
            "error: there is no configuration (`mcp-gateway add`, `import` or `init` writes one; or name a file with",
        ),
        (["tools", "--config", "no.toml"], "error: no.toml: there is no such file"),
        (["tools", "--config", "no.toml", "--upstream", "http://x"], "error: Invalid value: give either --config"),
        (["tools", "--upstream", "hunter2"], "error: --upstream: is not the address of a server"),
        (["tools", "--upstream", "http://x", "--profile", "codx"], "error: no profile is called 'codx' (did you mean"),
        (["tools", "--upstream", "http://x", "--revision", "1"], "error: Invalid value: --revision: there are 2024-"),
        (["call", "x", "{", "--upstream", "http://x"], "error: Invalid value: the arguments are not JSON: Expecting"),
        (["call", "x", "[]", "--upstream", "http://x"], "error: Invalid value: the arguments must be a JSON object"),
        (["profiles", "show", "codx"], "error: no profile is called 'codx' (did you mean 'codex'?)"),
        (["config", "check"], "error: there is no configuration: looked for mcp-gateway.toml and "),
    ],
)
def test_a_command_that_cannot_be_used_is_one_line_and_exit_code_2(command, arguments, message):
    ended = command(*arguments)
    assert ended.err.startswith(message)
    assert (ended.code, ended.out, ended.err.count("\n")) == (2, "", 1)
    assert "hunter2" not in ended.err


def test_every_problem_of_a_configuration_is_a_line(command, tmp_path):
    path = tmp_path / "x.toml"
    path.write_text("[gateway]\na = 1\nb = 2\n")
    ended = command("tools", "--config", path)
    assert [line.split(": ")[:3] for line in ended.err.splitlines()] == [
        ["error", str(path), "gateway.a"],
        ["error", str(path), "gateway.b"],
    ]


def test_the_version_is_said(command):
    assert command("--version") == (0, f"mcp-gateway {__version__}\n", "")


def test_help_names_every_command_and_the_exit_codes(command):
    ended = command("--help")
    assert ended.code == 0
    for word in ("serve", "tools", "call", "explain", "profiles", "config", "demo", "Exit codes:", "--debug"):
        assert word in ended.out


@pytest.mark.parametrize("option", ["--help", "-h"])
@pytest.mark.parametrize("words", [words for words, _ in commands()], ids=" ".join)
def test_every_command_has_help(command, words, option):
    ended = command(*words, option)
    assert (ended.code, ended.err) == (0, "")
    assert ended.out.startswith(f"Usage: mcp-gateway {' '.join((*words, ''))}")
    assert re.search(r"^  -h, --help ", ended.out, re.MULTILINE)


@pytest.mark.parametrize("words", [words for words, one in commands() if hasattr(one, "commands")], ids=" ".join)
def test_a_group_alone_is_no_mistake(command, words):
    ended = command(*words)
    assert (ended.code, ended.err) == (0, "")
    listed = words == ("profiles",)
    assert ended.out == (command("profiles", "list") if listed else command(*words, "--help")).out


def test_debug_alone_is_no_mistake_either(command):
    assert command("--debug") == command()


def test_no_summary_of_a_command_is_cut_off_in_a_terminal_of_80_columns(command, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    for words, one in commands():
        if hasattr(one, "commands"):
            out = command(*words, "--help").out
            assert max(map(len, out.splitlines())) <= 80
            assert "..." not in out.split("Commands:")[1]


def completed(shell, line):
    """What a shell would offer for the last word of a line."""
    asked = {"_MCP_GATEWAY_COMPLETE": f"complete_{shell}", "_TYPER_COMPLETE_ARGS": line, "COMP_WORDS": line}
    asked |= {"COMP_CWORD": str(len(line.split(" ")) - 1), "_TYPER_COMPLETE_FISH_ACTION": "get-args"}
    ended = subprocess.run(
        [sys.executable, "-m", "gateway"], env=os.environ | asked, capture_output=True, text=True, timeout=60
    )
    assert ended.stderr == ""
    return ended.stdout


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_a_shell_is_given_a_script_and_completes_commands(shell):
    # Otherwise Typer gives the script of the shell that these tests were started from, or none if that is `sh`.
    named = os.environ | {"_TYPER_COMPLETE_TEST_DISABLE_SHELL_DETECTION": "1"}
    asked = [sys.executable, "-m", "gateway", "--show-completion", shell]
    script = subprocess.run(asked, env=named, capture_output=True, text=True, timeout=60)
    assert (script.returncode, script.stderr) == (0, "")
    assert f"_MCP_GATEWAY_COMPLETE=complete_{shell}" in script.stdout
    assert "explain" in completed(shell, "mcp-gateway ex")


@pytest.mark.parametrize(
    ("line", "word"),
    [
        ("call x --pro", "--profile"),
        ("explain --profile claude-d", "claude-desktop"),
        ("profiles show cod", "codex"),
        ("install vs", "vscode"),
        ("check --host smol", "smolagents"),
    ],
)
def test_options_and_the_names_of_profiles_and_hosts_are_completed(line, word):
    assert word in completed("bash", f"mcp-gateway {line}").split()


def fails(error: BaseException):
    def work():
        raise error

    return work


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (ConfigError("x"), 2),
        (UnknownTool("x"), 2),
        (UpstreamRefused("a", -1, "x"), 1),
        (UpstreamUnavailable("a", "x"), 3),
        (UpstreamLost("a", "x"), 3),
        (StoreUnavailable("x"), 1),
        (ExceptionGroup("tasks", [ExceptionGroup("tasks", [UpstreamLost("a", "x")])]), 3),
        (ValueError("x"), 1),
        (KeyboardInterrupt(), 130),
        (typer.Abort(), 130),
    ],
)
def test_an_error_says_what_kind_it_is_by_its_exit_code(error, code, capsys):
    assert ending(fails(error), debug=False) == code
    assert capsys.readouterr().err.count("\n") == (0 if code == 130 else 1)


def test_every_error_of_ours_has_an_exit_code():
    for kind in vars(gateway.errors).values():
        if inspect.isclass(kind) and issubclass(kind, GatewayError):
            assert any(issubclass(kind, known) for known, _ in CODES)
    assert exit_code(GatewayError("x")) == 1


def test_a_mistake_of_ours_is_one_line_without_a_traceback_and_raised_with_debug(capsys):
    assert ending(fails(ValueError("a\x1b[2Jb")), debug=False) == 1
    assert capsys.readouterr().err == (
        "error: ValueError: a\\x1b[2Jb (an internal error of the gateway; --debug shows where)\n"
    )
    with pytest.raises(ValueError, match="x"):
        ending(fails(ValueError("x")), debug=True)


def test_output_that_nobody_reads_is_no_error(tmp_path):
    path = tmp_path / "result.json"
    path.write_text(json.dumps({"content": [{"type": "text", "text": "line\n" * 200_000}]}))
    command = [sys.executable, "-m", "gateway", "explain", str(path), "--json", "--profile", "passthrough"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        process.stdout.read(1)
        process.stdout.close()
        assert (process.wait(60), process.stderr.read()) == (141, b"")


@pytest.mark.parametrize(
    "words", [["--version"], ["--help"], ["profiles"], ["install", "--list"], ["tools", "--help"]], ids=" ".join
)
def test_every_command_ends_quietly_when_nobody_reads_what_it_says_at_last(words, tmp_path):
    reading, writing = os.pipe()
    os.close(reading)
    try:
        command = [sys.executable, "-m", "gateway", *words]
        ended = subprocess.run(command, stdout=writing, stderr=subprocess.PIPE, cwd=tmp_path, timeout=60)
    finally:
        os.close(writing)
    assert (ended.returncode, ended.stderr) == (141, b"")


def test_an_error_that_nobody_reads_ends_quietly_as_well(tmp_path):
    reading, writing = os.pipe()
    os.close(reading)
    try:
        ended = subprocess.run(
            [sys.executable, "-m", "gateway", "nonsense"], stdout=writing, stderr=writing, cwd=tmp_path, timeout=60
        )
    finally:
        os.close(writing)
    assert ended.returncode == 141
