"""Cures: from the words of a failure to the edit that mends it."""

import pytest

from gateway.cli.diagnosis.remedies import cured, split_cause
from gateway.config.schema import UpstreamSettings

PROGRAM = UpstreamSettings(command="npx", args=("-y", "some-server", "--token=hunter2"))
ADDRESS = UpstreamSettings(url="https://example.com/mcp")


@pytest.mark.parametrize(
    ("cause", "words", "remedy"),
    [
        ("it failed (try again)", "it failed", "try again"),
        ("it failed (at f(x))", "it failed", "at f(x)"),
        ("it failed", "it failed", None),
        ("f(x)", "f(x)", None),
        ("(all of it)", "(all of it)", None),
        (")", ")", None),
    ],
)
def test_a_cause_is_split_at_the_parenthesis_that_ends_it(cause, words, remedy):
    assert split_cause(cause) == (words, remedy)


@pytest.mark.parametrize(
    ("settings", "cause", "cure"),
    [
        (PROGRAM, "the command 'npx' was not found (install it)", "install Node.js, or set upstreams.x.command"),
        (UpstreamSettings(command="/opt/gone"), "the command '/opt/gone' was not found", "mend the path in"),
        (PROGRAM, "exited with code 2: no licence", "run npx with its args by hand"),
        (PROGRAM, "was ended by SIGKILL", "run npx with its args by hand"),
        (ADDRESS, "no secure connection to https://example.com: certificate has expired", "SSL_CERT_FILE"),
        (ADDRESS, "no secure connection to https://example.com: wrong version number", "http://"),
        (ADDRESS, "the host name of https://example.com was not found", "mend the host in upstreams.x.url"),
        (ADDRESS, "answered HTTP 404: there is no MCP server at this address", "mend the path of upstreams.x.url"),
        (ADDRESS, "was not ready within 30 s", "check upstreams.x.url; if it is only slow"),
        (ADDRESS, "something never seen (wait for it)", "wait for it"),
        (ADDRESS, "something never seen", "check upstreams.x.url"),
        (PROGRAM, "something never seen", "run npx with its args by hand, and see"),
    ],
)
def test_each_cause_has_a_cure_that_names_what_to_edit_or_run(settings, cause, cure):
    assert cure in cured("x", settings, cause)[1]


def test_what_a_program_printed_is_kept_whole_and_its_arguments_are_never_shown():
    words, cure = cured("x", PROGRAM, "exited with code 1: cannot open it (permission denied)")
    assert words == "exited with code 1: cannot open it (permission denied)"
    assert "hunter2" not in words + cure
