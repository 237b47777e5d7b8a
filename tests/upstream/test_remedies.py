"""Remedies: from the code of a failure to what mends it."""

import re

import pytest

from gateway.config.upstream_settings import UpstreamSettings
from gateway.errors import Failure, FailureCode, UpstreamLost, UpstreamUnavailable
from gateway.upstream.remedies import ANOTHER_REQUEST_MAY_DO, REMEDIES, FailedUpstream, brief_remedy, full_remedy

PROGRAM = UpstreamSettings(command="npx", args=("-y", "some-server", "--token=hunter2"))
ADDRESS = UpstreamSettings(url="https://example.com/mcp")
WITH_TOKEN = UpstreamSettings(url="https://example.com/mcp", headers={"Authorization": "Bearer hunter2hunter2"})
OVER_SSE = UpstreamSettings(url="https://example.com/mcp", transport="sse")

DETAILS = {"module": "yaml", "variable": "API_KEY", "limit": "timeout.start", "package": "sevrer"}


@pytest.mark.parametrize(
    ("settings", "code", "remedy"),
    [
        (PROGRAM, FailureCode.COMMAND_NOT_FOUND, "install Node.js, or set upstreams.x.command"),
        (UpstreamSettings(command="/opt/gone"), FailureCode.COMMAND_NOT_FOUND, "fix the path in"),
        (PROGRAM, FailureCode.EXITED, "run npx with its args by hand"),
        (
            PROGRAM,
            FailureCode.PACKAGE_NOT_FOUND,
            "check the name of the package 'sevrer', and its version, in",
        ),
        (PROGRAM, FailureCode.MODULE_MISSING, "install yaml for npx, or set upstreams.x.command"),
        (PROGRAM, FailureCode.VARIABLE_MISSING, 'upstreams.x.env = { API_KEY = "${API_KEY}" }'),
        (PROGRAM, FailureCode.NOT_MCP_ON_STDOUT, "some servers need an argument as --stdio in upstreams.x.args"),
        (PROGRAM, FailureCode.START_TIMEOUT, "run npx with its args by hand and see whether it answers; if"),
        (ADDRESS, FailureCode.START_TIMEOUT, "check upstreams.x.url; if it is only slow"),
        (ADDRESS, FailureCode.CERTIFICATE_REJECTED, "SSL_CERT_FILE"),
        (ADDRESS, FailureCode.TLS_FAILED, "begin upstreams.x.url with http://"),
        (ADDRESS, FailureCode.HOST_NOT_FOUND, "is this machine online? If it is, fix the host in upstreams.x.url"),
        (ADDRESS, FailureCode.NOT_FOUND, "fix the path of upstreams.x.url"),
        (ADDRESS, FailureCode.METHOD_NOT_ALLOWED, "check the path of upstreams.x.url: most servers have"),
        (OVER_SSE, FailureCode.METHOD_NOT_ALLOWED, 'set upstreams.x.transport = "auto"'),
        (ADDRESS, FailureCode.UNAUTHORIZED, 'set upstreams.x.headers = { Authorization = "Bearer ${TOKEN}" }'),
        (WITH_TOKEN, FailureCode.UNAUTHORIZED, "the token in upstreams.x.headers is not accepted: get a new one"),
        (ADDRESS, FailureCode.UNKNOWN, "check upstreams.x.url"),
        (PROGRAM, FailureCode.UNKNOWN, "run npx with its args by hand, and see"),
    ],
)
def test_a_full_remedy_names_what_to_edit_or_run(settings: UpstreamSettings, code: FailureCode, remedy: str) -> None:
    failure = Failure(UpstreamUnavailable, code, "something", details=DETAILS)
    assert remedy in full_remedy(failure, "x", settings)


@pytest.mark.parametrize("code", [FailureCode.START_TIMEOUT, FailureCode.NOT_MCP_ON_STDOUT])
def test_a_program_that_serves_http_is_not_called_slow(code: FailureCode) -> None:
    details = {"limit": "timeout.start", "serves": "HTTP"}
    assert brief_remedy(code, FailedUpstream("x", PROGRAM, details)) == (
        "it serves HTTP: give it its option for stdio, often --stdio"
    )
    assert "--stdio" in full_remedy(Failure(UpstreamUnavailable, code, "something", details=details), "x", PROGRAM)


@pytest.mark.parametrize("code", sorted(FailureCode))
def test_a_transport_that_is_set_is_not_advised(code: FailureCode) -> None:
    failure = Failure(UpstreamUnavailable, code, "something", details=DETAILS)
    assert "transport" not in full_remedy(failure, "x", ADDRESS)
    assert "transport" not in (brief_remedy(code, FailedUpstream("x", ADDRESS, DETAILS)) or "")


def test_where_nothing_more_is_known_the_failures_own_remedy_does() -> None:
    failure = Failure(UpstreamLost, FailureCode.MEMORY_EXCEEDED, "used 3 GB", "ask it for less at once")
    assert full_remedy(failure, "x", PROGRAM) == "ask it for less at once"
    assert full_remedy(None, "x", PROGRAM) == "run npx with its args by hand, and see"


@pytest.mark.parametrize(
    ("wants", "brief", "full"),
    [
        ("login", "mcp-gateway login x", "mcp-gateway login x"),
        ("token", "set a token: headers", "or log in: mcp-gateway login x"),
        (None, "set a token: headers", "and the variable TOKEN"),
    ],
)
def test_who_may_log_in_is_told_how_as_the_server_asks_for_it(wants: str | None, brief: str, full: str) -> None:
    failed = FailedUpstream("x", ADDRESS, {"wants": wants} if wants else {})
    assert (brief_remedy(FailureCode.UNAUTHORIZED, failed) or "").startswith(brief)
    failure = Failure(UpstreamUnavailable, FailureCode.UNAUTHORIZED, "HTTP 401", details=failed.details)
    assert full in full_remedy(failure, "x", ADDRESS)


@pytest.mark.parametrize("code", FailureCode)
@pytest.mark.parametrize("settings", [PROGRAM, ADDRESS, WITH_TOKEN])
def test_no_remedy_shows_a_secret_or_a_place_that_was_not_filled(code: FailureCode, settings: UpstreamSettings) -> None:
    failed = FailedUpstream("x", settings, DETAILS)
    full = full_remedy(Failure(UpstreamUnavailable, code, "something", details=DETAILS), "x", settings)
    for text in (brief_remedy(code, failed) or "", full):
        assert "hunter2" not in text
        assert not re.search(r"(?<!\$)\{(?:upstream|program)\}", text)


def test_codes_are_words_for_programs() -> None:
    assert all(re.fullmatch(r"[a-z]+(?:_[a-z]+)*", code.value) for code in FailureCode)
    assert all(code.value == code.name.lower() for code in FailureCode)
    assert set(REMEDIES) >= ANOTHER_REQUEST_MAY_DO
