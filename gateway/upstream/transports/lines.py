"""Split a stream of bytes into lines, in linear time and bounded memory. Pure: no I/O."""

from dataclasses import dataclass

from gateway.upstream.transports.parts import Parts

_KEPT = 4_096


@dataclass(frozen=True)
class LongLine:
    """A line over the limit, of which only the beginning, the end and the size in bytes were kept."""

    head: bytes
    tail: bytes
    size: int


class LineReader:
    """Splits chunks into lines. A line of more than `limit` bytes is returned as a `LongLine`.

    Chunks are never searched twice, so the time to read a line is proportional to its length.
    """

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._parts = Parts()
        self._size = 0
        self._head: bytes | None = None  # set while inside a line that is over the limit
        self._tail = b""

    def feed(self, chunk: bytes) -> list[bytes | LongLine]:
        """Return the lines that end in `chunk`, without line ends."""
        lines: list[bytes | LongLine] = []
        start = 0
        while (end := chunk.find(b"\n", start)) >= 0:
            self._add(chunk[start:end])
            lines.append(self._take())
            start = end + 1
        self._add(chunk[start:] if start else chunk)
        return lines

    def rest(self) -> bytes | LongLine:
        """Return the bytes after the last line end, once the stream has ended."""
        return self._take()

    def _add(self, piece: bytes) -> None:
        if not piece:
            return
        self._size += len(piece)
        if self._head is not None:
            self._tail = (self._tail + piece[-_KEPT:])[-_KEPT:]
        elif self._size > self._limit:
            self._parts.append(piece[: self._limit])
            line = self._parts.take()
            self._head = line[:_KEPT]
            self._tail = (line + piece[self._limit :])[-_KEPT:]
        else:
            self._parts.append(piece)

    def _take(self) -> bytes | LongLine:
        line = self._parts.take() if self._head is None else LongLine(self._head, self._tail, self._size)
        self._size, self._head, self._tail = 0, None, b""
        return line.removesuffix(b"\r") if isinstance(line, bytes) else line
