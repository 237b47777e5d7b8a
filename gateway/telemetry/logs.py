"""Log lines: text for people or JSON for machines, safe for terminals, without secrets or encoded content."""

import json
import logging
import sys
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from functools import lru_cache
from typing import Any, TextIO, cast

from gateway.config.gateway_settings import LoggingSettings
from gateway.config.schema import Settings
from gateway.config.secrets import all_secrets, hide, longest_first
from gateway.telemetry.background import BackgroundHandler
from gateway.telemetry.requests import request_id
from gateway.telemetry.sanitize import neutral, without_base64

ROOT = "gateway"
"""The parent of all loggers of the gateway."""

LONGEST = 16_000
"""Maximum characters of a message, or of a traceback, that are logged."""

_SHORTEST_SECRET = 6
"""Shorter values occur in too many words: they are hidden when an upstream's causes are worded, not here."""

_SDK = ("mcp", "client")
"""Loggers that are silenced except for critical errors.

They log what they could not parse, which is content, and failures that the gateway names itself. They never go below
WARNING: httpx2 logs whole addresses at INFO, which may contain secrets.
"""


def configure_logging(settings: Settings, *, debug: bool = False, stream: TextIO | None = None) -> logging.Handler:
    """Make the process log to `stream` (stderr) by `settings.logging`; `debug` logs everything of the gateway.

    Call it again whenever the settings change: it replaces its previous configuration, and leaves other handlers alone.
    The handler never waits for a reader of `stream`, since a host that does not read stderr must not stop the gateway;
    it is returned so that it can be flushed.
    """
    handler = BackgroundHandler(sys.stderr if stream is None else stream)
    handler.setFormatter(make_formatter(settings))
    handler.wraps = settings.logging.format == "text"
    for former in [one for one in logging.root.handlers if isinstance(one, BackgroundHandler)]:
        logging.root.removeHandler(former)
        former.close()
    logging.root.addHandler(handler)
    logging.root.setLevel(logging.WARNING)
    _set_levels(settings.logging, debug=debug)
    return handler


def make_formatter(settings: Settings) -> logging.Formatter:
    """Return the formatter of `settings.logging.format`, for any handler. It hides the secrets in `settings`.

    Lines carry the request's id (`gateway.telemetry.requests`), so they have to be formatted by the task that logs.
    """
    secrets = longest_first(all_secrets(settings), _SHORTEST_SECRET)
    return JsonFormatter(secrets) if settings.logging.format == "json" else TextFormatter(secrets)


def announce(logger: logging.Logger, message: str) -> None:
    """Log a line at INFO regardless of the level: for what people wait for, such as that the gateway is reachable."""
    log_plainly(logger, message)


def log_plainly(logger: logging.Logger, message: str, about: Mapping[str, Any] | None = None) -> None:
    """Log a finished message at INFO without finding out which line of code logs it, which costs more than the rest.

    `about` are the fields of a JSON line.
    """
    extra = None if about is None else fields(**about)
    logger.handle(logger.makeRecord(logger.name, logging.INFO, __file__, 0, message, (), None, extra=extra))


def fields(**values: Any) -> Mapping[str, Any]:
    """Return `extra` for a log call: the fields that a JSON line has besides its message."""
    return {"fields": values}


class _Careful(logging.Formatter):
    """Base class of both formatters: bounds texts from outside, hides secrets, and replaces base64 by its length."""

    def __init__(self, secrets: Sequence[str] = ()) -> None:
        super().__init__()
        self._secrets = secrets

    def message(self, record: logging.LogRecord) -> str:
        return self.clean(record.getMessage())

    def traceback(self, record: logging.LogRecord) -> str | None:
        if not record.exc_info or record.exc_info[0] is None:
            return None
        text = self.formatException(record.exc_info)
        # The exception is at the end.
        return self.clean(text if len(text) <= LONGEST else "…" + text[-LONGEST:])

    def clean(self, text: str) -> str:
        cut = text if len(text) <= LONGEST else text[:LONGEST] + "…"
        return without_base64(hide(cut, self._secrets))

    def clean_value(self, value: Any) -> Any:
        """Clean all texts in a field's value."""
        if isinstance(value, str):
            return self.clean(value)
        if isinstance(value, Mapping):
            return {key: self.clean_value(item) for key, item in cast("Mapping[str, Any]", value).items()}
        return value


class TextFormatter(_Careful):
    """`2026-07-28T03:00:00.123Z INFO gateway.room.module [request]: message`, one line except for tracebacks.

    A message from outside cannot forge a second line: line ends in it are escaped, like all control characters for
    terminals.
    """

    def format(self, record: logging.LogRecord) -> str:
        """Format the record, safe for terminals."""
        request = request_id()
        about = f" [{request}]" if request else ""
        message = self.message(record).replace("\n", "\\n")
        line = f"{_time(record)} {record.levelname} {record.name}{about}: {message}"
        traceback = self.traceback(record)
        return neutral(f"{line}\n{traceback}" if traceback else line)


class JsonFormatter(_Careful):
    """One JSON object per line, ASCII only.

    It has `time`, `level`, `logger`, `message`, and if present, `request`, `trace_id` and `span_id`, `error` (a
    traceback) and the line's own fields.
    """

    def format(self, record: logging.LogRecord) -> str:
        """Format the record."""
        line: dict[str, Any] = {
            "time": _time(record),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": self.message(record),
        }
        if request := request_id():
            line["request"] = request
        line |= _trace()
        more: Mapping[str, Any] = getattr(record, "fields", {})
        line |= {key: self.clean_value(value) for key, value in more.items() if key not in line and value is not None}
        if traceback := self.traceback(record):
            line["error"] = traceback
        return json.dumps(line, default=str).replace("\x7f", "\\u007f")


def _set_levels(settings: LoggingSettings, *, debug: bool) -> None:
    for name in logging.Logger.manager.loggerDict:  # levels of a previous configuration
        if name.startswith(f"{ROOT}."):
            logging.getLogger(name).setLevel(logging.NOTSET)
    logging.getLogger(ROOT).setLevel(logging.DEBUG if debug else settings.level.upper())
    if not debug:
        for part, level in settings.levels.items():
            logging.getLogger(f"{ROOT}.{part}").setLevel(level.upper())
    for name in _SDK:
        logging.getLogger(name).setLevel(logging.WARNING if debug and settings.content else logging.CRITICAL)


def _time(record: logging.LogRecord) -> str:
    return f"{_second(int(record.created))}.{int(record.created % 1 * 1_000):03}Z"


@lru_cache(maxsize=8)
def _second(since_1970: int) -> str:
    return f"{datetime.fromtimestamp(since_1970, UTC):%Y-%m-%dT%H:%M:%S}"


def _trace() -> dict[str, str]:
    """Return the ids of the line's span, so that logs and traces can be matched."""
    trace = sys.modules.get("opentelemetry.trace")
    if trace is None:
        return {}
    context = trace.get_current_span().get_span_context()
    return {"trace_id": f"{context.trace_id:032x}", "span_id": f"{context.span_id:016x}"} if context.is_valid else {}
