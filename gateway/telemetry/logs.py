"""Log lines: text for people or JSON for machines, harmless for terminals, without secrets or encoded content."""

import json
import logging
import sys
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, TextIO, cast

from gateway.config.schema import LoggingSettings, Settings
from gateway.config.secrets import all_secrets, hide, longest_first
from gateway.telemetry.background import BackgroundHandler
from gateway.telemetry.requests import request_id
from gateway.telemetry.sanitize import neutral, without_base64

ROOT = "gateway"
"""The logger above all of the gateway's own."""

LONGEST = 16_000
"""Characters of a message, or of a traceback, that are logged."""

_SHORTEST_SECRET = 6
"""Shorter values are found in too many words: they are hidden where an upstream's causes are worded, not here."""

_SDK = ("mcp", "client")
"""They log what they could not parse, which is content, and failures that the gateway names itself. httpx2 logs whole
addresses at INFO, which may hold secrets: never below WARNING."""


def configure_logging(settings: Settings, *, debug: bool = False, stream: TextIO | None = None) -> logging.Handler:
    """Have the process log to `stream` (stderr) as `settings.logging` says; `debug` logs everything of the gateway's.

    To be called again whenever the settings change: it replaces what it did before, and leaves other handlers alone.
    The handler never waits for a reader of `stream`, since a host that does not read stderr must not stop the gateway;
    it is returned for whoever has to `flush` it.
    """
    handler = BackgroundHandler(sys.stderr if stream is None else stream)
    handler.setFormatter(make_formatter(settings))
    for former in [one for one in logging.root.handlers if isinstance(one, BackgroundHandler)]:
        logging.root.removeHandler(former)
        former.close()
    logging.root.addHandler(handler)
    logging.root.setLevel(logging.WARNING)
    _set_levels(settings.logging, debug=debug)
    return handler


def make_formatter(settings: Settings) -> logging.Formatter:
    """The formatter of `settings.logging.format`, for any handler. It knows the secrets in `settings`, and hides them.

    Lines carry the request's id (`gateway.telemetry.requests`), so they have to be formatted by the task that logs.
    """
    secrets = longest_first(all_secrets(settings), _SHORTEST_SECRET)
    return JsonFormatter(secrets) if settings.logging.format == "json" else TextFormatter(secrets)


def announce(logger: logging.Logger, message: str) -> None:
    """Log a line at INFO whatever the level is: for what is waited for, as that the gateway can be reached."""
    logger.handle(logger.makeRecord(logger.name, logging.INFO, __file__, 0, message, (), None))


def fields(**values: Any) -> Mapping[str, Any]:
    """For `extra`: what a JSON line has beside its message, under the keys given."""
    return {"fields": values}


class _Careful(logging.Formatter):
    """What both formats share: texts from outside are bounded, secrets hidden, base64 replaced by its length."""

    def __init__(self, secrets: Sequence[str] = ()) -> None:
        super().__init__()
        self._secrets = secrets

    def message(self, record: logging.LogRecord) -> str:
        return self.clean(record.getMessage())

    def traceback(self, record: logging.LogRecord) -> str | None:
        if not record.exc_info or record.exc_info[0] is None:
            return None
        text = self.formatException(record.exc_info)
        # What was raised stands at the end.
        return self.clean(text if len(text) <= LONGEST else "…" + text[-LONGEST:])

    def clean(self, text: str) -> str:
        cut = text if len(text) <= LONGEST else text[:LONGEST] + "…"
        return without_base64(hide(cut, self._secrets))

    def clean_value(self, value: Any) -> Any:
        """A field's value with all its texts cleaned."""
        if isinstance(value, str):
            return self.clean(value)
        if isinstance(value, Mapping):
            return {key: self.clean_value(item) for key, item in cast("Mapping[str, Any]", value).items()}
        return value


class TextFormatter(_Careful):
    """`2026-07-28T03:00:00.123Z INFO gateway.room.module [request]: message`, one line but for tracebacks.

    A message from outside cannot make itself a second line: line ends in it are written out, like everything else
    that a terminal would obey.
    """

    def format(self, record: logging.LogRecord) -> str:
        """The line, harmless."""
        request = request_id()
        about = f" [{request}]" if request else ""
        message = self.message(record).replace("\n", "\\n")
        line = f"{_time(record)} {record.levelname} {record.name}{about}: {message}"
        traceback = self.traceback(record)
        return neutral(f"{line}\n{traceback}" if traceback else line)


class JsonFormatter(_Careful):
    """One JSON object a line: `time`, `level`, `logger`, `message`, and where there are, `request`, `trace_id` and
    `span_id`, `error` (a traceback) and what the line is about. ASCII only.
    """

    def format(self, record: logging.LogRecord) -> str:
        """The line."""
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
    for name in logging.Logger.manager.loggerDict:  # levels of an earlier configuration
        if name.startswith(f"{ROOT}."):
            logging.getLogger(name).setLevel(logging.NOTSET)
    logging.getLogger(ROOT).setLevel(logging.DEBUG if debug else settings.level.upper())
    if not debug:
        for part, level in settings.levels.items():
            logging.getLogger(f"{ROOT}.{part}").setLevel(level.upper())
    for name in _SDK:
        logging.getLogger(name).setLevel(logging.WARNING if debug and settings.content else logging.CRITICAL)


def _time(record: logging.LogRecord) -> str:
    return datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _trace() -> dict[str, str]:
    """The ids of the span that the line belongs to, for whoever looks at both."""
    trace = sys.modules.get("opentelemetry.trace")
    if trace is None:
        return {}
    context = trace.get_current_span().get_span_context()
    return {"trace_id": f"{context.trace_id:032x}", "span_id": f"{context.span_id:016x}"} if context.is_valid else {}
