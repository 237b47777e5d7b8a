"""What a program printed is read once, for people and as a failure."""

import pytest

from gateway.config.upstream_settings import UpstreamSettings
from gateway.errors import FailureCode
from gateway.upstream.transports.installer_output import AbsentPackage
from gateway.upstream.transports.printed import Hint, read_printed, serves_http
from gateway.upstream.transports.redaction import Secrets

SECRETS = Secrets(UpstreamSettings(command="x", env={"API_TOKEN": "abc-123-secret"}))


@pytest.mark.parametrize(
    ("line", "code", "details"),
    [
        ("ModuleNotFoundError: No module named 'yaml.cyaml'", FailureCode.MODULE_MISSING, {"module": "yaml.cyaml"}),
        ("KeyError: 'API_KEY'", FailureCode.VARIABLE_MISSING, {"variable": "API_KEY"}),
        ("Error [ERR_MODULE_NOT_FOUND]: Cannot find package 'zod'", None, {}),
        ("cannot open it (permission denied)", None, {}),
        ("no licence", None, {}),
    ],
)
def test_the_last_line_says_what_is_missing(line: str, code: FailureCode | None, details: dict[str, str]) -> None:
    assert read_printed(line, 0, "", SECRETS) == Hint(line, code, details)


def test_other_things_on_stdout_are_counted_and_say_the_most() -> None:
    hint = read_printed("KeyError: 'API_KEY'", 2, "Listening on abc-123-secret", SECRETS)
    text = "KeyError: 'API_KEY'; it printed 2 lines that are not MCP, first 'Listening on ***'"
    assert hint == Hint(text, FailureCode.NOT_MCP_ON_STDOUT)
    assert read_printed(None, 1, "Hello", SECRETS) == Hint(
        "it printed 1 line that is not MCP, first 'Hello'", FailureCode.NOT_MCP_ON_STDOUT
    )


def test_one_that_printed_nothing_gives_no_hint() -> None:
    assert read_printed(None, 0, "", SECRETS) is None


def test_a_program_that_names_an_address_serves_http():
    hint = read_printed(None, 1, "MCP server listening on http://localhost:3001/mcp", SECRETS)
    assert hint is not None
    assert hint.details == {"serves": "HTTP"}


@pytest.mark.parametrize(
    "line",
    [
        "MCP server listening on http://localhost:3001/mcp",
        "INFO:     Uvicorn running on http://127.0.0.1:8000 (Press CTRL+C to quit)",
        "Streamable HTTP endpoint available at https://0.0.0.0:8443/mcp",
        "Listening on port 3000",
    ],
)
def test_servers_say_in_many_words_that_they_serve_http(line: str) -> None:
    assert serves_http(line)
    hint = read_printed("a later line", 0, "", SECRETS, serving=line)
    assert hint == Hint(f"{' '.join(line.split())}; a later line", details={"serves": "HTTP"})


@pytest.mark.parametrize(
    "line",
    [
        "MCP server running on stdio",
        "Using the model at http://localhost:11434",
        "running with the API at https://api.example.com",
        "started" + " " * 100_000 + "http://localhost:1",
        "",
    ],
)
def test_other_addresses_are_not_where_a_program_serves(line: str) -> None:
    assert not serves_http(line)


def test_a_package_that_does_not_exist_explains_more_than_the_last_line() -> None:
    absent = AbsentPackage("npm error 404  'abc-123-secret@*' is not in this registry.", "abc-123-secret")
    assert read_printed("API_KEY", 1, "Hello", SECRETS, absent) == Hint(
        "npm error 404 '***@*' is not in this registry.", FailureCode.PACKAGE_NOT_FOUND, {"package": "***"}
    )
