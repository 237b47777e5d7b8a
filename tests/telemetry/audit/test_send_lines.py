"""Audit lines at a collector: an HTTP server on the loopback, which reads what OpenTelemetry's exporter sends."""

import gzip
import hashlib
import logging
import socket
import threading
from collections.abc import Callable, Generator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import anyio
import pytest
from anyio import to_thread
from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest

from gateway.config.schema import Settings
from gateway.errors import ConfigError
from gateway.telemetry.audit import send_lines
from gateway.telemetry.audit.send_lines import LineSender
from gateway.telemetry.audit.trail import open_audit_trail

pytestmark = pytest.mark.anyio


class Collector:
    """Takes log records, or refuses them, at an address that stays the same."""

    def __init__(self) -> None:
        self.requests: list[ExportLogsServiceRequest] = []
        self.paths: list[str] = []
        self.status = 200
        self.answers = threading.Event()
        self.answers.set()
        self._news = threading.Condition()
        self._server: ThreadingHTTPServer | None = None
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port: int = free.getsockname()[1]

    def start(self) -> None:
        collector = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["content-length"]))
                body = gzip.decompress(body) if self.headers.get("content-encoding") == "gzip" else body
                collector.answers.wait(60)
                if collector.status == 200:
                    with collector._news:
                        collector.paths.append(self.path)
                        collector.requests.append(ExportLogsServiceRequest.FromString(body))
                        collector._news.notify_all()
                self.send_response(collector.status)
                self.send_header("content-length", "0")
                self.end_headers()

            def log_message(self, *arguments: Any) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", self.port), Handler)
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    def stop(self) -> None:
        self.answers.set()
        if self._server is not None:
            self._server.shutdown()
            self._server.server_close()
            self._server = None

    @property
    def records(self) -> list[Any]:
        """All log records, in the order of their arrival."""
        return [
            record
            for request in self.requests
            for resource in request.resource_logs
            for scope in resource.scope_logs
            for record in scope.log_records
        ]

    def wait_for(self, count: int) -> list[Any]:
        with self._news:
            assert self._news.wait_for(lambda: len(self.records) >= count, 60)
        return self.records


@pytest.fixture
def collector(monkeypatch: pytest.MonkeyPatch) -> Generator[Collector]:
    collector = Collector()
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", f"http://127.0.0.1:{collector.port}")
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_TIMEOUT", "1")
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    collector.start()
    yield collector
    collector.stop()


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    return Settings.model_validate({"audit": {"path": tmp_path / "audit.jsonl", "otlp": True}})


async def until(collector: Collector, count: int) -> list[Any]:
    return await to_thread.run_sync(collector.wait_for, count)


def attributes(values: Any) -> dict[str, Any]:
    return {each.key: each.value.string_value or each.value.int_value for each in values}


async def test_each_line_arrives_as_it_is_in_the_file(collector: Collector, settings: Settings) -> None:
    async with open_audit_trail(settings, lambda _: None) as trail:
        assert trail is not None
        trail.login("alice", "docs", "ok", "https://login.example")
        trail.host_approval("bob", "approved", "id", "Some Höst", "host.example")
        await trail.flush()
        records = await until(collector, 3)
    assert settings.audit.path is not None
    lines = settings.audit.path.read_bytes().splitlines()
    assert [record.body.string_value.encode() for record in records] == lines
    assert collector.paths[0] == "/v1/logs"
    login = attributes(records[1].attributes)
    assert login == {
        "mcp_gateway.audit.event": "login",
        "mcp_gateway.audit.sequence": 2,
        "mcp_gateway.audit.principal": "alice",
        "mcp_gateway.audit.upstream": "docs",
        "mcp_gateway.audit.outcome": "ok",
    }
    assert all(record.time_unix_nano > 1_700_000_000 * 10**9 for record in records)
    assert {record.severity_text for record in records} == {"INFO"}
    resource = attributes(collector.requests[0].resource_logs[0].resource.attributes)
    assert resource["service.name"] == settings.gateway.name
    hashed = [hashlib.sha256(record.body.string_value.encode()).hexdigest() for record in records]
    assert f'"previous":"{hashed[1]}"' in records[2].body.string_value


@pytest.mark.parametrize("how", ["gone", "failing"])
async def test_a_collector_that_is_away_is_said_once_and_gets_everything_later(
    collector: Collector,
    settings: Settings,
    how: str,
    caplog: pytest.LogCaptureFixture,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(send_lines, "_FIRST_PAUSE", 0.05)
    monkeypatch.setattr(send_lines, "_LONGEST_PAUSE", 0.05)
    caplog.set_level(logging.INFO)
    tried = threading.Semaphore(0)
    export = LineSender._export

    def counted(sender: LineSender, batch: Any) -> bool:
        done = export(sender, batch)
        tried.release()
        return done

    monkeypatch.setattr(LineSender, "_export", counted)
    if how == "gone":
        collector.stop()
    else:
        collector.status = 400
    async with open_audit_trail(settings, lambda _: None) as trail:
        assert trail is not None
        for place in range(3):
            trail.login("alice", f"docs{place}", "ok")
            await trail.flush()
        for _ in range(3):
            await to_thread.run_sync(tried.acquire)
        collector.status = 200
        if how == "gone":
            collector.start()
        records = await until(collector, 4)
    assert [attributes(record.attributes)["mcp_gateway.audit.sequence"] for record in records] == [1, 2, 3, 4]
    assert caplog.text.count("does not get the audit trail") == 1
    assert caplog.text.count("gets the audit trail again") == 1
    assert [record.name for record in caplog.records if record.levelno >= logging.WARNING] == [send_lines.__name__]


async def test_nothing_waits_for_a_collector_that_does_not_answer(
    collector: Collector, settings: Settings, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(send_lines, "MOST_WAITING", 10)
    monkeypatch.setattr(send_lines, "_LAST_SECONDS", 0.2)
    collector.answers.clear()
    with anyio.fail_after(30):
        async with open_audit_trail(settings, lambda _: None) as trail:
            assert trail is not None
            for place in range(200):
                trail.login("alice", f"docs{place}", "ok")
                await trail.flush()
    assert settings.audit.path is not None
    assert len(settings.audit.path.read_bytes().splitlines()) == 201
    assert "10 lines of the audit trail were not sent to the collector; they are in the file" in caplog.text


async def test_a_missing_extra_is_named_and_the_file_is_let_go(
    settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(send_lines, "entry_points", lambda **_: ())
    with pytest.raises(ConfigError, match=r"audit\.otlp: .*install the extra otel: `.+\[otel\]'?`"):
        async with open_audit_trail(settings, lambda _: None):
            pass
    off = settings.model_copy(update={"audit": settings.audit.model_copy(update={"otlp": False})})
    async with open_audit_trail(off, lambda _: None) as trail:
        assert trail is not None
        assert trail.path == settings.audit.path


async def test_nothing_is_loaded_unless_it_is_asked_for(
    settings: Settings, monkeypatch: pytest.MonkeyPatch, collector: Collector
) -> None:
    made: list[Callable[..., Any]] = []
    monkeypatch.setattr(send_lines, "LineSender", made.append)
    off = settings.model_copy(update={"audit": settings.audit.model_copy(update={"otlp": False})})
    async with open_audit_trail(off, lambda _: None) as trail:
        assert trail is not None
        trail.login("alice", "docs", "ok")
    assert not made
    assert not collector.requests
