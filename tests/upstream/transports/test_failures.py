import socket
import ssl
from pathlib import Path

import httpx2
import pytest
from mcp.shared.exceptions import MCPError

from gateway.config.upstream_settings import UpstreamSettings
from gateway.errors import (
    Failure,
    FailureCode,
    UpstreamError,
    UpstreamGarbage,
    UpstreamLost,
    UpstreamRefused,
    UpstreamUnavailable,
)
from gateway.upstream.transports.causes import (
    ConnectionEnded,
    HttpStatus,
    MessageTooLarge,
    NoAnswer,
    NotMcp,
    ProcessEnded,
    SessionExpired,
    Stopping,
)
from gateway.upstream.transports.failures import TABLE, Subject, failure_of, startup
from gateway.upstream.transports.redaction import Secrets

URL = "https://user:hunter22@mcp.example.org/path?key=abcdefgh"


def about(settings: UpstreamSettings) -> Subject:
    return Subject("x", settings, Secrets(settings))


WEB = about(UpstreamSettings(url=URL, headers={"Authorization": "Bearer token-1234"}))
CHILD = about(UpstreamSettings(command="no-such-server", args=("--key", "zzz")))


def http_errors() -> list[type[Exception]]:
    kinds = [getattr(httpx2, name) for name in httpx2.__all__]
    return [
        kind
        for kind in kinds
        if isinstance(kind, type) and issubclass(kind, httpx2.TransportError | httpx2.DecodingError | httpx2.InvalidURL)
    ]


@pytest.mark.parametrize("kind", http_errors())
def test_every_error_of_the_http_client_is_explained_without_quoting_it(kind: type[Exception]) -> None:
    failure = failure_of(kind("tell-tale token-1234"), WEB)
    assert "tell-tale" not in failure.cause
    assert kind.__name__ not in failure.cause


@pytest.mark.parametrize(
    "failure",
    [
        Stopping(),
        MessageTooLarge(1_000_000),
        SessionExpired(),
        HttpStatus(503),
        ConnectionEnded("closed its event stream"),
        ProcessEnded("exited with code 1", None),
        NotMcp("answered nonsense"),
        NoAnswer(3, None),
        PermissionError(13, "Permission denied"),
        NotADirectoryError(20, "Not a directory"),
        OSError(8, "Exec format error"),
        TimeoutError(),
        MCPError(-1, "no"),
    ],
)
def test_every_failure_of_our_own_and_of_the_system_has_words(failure: Exception) -> None:
    assert failure_of(failure, CHILD).message
    assert type(failure).__name__ not in failure_of(failure, CHILD).message
    assert str(failure_of(failure, CHILD).error("x", "ping")).startswith("upstream 'x': ")


def test_a_refused_connection_is_found_at_the_bottom_of_groups_and_chains() -> None:
    refused = ConnectionRefusedError(111, "Connect call failed")
    os_error = OSError("All connection attempts failed")
    os_error.__cause__ = refused
    client = httpx2.ConnectError("All connection attempts failed")
    client.__context__, client.__suppress_context__ = os_error, True
    nested = ExceptionGroup("outer", [ExceptionGroup("inner", [client]), RuntimeError("noise")])
    assert failure_of(nested, WEB).message == "connection refused by https://mcp.example.org"


def test_the_name_service_and_certificates_are_told_apart_from_a_plain_refusal() -> None:
    unknown = httpx2.ConnectError("x")
    unknown.__cause__ = socket.gaierror(-2, "Name or service not known")
    assert "was not found" in failure_of(unknown, WEB).message
    untrusted = httpx2.ConnectError("x")
    untrusted.__cause__ = ssl.SSLCertVerificationError(1, "certificate verify failed: self-signed certificate")
    assert "SSL_CERT_FILE" in (failure_of(untrusted, WEB).remedy or "")
    plain_http = httpx2.ConnectError("x")
    plain_http.__cause__ = ssl.SSLError(1, "[SSL: WRONG_VERSION_NUMBER] wrong version number")
    assert "http://" in (failure_of(plain_http, WEB).remedy or "")


def test_a_missing_command_names_it_and_the_remedy() -> None:
    failure = failure_of(FileNotFoundError(2, "No such file or directory", "no-such-server"), CHILD)
    assert failure.message == "the command 'no-such-server' was not found"
    assert "absolute path" in (failure.remedy or "")
    assert failure.kind is UpstreamUnavailable


def test_a_missing_file_is_not_called_a_command_where_there_is_none() -> None:
    failure = failure_of(FileNotFoundError(2, "No such file or directory", "/gone/ca.pem"), WEB)
    assert failure.message == "https://mcp.example.org: No such file or directory"
    assert failure.code is FailureCode.SYSTEM_ERROR


def test_a_missing_folder_is_not_blamed_on_the_command(tmp_path: Path) -> None:
    subject = about(UpstreamSettings(command="python", cwd=tmp_path / "gone"))
    failure = failure_of(FileNotFoundError(2, "No such file or directory"), subject)
    assert "cwd" in failure.message
    assert "gone" in failure.message


def test_a_missing_interpreter_is_not_blamed_on_the_command(tmp_path: Path) -> None:
    script = tmp_path / "server"
    script.write_text("#!/no/such/interpreter\n")
    script.chmod(0o755)
    failure = failure_of(
        FileNotFoundError(2, "No such file or directory"), about(UpstreamSettings(command=str(script)))
    )
    assert "interpreter" in failure.message


@pytest.mark.parametrize(("status", "word"), [(401, "headers"), (403, "token"), (404, "path"), (429, "wait")])
def test_a_status_says_what_to_do(status: int, word: str) -> None:
    failure = failure_of(HttpStatus(status), WEB)
    assert f"HTTP {status}" in failure.message
    assert word in (failure.remedy or "")


def test_secrets_and_escapes_never_reach_a_cause() -> None:
    noisy = RuntimeError("token-1234 at https://user:hunter22@mcp.example.org/path?key=abcdefgh \x1b[31m")
    cause = failure_of(noisy, WEB).cause
    assert not any(secret in cause for secret in ("token-1234", "hunter22", "abcdefgh", "\x1b"))


def test_our_own_errors_pass_through_as_they_are() -> None:
    lost = UpstreamLost("x", "went away", remedy="look")
    assert failure_of(ExceptionGroup("g", [lost]), WEB) == lost.failure
    assert lost.failure == Failure(UpstreamLost, FailureCode.CONNECTION_LOST, "went away", "look")
    refused = failure_of(UpstreamRefused("x", -32603, "no licence"), WEB)
    assert refused.message == "answered with error -32603: no licence"


def test_a_running_call_is_named_and_a_failed_start_is_always_unavailability() -> None:
    failure = failure_of(ProcessEnded("exited with code 3", None), CHILD)
    error = failure.error("x", "tools/call")
    assert isinstance(error, UpstreamLost)
    assert str(error) == "upstream 'x': exited with code 3, while tools/call was running"
    assert startup([failure], CHILD).kind is UpstreamUnavailable


def test_two_transports_that_failed_differently_are_both_named() -> None:
    failures = [failure_of(HttpStatus(405), WEB), failure_of(NotMcp("named an endpoint elsewhere"), WEB)]
    words = startup(failures, WEB).message
    assert "405" in words
    assert "named an endpoint elsewhere" in words
    assert startup(failures[:1] * 2, WEB).message == failures[0].message


def test_of_two_transports_the_one_that_was_refused_the_caller_has_the_remedy() -> None:
    failures = [failure_of(HttpStatus(405), WEB), failure_of(HttpStatus(403), WEB)]
    assert startup(failures, WEB).code is FailureCode.FORBIDDEN
    assert startup(failures, WEB).remedy == "check the token in headers, and what it may do"


def test_every_row_makes_an_upstream_error() -> None:
    assert all(issubclass(row.kind, UpstreamError) for row in TABLE)
    assert failure_of(MessageTooLarge(5_000_000), WEB).kind is UpstreamGarbage
    assert "5.0 MB" in failure_of(MessageTooLarge(5_000_000), WEB).message
