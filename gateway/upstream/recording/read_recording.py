"""Read a recording: the lines of its session files, checked one by one, since people edit them."""

import json
import logging
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import IO, Any

from pydantic import ValidationError

from gateway.core.fact_words import plain, size_words
from gateway.core.model.format_versions import UPDATE_GATEWAY, newer_than
from gateway.core.model.json_safe import to_json_safe
from gateway.core.model.json_shape import is_deep
from gateway.core.model.json_values import is_dict
from gateway.errors import ConfigError
from gateway.system.open_below import open_below
from gateway.upstream.recording.content_files import without_files
from gateway.upstream.recording.lines import (
    FORMAT,
    LONGEST_LINE,
    SESSION_FILES,
    VERSION,
    ConnectionLine,
    Exchange,
    Header,
    Line,
    StoppedLine,
)

logger = logging.getLogger(__name__)

MOST_BYTES = 256 * 1024 * 1024
"""Bytes of all lines above which a recording is not read: they are kept in memory."""
_DEEPEST = 200
"""Levels of a line: those of an answer that is passed on, and what is around it."""
_LONGEST_READ = LONGEST_LINE * 8
"""Bytes of a line above which it is not one of the recorder's: it counts characters, and escapes some."""


@dataclass
class RecordedUpstream:
    """What was recorded of one upstream: its connections and its exchanges, in order.

    The numbers of connections are unique within it, whichever session they are from.
    """

    folder: Path
    connections: dict[int, ConnectionLine] = field(default_factory=dict[int, ConnectionLine])
    exchanges: list[Exchange] = field(default_factory=list[Exchange])

    def result_of(self, exchange: Exchange) -> dict[str, Any] | None:
        """Return the result of an exchange with its content; None if it has none. Reads files. Raises ConfigError."""
        return self._whole(exchange.result)

    def error_data_of(self, exchange: Exchange) -> Any:
        """Return the data of an exchange's error with its content; None if it has none. Reads files.

        Raises ConfigError.
        """
        return None if exchange.error is None else self._restored(exchange.error.data)

    def params_of(self, exchange: Exchange) -> dict[str, Any]:
        """Return the params of an exchange with their content. Reads files. Raises ConfigError."""
        return self._whole(exchange.params) or {}

    def _restored(self, value: Any) -> Any:
        try:
            return to_json_safe(without_files(value, self.folder), _DEEPEST)
        except (ValueError, RecursionError) as error:
            raise ConfigError(f"has content that cannot be used: {error}", where=str(self.folder)) from None

    def _whole(self, value: dict[str, Any] | None) -> dict[str, Any] | None:
        found = self._restored(value)
        if found is not None and not is_dict(found):
            raise ConfigError("has content that is not a JSON object", where=str(self.folder))
        return found


def read_recording(folder: Path) -> Mapping[str, RecordedUpstream]:
    """Read the recording in a folder, and return what it has of each upstream. Takes seconds for a large one.

    The same recording is read once; several sessions count as one, in the order in which they began.

    Raises:
        ConfigError: there is no recording, or a line cannot be used. It names the file and the line.
    """
    try:
        if not folder.is_dir():
            raise ConfigError("there is no such folder", where=str(folder), remedy="`serve --record DIR` makes one")
        paths = sorted(folder.glob(SESSION_FILES))
        state = tuple((path.name, path.lstat().st_mtime_ns, path.lstat().st_size) for path in paths)
    except OSError as error:
        raise _unreadable(folder, error) from None
    if not paths:
        raise ConfigError(f"has no recording: no {SESSION_FILES}", where=str(folder))
    return _read(folder, state)


@lru_cache(maxsize=4)
def _read(folder: Path, state: tuple[tuple[str, int, int], ...]) -> Mapping[str, RecordedUpstream]:
    upstreams: dict[str, RecordedUpstream] = {}
    if (size := sum(each for _, _, each in state)) > MOST_BYTES:
        raise ConfigError(
            f"has {size_words(size)} of lines, more than {size_words(MOST_BYTES)}",
            where=str(folder),
            remedy="move some of its session files away",
        )
    number = 0
    for name, _, _ in state:
        path = folder / name
        ours: dict[int, tuple[int, str]] = {}
        for place, line in _lines(folder, path):
            if isinstance(line, ConnectionLine):
                number += 1
                ours[line.connection] = number, line.upstream
                upstream = upstreams.setdefault(line.upstream, RecordedUpstream(folder))
                upstream.connections[number] = line
            elif isinstance(line, Exchange):
                if line.connection not in ours:
                    raise ConfigError(f"there is no connection {line.connection} above it", where=place)
                of, upstream_name = ours[line.connection]
                upstreams[upstream_name].exchanges.append(line.model_copy(update={"connection": of}))
            elif isinstance(line, StoppedLine):
                logger.warning("%s is not complete: %s", path, plain(line.stopped, 300))
    return upstreams


def _lines(folder: Path, path: Path) -> Iterator[tuple[str, Line]]:
    """Yield the lines of a session file, each with its place."""
    try:
        with _opened(folder, path) as file:
            number = 0
            while data := file.readline(_LONGEST_READ + 1):
                number += 1
                place = f"{path}:{number}"
                if len(data) > _LONGEST_READ:
                    raise ConfigError(f"has more than {size_words(_LONGEST_READ)}", where=place)
                if not data.endswith(b"\n") and number > 1:
                    logger.warning("%s is not complete, since the gateway was ended while it wrote: left out", place)
                    return
                if data.strip():
                    yield place, _line(data, place, is_first=number == 1)
            if not number:
                raise ConfigError("is empty", where=str(path))
    except OSError as error:
        raise _unreadable(path, error) from None


def _opened(folder: Path, path: Path) -> IO[bytes]:
    if path.is_symlink():
        raise ConfigError("is a link, which is not followed", where=str(path))
    if not path.is_file():
        raise ConfigError("is not a file", where=str(path))
    found = open_below((folder,), path)
    if found is None:
        raise ConfigError("leads out of the recording", where=str(path))
    return os.fdopen(found[0], "rb")


def _line(data: bytes, place: str, *, is_first: bool) -> Line:
    try:
        value: Any = json.loads(data)
        if is_deep(value, _DEEPEST):
            raise ValueError("nests too deeply")
    except RecursionError:
        raise ConfigError("is not JSON: nests too deeply", where=place) from None
    except ValueError as error:
        raise ConfigError(f"is not JSON: {plain(str(error), 200)}", where=place) from None
    if not is_dict(value):
        raise ConfigError("is not a JSON object", where=place)
    if is_first:
        _check_header(value, place)
    kind = Header if is_first else StoppedLine if "stopped" in value else _kind_of(value)
    try:
        return kind.model_validate(value)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        member = ".".join(map(str, first["loc"]))
        words = plain(f"{member}: {first['msg']}" if member else first["msg"], 300)
        raise ConfigError(words, where=place) from None


def _kind_of(value: Mapping[str, Any]) -> type[Line]:
    return ConnectionLine if "upstream" in value else Exchange


def _check_header(value: Mapping[str, Any], place: str) -> None:
    if value.get("format") != FORMAT:
        raise ConfigError(f'is not the first line of a recording: "format" is not {FORMAT!r}', where=place)
    if (newer := newer_than(VERSION, value.get("version"))) is not None:
        raise ConfigError(newer, where=place, remedy=UPDATE_GATEWAY)


def _unreadable(path: Path, error: OSError) -> ConfigError:
    return ConfigError(f"cannot be read: {(error.strerror or 'unknown cause').lower()}", where=str(path))
