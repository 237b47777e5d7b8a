"""Audit lines as OpenTelemetry log records: sent to a collector by a thread, in order, while nobody waits for it.

The exporter is that of the extra `otel`, with its standard variables. The body of a record is the line as it is in the
file, so that whoever has the records can verify the chain.
"""

import json
import logging
import os
import threading
import time
from collections import deque
from collections.abc import Mapping, Sequence
from contextlib import contextmanager
from datetime import datetime
from importlib.metadata import entry_points
from typing import TYPE_CHECKING, Any

from gateway.core.model.json_values import as_object
from gateway.errors import ConfigError
from gateway.system.extras import install_extra
from gateway.telemetry.trace_export import service_resource

if TYPE_CHECKING:
    from collections.abc import Generator

logger = logging.getLogger(__name__)

MOST_WAITING = 10_000
"""Maximum number of lines that wait for the collector; the oldest are then left out of what is sent, and counted."""

_AT_ONCE = 256
_GATHER_SECONDS = 0.5
_FIRST_PAUSE, _LONGEST_PAUSE = 1.0, 60.0
_LAST_SECONDS = 3.0
"""Time to send what is left when the gateway ends."""
_GROUP = "opentelemetry_logs_exporter"
_ATTRIBUTES = ("event", "sequence", "principal", "upstream", "tool", "decision", "outcome")
_INFO = 9
"""SEVERITY_NUMBER_INFO."""


class LineSender:
    """Sends lines as log records; `service` is the gateway's name in them.

    Raises:
        ConfigError: the exporter is not installed.
    """

    def __init__(self, service: str) -> None:
        self._exporter: Any = exporter_class()()
        self._records = _Records(service)
        self._lines: deque[bytes] = deque()
        self._news = threading.Condition()
        self._is_closing = False
        self._dropped = 0
        self._is_away = False
        self._thread = threading.Thread(target=self._run, name="audit lines", daemon=True)
        self._thread.start()

    def send(self, lines: Sequence[bytes]) -> None:
        """Queue lines; never waits for the collector."""
        with self._news:
            self._lines.extend(lines)
            while len(self._lines) > MOST_WAITING:
                self._lines.popleft()
                self._dropped += 1
            self._news.notify()

    def close(self) -> None:
        """Send what is left, within a few seconds."""
        with self._news:
            self._is_closing = True
            self._news.notify()
        self._thread.join(_LAST_SECONDS)
        if left := len(self._lines):
            logger.warning("%d lines of the audit trail were not sent to the collector; they are in the file", left)

    def _run(self) -> None:
        pause = _FIRST_PAUSE
        with _quiet():
            while batch := self._next():
                if self._export(batch):
                    pause = _FIRST_PAUSE
                    continue
                with self._news:
                    if self._is_closing:
                        break
                    self._news.wait_for(lambda: self._is_closing, pause)
                pause = min(_LONGEST_PAUSE, 2 * pause)
            self._exporter.shutdown()

    def _next(self) -> list[bytes]:
        """Wait for lines, and return the oldest ones, which stay in the queue; none at the end."""
        with self._news:
            self._news.wait_for(lambda: self._lines or self._is_closing)
            if len(self._lines) < _AT_ONCE:  # more may come at once
                self._news.wait_for(lambda: len(self._lines) >= _AT_ONCE or self._is_closing, _GATHER_SECONDS)
            return [self._lines[place] for place in range(min(_AT_ONCE, len(self._lines)))]

    def _export(self, batch: Sequence[bytes]) -> bool:
        """Send a batch, and take it from the queue; return whether that is done."""
        with self._news:
            dropped = self._dropped
        try:
            result = self._exporter.export(self._records.of(batch))
            problem = "" if getattr(result, "name", "") == "SUCCESS" else "it does not take them"
        except Exception as error:  # whatever an exporter raises, the thread goes on
            problem = type(error).__name__
        if problem:
            if not self._is_away:
                logger.warning(
                    "the collector does not get the audit trail (%s): up to %d lines wait for it", problem, MOST_WAITING
                )
            self._is_away = True
            return False
        with self._news:
            for _ in range(len(batch) - (self._dropped - dropped)):  # others have made way meanwhile
                self._lines.popleft()
            lost, self._dropped = self._dropped, 0
        if self._is_away:
            self._is_away = False
            logger.info("the collector gets the audit trail again; %d lines are only in the file", lost)
        return True


class _Records:
    """Makes what exporters take: the SDK builds it, and a processor of ours gathers it."""

    def __init__(self, service: str) -> None:
        try:
            from opentelemetry.sdk._logs import LoggerProvider, LogRecordProcessor
        except ImportError:
            raise _missing() from None
        made: list[Any] = []

        class Gather(LogRecordProcessor):
            def on_emit(self, log_record: Any) -> None:
                made.append(log_record)

            emit = on_emit  # its name in older versions

            def shutdown(self) -> None:
                """Nothing is open."""

            def force_flush(self, timeout_millis: int = 0) -> bool:
                return True

        self._made = made
        self._resource = service_resource(os.environ, service)
        provider = LoggerProvider(resource=self._resource, shutdown_on_exit=False)
        provider.add_log_record_processor(Gather())
        self._logger: Any = provider.get_logger("mcp_gateway.audit")

    def of(self, lines: Sequence[bytes]) -> list[Any]:
        self._made.clear()
        for line in lines:
            self._logger.emit(self._record(line))
        return list(self._made)

    def _record(self, line: bytes) -> Any:
        said = as_object(json.loads(line))
        about = {f"mcp_gateway.audit.{key}": said[key] for key in _ATTRIBUTES if isinstance(said.get(key), str | int)}
        whole: dict[str, Any] = {
            "timestamp": _nanoseconds(said),
            "observed_timestamp": time.time_ns(),
            "severity_number": _severity(),
            "severity_text": "INFO",
            "body": line.decode("ascii"),
            "attributes": about,
        }
        import opentelemetry.sdk._logs as sdk

        if (of_sdk := getattr(sdk, "LogRecord", None)) is not None:  # in older versions
            return of_sdk(**whole, trace_id=0, span_id=0, trace_flags=_no_flags(), resource=self._resource)
        from opentelemetry._logs import LogRecord

        return LogRecord(**whole)


def _severity() -> Any:
    from opentelemetry._logs import SeverityNumber

    return SeverityNumber(_INFO)


def _no_flags() -> Any:
    from opentelemetry.trace import TraceFlags

    return TraceFlags(0)


def _nanoseconds(said: Mapping[str, Any]) -> int:
    """Return the time of a line in nanoseconds since 1970."""
    try:
        return int(datetime.fromisoformat(str(said.get("time"))).timestamp() * 1_000) * 1_000_000
    except ValueError:
        return time.time_ns()


def exporter_class() -> Any:
    """Return the class of the exporter for the protocol that the environment names. Raises ConfigError without one."""
    environ = os.environ
    protocol = environ.get("OTEL_EXPORTER_OTLP_LOGS_PROTOCOL") or environ.get("OTEL_EXPORTER_OTLP_PROTOCOL", "")
    name = "otlp_proto_grpc" if protocol.strip() == "grpc" else "otlp_proto_http"
    found = next(iter(entry_points(group=_GROUP, name=name)), None)
    if found is None:
        raise _missing()
    try:
        return found.load()
    except ImportError:
        raise _missing() from None


def _missing() -> ConfigError:
    return ConfigError(
        "sending the audit trail needs packages that are not installed",
        where="audit.otlp",
        remedy=f"install the extra otel: `{install_extra('otel')}`",
    )


@contextmanager
def _quiet() -> "Generator[None]":
    """Context manager for a thread, in which exporters log nothing: each attempt would be a line or several."""
    here = threading.get_ident()

    def elsewhere(record: logging.LogRecord) -> bool:
        return record.thread != here

    named = [name for name in tuple(logging.root.manager.loggerDict) if name.startswith("opentelemetry.exporter.")]
    noisy = [logging.getLogger(name) for name in (*named, "urllib3.connectionpool")]
    for each in noisy:
        each.addFilter(elsewhere)
    try:
        yield
    finally:
        for each in noisy:
            each.removeFilter(elsewhere)
