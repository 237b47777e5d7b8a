"""Write what upstreams answer into a folder: a file of lines for each run of the gateway, and content by its digest.

Everything here that takes time is done by one worker thread. An answer is on disk before its host gets it, so that a
recording is complete up to the moment when the gateway ends, however it ends.
"""

import logging
import os
from collections.abc import Callable, Iterable, Mapping
from datetime import UTC, datetime
from pathlib import Path
from types import TracebackType
from typing import Any, NamedTuple, Self

import anyio
from anyio import to_thread

from gateway._version import __version__
from gateway.config.schema import Settings
from gateway.config.secrets import all_secrets, hide, longest_first, upstream_secrets
from gateway.config.upstream_settings import UpstreamSettings
from gateway.core.fact_words import plain, size_words
from gateway.core.model.json_shape import is_deep, without_deep
from gateway.core.model.json_values import is_object
from gateway.errors import ConfigError
from gateway.system.files import write_new_file
from gateway.telemetry.audit.mask_arguments import masked
from gateway.telemetry.logs import announce
from gateway.upstream.recording.content_files import ContentFile, whole_file, with_files
from gateway.upstream.recording.lines import (
    FORMAT,
    LONGEST_LINE,
    MEDIA,
    SESSION_FILES,
    VERSION,
    ConnectionLine,
    Exchange,
    Header,
    StoppedLine,
)

logger = logging.getLogger(__name__)

USUAL_LIMIT = 1024 * 1024 * 1024
"""Bytes that the files of a recording take at most, unless another limit is given."""

_SHORTEST_SECRET = 6
"""Shorter values occur in too many words: hiding them would change what is recorded."""
_ATTEMPTS = 100


class RecordOptions(NamedTuple):
    """Where to record, and the maximum bytes of the whole folder."""

    folder: Path
    max_bytes: int = USUAL_LIMIT


class Recorder:
    """Records into a folder until its limit is reached, or a file cannot be written; the gateway goes on without it."""

    def __init__(self, options: RecordOptions, settings: Settings) -> None:
        """Create the session's file.

        Raises:
            ConfigError: the folder cannot be written, or holds something else than a recording.
        """
        self.folder = options.folder
        self.max_bytes = options.max_bytes
        self.exchanges = 0
        """The number of exchanges that this session has recorded."""
        self.problem: str | None = None
        """Why nothing more is recorded; None while it is."""
        self._one = anyio.CapacityLimiter(1)
        self._connections = 0
        self._secrets = longest_first(all_secrets(settings), _SHORTEST_SECRET)
        try:
            self.bytes = _prepared(self.folder)
            self.path, self._file = _new_session(self.folder)
            started = _now("%Y-%m-%dT%H:%M:%SZ")
            self._append(Header(format=FORMAT, version=VERSION, gateway=__version__, started=started).text())
        except OSError as error:
            raise ConfigError(
                f"cannot be written: {(error.strerror or 'unknown cause').lower()}", where=str(self.folder)
            ) from None

    @property
    def report(self) -> dict[str, Any]:
        """The state of the recording, for `status`."""
        return {
            "folder": str(self.folder),
            "exchanges": self.exchanges,
            "bytes": self.bytes,
            "max_bytes": self.max_bytes,
            "problem": self.problem,
        }

    def reconfigure(self, settings: Settings) -> None:
        """Hide the secrets of other settings in what is recorded of connections from now on."""
        self._secrets = longest_first(all_secrets(settings), _SHORTEST_SECRET)

    async def __aenter__(self) -> Self:
        most = f"at most {size_words(self.max_bytes)}"
        announce(logger, f"recording what the upstreams answer in {self.folder} ({most}); it is as private as they are")
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._in_thread(self._close)

    async def connected(
        self, upstream: str, transport: str, capabilities: Mapping[str, Any], settings: UpstreamSettings
    ) -> "RecordedConnection":
        """Record a new connection to an upstream, and return it for its exchanges."""
        self._connections += 1
        line = ConnectionLine(
            connection=self._connections, upstream=upstream, transport=transport, capabilities=dict(capabilities)
        )
        connection = RecordedConnection(self, self._connections, settings, self._secrets)
        await self._in_thread(lambda: self._write(line.text(), ()))
        return connection

    async def record(self, connection: "RecordedConnection", exchange: Exchange, schema: Any) -> None:
        """Mask an exchange, and write it with its content, even if the call is cancelled meanwhile. Never raises."""
        await self._in_thread(lambda: self._record(connection, exchange, schema))

    async def _in_thread(self, work: Callable[[], None]) -> None:
        if self._file >= 0:
            with anyio.CancelScope(shield=True):
                await to_thread.run_sync(work, limiter=self._one)

    def _record(self, connection: "RecordedConnection", exchange: Exchange, schema: Any) -> None:
        if self.problem is not None:
            return
        files: list[ContentFile] = []
        try:
            line = connection.prepared(exchange, schema, files)
        except (ValueError, RecursionError) as error:  # nothing that an upstream sends may end a call here
            logger.warning("%s is left out of the recording: %s", exchange.method, plain(str(error), 200))
            return
        self._write(line, files)
        self.exchanges += self.problem is None

    def _write(self, line: str, files: Iterable[ContentFile]) -> None:
        if self.problem is not None or self._file < 0:
            return
        try:
            new = [file for file in files if not (self.folder / file.name).exists()]
            if self.bytes + sum(len(file.content) for file in new) + len(line) > self.max_bytes:
                self._stop(f"the limit of {size_words(self.max_bytes)} is reached (--record-limit)")
                return
            for file in new:
                if write_new_file(self.folder / file.name, file.content):
                    self.bytes += len(file.content)
            self._append(line)
        except OSError as error:
            self._stop(f"{self.folder} cannot be written: {(error.strerror or 'unknown cause').lower()}")

    def _close(self) -> None:
        os.close(self._file)
        self._file = -1

    def _stop(self, problem: str) -> None:
        self.problem = problem
        logger.warning("nothing more is recorded: %s", problem)
        try:
            self._append(StoppedLine(stopped=problem).text())
        except OSError:
            logger.debug("the end of the recording cannot be written")

    def _append(self, line: str) -> None:
        data = f"{line}\n".encode()
        self.bytes += len(data)
        while data:
            data = data[os.write(self._file, data) :]


class RecordedConnection:
    """One connection of a recording: its number, and what must not be in its lines."""

    def __init__(self, recorder: Recorder, number: int, settings: UpstreamSettings, secrets: tuple[str, ...]) -> None:
        self.number = number
        self._recorder = recorder
        self._secrets = longest_first((*secrets, *upstream_secrets(settings)), _SHORTEST_SECRET)
        self._schemas: dict[str, Any] = {}

    def knows_tools(self, schemas: Mapping[str, Any]) -> None:
        """Remember the input schemas of tools, which say what in their arguments is secret."""
        self._schemas.update(schemas)

    async def record(self, exchange: Exchange) -> None:
        """Record an exchange. Returns when it is written; never raises."""
        await self._recorder.record(self, exchange, self._schemas.get(exchange.name or ""))

    def prepared(self, exchange: Exchange, schema: Any, files: list[ContentFile]) -> str:
        """Return the line of an exchange: without secrets, with references in place of content, which is in `files`.

        Raises ValueError and RecursionError if there is no such line.
        """
        params = exchange.params
        if "arguments" in params:
            params = {**params, "arguments": masked(params["arguments"], schema, self._secrets, longest=None)}
        changed: dict[str, Any] = {"params": self._kept(params, files)}
        if exchange.result is not None:
            changed["result"] = self._kept(exchange.result, files)
        if (error := exchange.error) is not None:
            data = None if is_deep(error.data) else self._kept(error.data, files)
            changed["error"] = error.model_copy(update={"message": self._hidden(error.message), "data": data})
        if (failure := exchange.failure) is not None:
            told = {"message": self._hidden(failure.message), "remedy": failure.remedy and self._hidden(failure.remedy)}
            changed["failure"] = failure.model_copy(update=told)
        text = exchange.model_copy(update=changed).text()
        if len(text) > LONGEST_LINE and exchange.result is not None:
            changed["result"] = whole_file(changed["result"], files.append)
            text = exchange.model_copy(update=changed).text()
        if len(text) > LONGEST_LINE:
            raise ValueError(f"the arguments of {exchange.method} take more than {size_words(LONGEST_LINE)}")
        return text

    def _kept(self, value: Any, files: list[ContentFile]) -> Any:
        shallow = without_deep(value)[0] if is_object(value) and is_deep(value) else value
        return with_files(shallow, files.append, self._hidden)

    def _hidden(self, text: str) -> str:
        return hide(text, self._secrets)


def _prepared(folder: Path) -> int:
    """Make the folder, for its user alone, and return the bytes that are in it already."""
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    sessions, media = list(folder.glob(SESSION_FILES)), folder / MEDIA
    if not sessions and any(one.name != MEDIA for one in folder.iterdir()):
        raise ConfigError(
            "is not empty, and not a recording", where=str(folder), remedy="name a folder that is new, or a recording"
        )
    if media.is_symlink():
        raise ConfigError("is a link, which is not followed", where=str(media))
    media.mkdir(mode=0o700, exist_ok=True)
    return sum(one.lstat().st_size for one in (*sessions, *media.iterdir()))


def _new_session(folder: Path) -> tuple[Path, int]:
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_APPEND
    flags |= getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_BINARY", 0)
    stem = f"session-{_now('%Y%m%dT%H%M%SZ')}-{os.getpid()}"
    for number in range(1, _ATTEMPTS):
        path = folder / f"{stem}{f'-{number}' if number > 1 else ''}.jsonl"
        try:
            return path, os.open(path, flags, 0o600)
        except FileExistsError:
            continue
    raise ConfigError("has too many sessions of this moment", where=str(folder))


def _now(form: str) -> str:
    return datetime.now(tz=UTC).strftime(form)
