"""Parse an event stream (the WHATWG's `text/event-stream`), in time proportional to its length."""

from collections.abc import Iterator
from typing import NamedTuple

from gateway.upstream.transports.causes import MessageTooLarge
from gateway.upstream.transports.parts import Parts

_BOM = b"\xef\xbb\xbf"


class Event(NamedTuple):
    """An event. `last_id` is the id that a resumption names; `retry` is in milliseconds."""

    kind: bytes
    data: bytes
    last_id: bytes
    retry: int | None


class EventParser:
    """Turns the parts of a body into events. Raises MessageTooLarge if an event exceeds `limit` bytes."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._ended_with_return = False  # a line feed that follows belongs to it
        self._parts = Parts()
        self._pending = 0
        self._is_first = True
        self._last_id = b""
        self._begin()

    def _begin(self) -> None:
        self._kind = b""
        self._data = Parts(b"\n")
        self._retry: int | None = None
        self._size = 0
        self._has_fields = False

    def feed(self, chunk: bytes) -> Iterator[Event]:
        """Yield the events that the next part of the body completes."""
        *lines, rest = self._with_plain_ends(chunk).split(b"\n")
        if lines:
            self._parts.append(lines[0])
            lines[0] = self._parts.take()
            self._pending = 0
        for line in lines:
            if (event := self._take(line)) is not None:
                yield event
        self._parts.append(rest)
        self._pending += len(rest)
        self._check(self._pending)

    def _with_plain_ends(self, chunk: bytes) -> bytes:
        if self._ended_with_return:
            chunk = chunk.removeprefix(b"\n")
        self._ended_with_return = chunk.endswith(b"\r")
        return chunk.replace(b"\r\n", b"\n").replace(b"\r", b"\n") if b"\r" in chunk else chunk

    def _take(self, line: bytes) -> Event | None:
        if self._is_first:
            self._is_first = False
            line = line.removeprefix(_BOM)
        if not line:
            return self._end()
        if line.startswith(b":"):
            return None
        self._size += len(line)
        self._check()
        name, start = _split(line)
        value = line[start:]  # the only copy of what may be megabytes
        if name == b"data":
            self._data.append(value)
        elif name == b"event":
            self._kind = value
        elif name == b"id" and b"\0" not in value:
            self._last_id = value
        elif name == b"retry" and value.isdigit() and len(value) < 16:
            self._retry = int(value)
        else:
            return None
        self._has_fields = True
        return None

    def _end(self) -> Event | None:
        event = None
        if self._has_fields:
            event = Event(self._kind or b"message", self._data.take(), self._last_id, self._retry)
        self._begin()
        return event

    def _check(self, more: int = 0) -> None:
        if self._size + more > self._limit:
            raise MessageTooLarge(self._limit)


def _split(line: bytes) -> tuple[bytes, int]:
    """Return the name of a field, and where its value begins: after a colon, and one space."""
    colon = line.find(b":")
    if colon < 0:
        return line, len(line)
    return line[:colon], colon + (2 if line.startswith(b" ", colon + 1) else 1)
