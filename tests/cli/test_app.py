"""The command line as a whole: errors in one line, exit codes, help, and what a start on stdio is."""

import inspect
import json
import subprocess
import sys

import pytest
import typer

import gateway.errors
from gateway import __version__
from gateway.cli.failing import CODES, ending, exit_code
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
        (["explain"], "error: Missing argument 'FILE'. (--help shows how it is used)"),
        (["tools", "--bogus"], "error: No such option: --bogus"),
        (["serve", "--port", "1"], "error: Invalid value: --port and --bind need --http"),
        (["serve", "--http", "--port", "99999"], "error: Invalid value for '--port'"),
        (["tools"], "error: there is no configuration (write ./mcp-gateway.toml, name a file with --config"),
        (["tools", "--config", "no.toml"], "error: no.toml: there is no such file"),
        (["tools", "--config", "no.toml", "--upstream", "http://x"], "error: Invalid value: give either --config"),
        (["tools", "--upstream", "hunter2"], "error: --upstream: is no address of a server"),
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


@pytest.mark.parametrize("name", ["serve", "tools", "call", "explain", "profiles", "config", "demo"])
def test_every_command_has_help(command, name):
    ended = command(name, "--help")
    assert (ended.code, ended.err) == (0, "")
    assert ended.out.startswith(f"Usage: mcp-gateway {name} ")


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
        "error: ValueError: a\\x1b[2Jb (a mistake of the gateway's; --debug shows where)\n"
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
        assert (process.wait(60), process.stderr.read()) == (1, b"")
