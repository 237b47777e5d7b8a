"""A stdio connection that answers its host before the gateway is loaded. Uses the standard library only.

Hosts time out early: `@ai-sdk/mcp` waits one second for its first answer, and importing the MCP SDK alone takes about
as long. So a thread reads the host's messages before anything else is imported. It answers requests that open a
connection (`Handshake`) at once, and those for lists that the host was given before (`EarlyLists`). It queues all
others in order, and hands them over when the gateway is ready to serve.

    opening = EarlyStdio(Identity(...))
    opening.start()                 # before anything else in the process
    ... import, configure ...
    await serve_stdio(opening, ...)   # serves the queued messages, and all later ones

The thread runs as long as the process, but never keeps it from exiting.
"""

import collections
import json
import math
import os
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple, cast

from gateway.core.model.json_safe import read_leniently, to_json_safe
from gateway.core.model.json_shape import DEEPEST, is_deep, may_be_deep
from gateway.core.model.json_values import as_object, is_dict
from gateway.core.model.wire import INTERNAL_ERROR, INVALID_REQUEST, PARSE_ERROR, SUBSCRIPTION_ID
from gateway.serving.mcp.claim_stdio import claim, is_ready, nothing, size_that_fits, stderr
from gateway.serving.mcp.early_lists import ACKNOWLEDGED, EarlyLists
from gateway.serving.mcp.handshake import Handshake, Identity, Refusal
from gateway.serving.mcp.kept_lists import AskedList

MAX_LINE_BYTES = 16 * 1024 * 1024
"""Default maximum size of a message, the same as for HTTP."""

_CHUNK = 256 * 1024
_MAX_WAITING = 1_000
_IMPORT_SWITCH_SECONDS = 0.000_5


class Lines:
    """Splits incoming bytes into lines in linear time. None stands for a line of more than `limit` bytes."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._parts: list[bytes] = []
        self._size = 0
        self._skipping = False

    def feed(self, chunk: bytes) -> Iterator[bytes | None]:
        """Return the lines that `chunk` completes, without line ends. A line that is too long is reported once."""
        start = 0
        while (end := chunk.find(b"\n", start)) >= 0:
            yield from self._keep(chunk[start:end])
            yield from self.rest()
            start = end + 1
        yield from self._keep(chunk[start:])

    def rest(self) -> Iterator[bytes | None]:
        """Return the data after the last line end; the next line begins after it."""
        if self._skipping:
            self._skipping = False
        elif line := b"".join(self._parts).strip():
            yield line
        self._parts, self._size = [], 0

    def _keep(self, part: bytes) -> Iterator[None]:
        if self._skipping or not part:
            return
        self._parts.append(part)
        self._size += len(part)
        if self._size > self._limit:
            self._parts, self._skipping = [], True
            yield None


class Arrival(NamedTuple):
    """The time at which a message arrived, by the clock of the `EarlyStdio` that read it.

    `profile` and `model` are those that a host of a shared gateway was started with (`serve --shared`), `toolsets` the
    names of those that narrow what its host is offered. `asked` is the list that the message asks for, if it is kept.
    """

    at: float
    clock: Callable[[], float]
    profile: str | None = None
    model: str | None = None
    toolsets: tuple[str, ...] = ()
    asked: AskedList | None = None

    @property
    def ago(self) -> float:
        """Seconds since the arrival."""
        return max(0.0, self.clock() - self.at)


class EarlyStdio:
    """One stdio connection. `take`, `listen` and `write` may be called from any thread; call `start` once."""

    def __init__(
        self,
        identity: Identity,
        *,
        lists: EarlyLists | None = None,
        max_line_bytes: int = MAX_LINE_BYTES,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.identity = identity
        self.handshake = Handshake(identity)
        self.lists = lists
        """The lists that the host may be given early."""
        self.is_by_hand = False
        """Whether a terminal, not a host, is at the other end."""
        self.toolsets: tuple[str, ...] = ()
        """The names of the toolsets that narrow what the host is offered; set before messages are taken."""
        self.ended = False
        """Whether the host has closed its end. `take` may still return the last messages."""
        self._max_line_bytes = max_line_bytes
        self._clock = clock
        self._in = self._out = -1
        self._fitting = 0
        self._writing = threading.Lock()
        self._room = threading.Condition()
        self._waiting: collections.deque[tuple[dict[str, Any], int, Arrival]] = collections.deque()
        self._waiting_bytes = 0
        self._wake: Callable[[], None] | None = None
        self._is_served = False
        self._acknowledged: frozenset[str | int] = frozenset()
        self._switch_interval: float | None = None

    def start(self) -> None:
        """Reserve fd 0 and fd 1 for the protocol, and begin to read.

        From here on fd 0 is empty and fd 1 is stderr, for this process and its children, so that neither `print` nor a
        child process can interfere with the host's messages.
        """
        # The thread needs the interpreter while the main thread imports, and the default switch interval is too long.
        self._switch_interval = sys.getswitchinterval()
        sys.setswitchinterval(_IMPORT_SWITCH_SECONDS)
        self._in = claim(0, nothing)
        self.is_by_hand = os.isatty(self._in)
        self._out = claim(1, stderr)
        self._fitting = size_that_fits(self._out)
        threading.Thread(target=self._read, name="mcp-stdin", daemon=True).start()

    def introduce(self, identity: Identity) -> None:
        """Use this identity for connections that hosts open from now on."""
        self.identity = identity
        self.handshake.introduce(identity)

    def listen(self, wake: Callable[[], None]) -> None:
        """Call `wake`, from another thread, whenever there is a message to take or the host has disconnected."""
        if self._switch_interval is not None:
            sys.setswitchinterval(self._switch_interval)
        with self._room:
            self._wake = wake
        wake()

    def take(self) -> tuple[dict[str, Any], Arrival] | None:
        """Return the next message (a request, notification or response, already validated), or None.

        It comes with its arrival, because a host's time-out runs from then on, even while modules are still being
        imported.
        """
        self._is_served = True
        with self._room:
            if not self._waiting:
                return None
            message, size, arrival = self._waiting.popleft()
            self._waiting_bytes -= size
            self._room.notify()
            return message, arrival._replace(toolsets=self.toolsets, asked=self._kept_by(arrival.asked))

    def _kept_by(self, asked: AskedList | None) -> AskedList | None:
        """Return the asked list, without a key if the project's file has changed since the key was made."""
        if asked is None or self.lists is None or self.lists.facts.toolsets == self.toolsets:
            return asked
        return asked._replace(key=None)

    def is_own(self, request_id: object) -> bool:
        """Whether a request was made here, on the host's behalf: the host is not to see its answer."""
        return self.lists is not None and self.lists.is_own(request_id)

    def is_said(self, method: str, params: Mapping[str, Any] | None) -> bool:
        """Whether the host has been given this notification early: it is not to get it again."""
        if method != ACKNOWLEDGED or not self._acknowledged:
            return False
        return as_object((params or {}).get("_meta")).get(SUBSCRIPTION_ID) in self._acknowledged

    def acknowledge(self, subscription: str | int, notification: Mapping[str, Any]) -> None:
        """Tell the host in the gateway's place that its subscription is heard; the gateway's own word stays here."""
        if subscription not in self._acknowledged:
            self._acknowledged |= {subscription}
            self._reply(notification)

    def give_back(self, taken: Sequence[tuple[dict[str, Any], Arrival]]) -> None:
        """Have these messages taken again, before all others."""
        with self._room:
            self._waiting.extendleft((message, 0, arrival) for message, arrival in reversed(taken))

    @property
    def waiting(self) -> int:
        """The number of messages to take."""
        return len(self._waiting)

    def write(self, line: bytes) -> None:
        """Write a line, with its end, and wait until it is in the host's pipe. Do nothing if the host is gone."""
        rest = memoryview(line)
        with self._writing:
            try:
                while rest:
                    rest = rest[os.write(self._out, rest) :]
            except OSError:
                # The host no longer reads, so the connection is over, whatever the state of stdin.
                self._end()

    def write_at_once(self, line: bytes) -> bool:
        """Write a short line, with its end, if the host's pipe has room for it. Return whether it had; never wait."""
        if len(line) > self._fitting or not self._writing.acquire(blocking=False):
            return False
        try:
            if not is_ready(self._out):
                return False
            os.write(self._out, line)
        except OSError:
            self._end()
        finally:
            self._writing.release()
        return True

    def refuse(self, request_id: Any, refusal: Refusal) -> None:
        """Answer a request with an error (with None, a message whose id is unknown)."""
        self._reply({"jsonrpc": "2.0", "id": request_id, "error": refusal.wire()})

    def _reply(self, message: Mapping[str, Any]) -> None:
        # ASCII only: an id that contains half a surrogate pair is echoed unchanged.
        try:
            line = json.dumps(message, separators=(",", ":"))
        except (TypeError, ValueError, RecursionError):  # this thread must survive any message of a host
            line = json.dumps(
                {
                    "jsonrpc": "2.0",
                    "id": _id(message),
                    "error": {"code": INTERNAL_ERROR, "message": "the answer cannot be written as JSON"},
                }
            )
        self.write(line.encode("ascii") + b"\n")

    def _end(self) -> None:
        self.ended = True
        self._awake()

    def _awake(self) -> None:
        with self._room:
            wake = self._wake
        if wake is not None:
            wake()

    # The thread

    def _read(self) -> None:
        lines = Lines(self._max_line_bytes)
        try:
            while chunk := os.read(self._in, _CHUNK):
                for line in lines.feed(chunk):
                    self._line(line)
            for line in lines.rest():
                self._line(line)
        except OSError:
            pass  # a pipe that broke is a pipe that ended
        finally:
            self._end()

    def _line(self, line: bytes | None) -> None:
        if line is None:
            reason = f"a message may have at most {self._max_line_bytes} bytes"
            return self.refuse(None, Refusal(INVALID_REQUEST, reason))
        try:
            message = _read(line)
        except ValueError as error:
            return self.refuse(None, Refusal(PARSE_ERROR, f"Parse error: {_reason(error)}"))
        # 2025-03-26 has batches; each message in one is answered on a line of its own.
        batch = cast("list[Any]", message if isinstance(message, list) and message else [message])
        suspect = _is_suspect(line)
        for entry in batch:
            self._message(entry, len(line) // len(batch), suspect=suspect)
        return None

    def _message(self, message: Any, size: int, *, suspect: bool) -> None:
        fields = message if is_dict(message) else {}
        if suspect and is_deep(fields):
            return self._too_deep(fields, size)
        if suspect:  # except the id, which is echoed unchanged
            fields = {**to_json_safe(fields), **{key: fields[key] for key in ("id",) if key in fields}}
        method, params, request_id = fields.get("method"), fields.get("params"), _id(fields)
        if fields.get("jsonrpc") != "2.0":
            return self.refuse(request_id, Refusal(INVALID_REQUEST, "not a JSON-RPC 2.0 message"))
        if "method" not in fields:
            if request_id is not None and ("result" in fields or "error" in fields):
                return self._keep(fields, size)
            return self.refuse(request_id, Refusal(INVALID_REQUEST, "a message needs a method, or a result and its id"))
        sound = isinstance(method, str) and (params is None or isinstance(params, dict))
        if "id" not in fields:
            return self._keep(fields, size) if sound else None  # a notification is never answered
        if not sound or request_id is None:
            reason = "a request needs an id (string or integer), a method (string) and params (object) if any"
            return self.refuse(request_id, Refusal(INVALID_REQUEST, reason))
        try:
            result = self.handshake.answer(cast("str", method), cast("dict[str, Any] | None", params))
        except Refusal as refusal:
            return self.refuse(request_id, refusal)
        if result is None:
            return self._ask(fields, size)
        return self._reply({"jsonrpc": "2.0", "id": request_id, "result": result})

    def _ask(self, request: dict[str, Any], size: int) -> None:
        """Answer a request for a list that is known, if the gateway cannot yet; otherwise it waits for the gateway."""
        lists, method = self.lists, request["method"]
        if (
            lists is not None
            and not self._is_served
            and (told := lists.acknowledge(request, self.handshake)) is not None
        ):
            self.acknowledge(told.subscription, told.notification)
            return self._keep(request, size)
        asked = None if lists is None else lists.asked(method, request.get("params"), self.handshake)
        if lists is None or asked is None or self._is_served or (early := lists.given(method, asked)) is None:
            return self._keep(request, size, asked)
        self._reply({"jsonrpc": "2.0", "id": request["id"], "result": early.result})
        if early.request is not None:
            # Nobody waits for the answer, so upstreams have all the time that they ever have.
            self._keep(early.request, size, early.asked, at=math.inf)
        return None

    def _too_deep(self, fields: dict[str, Any], size: int) -> None:
        if "method" in fields:
            refusal = Refusal(INVALID_REQUEST, f"a message may not nest deeper than {DEEPEST} levels")
            return self.refuse(_id(fields), refusal) if "id" in fields else None
        return self._keep(to_json_safe(fields), size)  # an answer: its request gets what is left of it

    def _keep(
        self, message: dict[str, Any], size: int, asked: AskedList | None = None, at: float | None = None
    ) -> None:
        arrival = Arrival(self._clock() if at is None else at, self._clock, asked=asked)
        with self._room:
            # The messages of a host that sends faster than it is served wait in its pipe, not in our memory.
            while self._waiting and (
                self._waiting_bytes + size > 2 * self._max_line_bytes or len(self._waiting) >= _MAX_WAITING
            ):
                self._room.wait()
            self._waiting.append((message, size, arrival))
            self._waiting_bytes += size
        self._awake()


def _read(line: bytes) -> Any:
    """Parse a line as JSON. Raises ValueError if it is not JSON."""
    try:
        return json.loads(line)
    except (ValueError, RecursionError):
        return read_leniently(line)


def _is_suspect(line: bytes) -> bool:
    """Whether a message may be nested too deeply or contain half a surrogate pair. Takes almost no time."""
    return may_be_deep(line) or b"\\ud" in line or b"\\uD" in line


def _id(fields: Mapping[str, Any]) -> str | int | None:
    given = fields.get("id")
    return given if isinstance(given, (str, int)) and not isinstance(given, bool) else None


def _reason(error: Exception) -> str:
    return str(error) if isinstance(error, json.JSONDecodeError) else type(error).__name__
