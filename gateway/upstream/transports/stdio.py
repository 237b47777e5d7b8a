"""The stdio transport: an upstream as a child process, one JSON-RPC message per line.

It is our own because the SDK's reader takes time proportional to the square of a line's length (10 MB: 250 ms, on the
event loop), does not limit it, and lets the child write its stderr to ours.
"""

import logging
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager

import anyio
from anyio.abc import ByteReceiveStream
from mcp.shared.message import SessionMessage

from gateway.config.upstream_settings import UpstreamSettings
from gateway.system.turns import Turns, few_lines_each
from gateway.upstream.transports.causes import MessageTooLarge, NotMcp, ProcessEnded, Stopping, TooManyValues
from gateway.upstream.transports.channel import Channel, Ending
from gateway.upstream.transports.installer_output import LastLines, absent_package
from gateway.upstream.transports.launchers import launcher_of
from gateway.upstream.transports.lines import LineReader, LongLine
from gateway.upstream.transports.messages import answered_id, failed_answer, failure_in, read_messages, write_message
from gateway.upstream.transports.printed import Hint, read_printed, serves_http
from gateway.upstream.transports.processes import GENTLE, HURRIED, LEISURELY, Child, end, exit_words, settled, spawn
from gateway.upstream.transports.redaction import Secrets, last_meaningful_line, meaningful_lines

logger = logging.getLogger(__name__)

_CHUNK = 256 * 1024
_QUEUED = 64
_ENDS = 4_096
"""Bytes at each end of a message in which its id is looked for."""
_STDERR_LINES = 20
_TOLD_LINES = 5
"""Number of the last lines on stderr that a failure keeps for `doctor`."""
_STDERR_LINE = 2_000
_LAST_WORDS = 0.3  # seconds for a process's last output to arrive after it ended
_LAST_BREATH = 1.0  # seconds for a process to end after it closed one of its pipes


@asynccontextmanager
async def open_stdio(settings: UpstreamSettings, secrets: Secrets) -> AsyncGenerator[Channel]:
    """Start the upstream's command and connect to it. Leaving ends it and everything it started, even if cancelled.

    Raises OSError if the command cannot be started.
    """
    installs = launcher_of(settings.command, settings.args) is not None
    child = await spawn(settings, gently=installs)
    # Nothing is awaited from here to the task group: a cancellation in between would leave the process behind.
    pipes = _Pipes(child, settings.max_message_bytes, secrets, installs=installs)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(pipes.read_stderr)
        tasks.start_soon(pipes.read_stdout)
        tasks.start_soon(pipes.write_stdin)
        tasks.start_soon(pipes.watch)
        try:
            yield pipes.channel
        finally:
            with anyio.CancelScope(shield=True):
                hurried = isinstance(pipes.channel.ending.failure, Stopping)
                if not await end(child, GENTLE if pipes.may_install else HURRIED if hurried else LEISURELY):
                    logger.warning("process %d of an upstream survived SIGKILL and is left behind", child.pid)
            tasks.cancel_scope.cancel()
            pipes.close()


class _Pipes:
    """The three pipes of a process, each with its own task, and a fourth task that waits for the process to end."""

    def __init__(self, child: Child, limit: int, secrets: Secrets, *, installs: bool) -> None:
        self._child = child
        self._process = child.process
        self.may_install = installs
        """Whether the command is a launcher that installs, and its server neither sent a message nor named a port."""
        self._printed = 0
        self._limit = limit
        self._secrets = secrets
        self._inbound, read = anyio.create_memory_object_stream[SessionMessage | Exception](0)
        write, self._outbound = anyio.create_memory_object_stream[SessionMessage](_QUEUED)
        self._streams = (self._inbound, read, write, self._outbound)
        self._ending = Ending()
        self._listening = True
        self._reading = anyio.CancelScope()
        self._stdout_ended = anyio.Event()
        self._stderr_ended = anyio.Event()
        self._stderr = LastLines(_STDERR_LINES)
        self._garbage = 0
        self._first_garbage = ""
        self._serving: str | None = None
        """The first line, before any message, that says that the program serves HTTP."""
        self._has_answered = False
        looks = (child.tree.work, lambda: self._printed, lambda: self._serving is not None and not self._has_answered)
        self.channel = Channel(read, write, self._ending, failure_in, self._hint, False, child.pid, *looks)

    async def read_stdout(self) -> None:
        lines, turns = LineReader(self._limit), Turns()
        assert self._process.stdout is not None
        with self._reading:
            async for chunk in _chunks(self._process.stdout):
                self._printed += len(chunk)
                for line in lines.feed(chunk):
                    await self._take(line)
                    await turns.give_way()
            await self._take(lines.rest())
        self._stdout_ended.set()
        await self._say_why()
        self._inbound.close()

    async def read_stderr(self) -> None:
        """Read everything from stderr, so that the process never blocks on it, and keep the last lines."""
        lines, turns = LineReader(_STDERR_LINE), Turns()
        assert self._process.stderr is not None
        async for chunk in _chunks(self._process.stderr):
            self._printed += len(chunk)
            for line in lines.feed(chunk):
                self._read_log(_text(line))
                await turns.give_way()
        self._read_log(_text(lines.rest()))
        self._stderr_ended.set()

    async def write_stdin(self) -> None:
        assert self._process.stdin is not None
        with self._outbound:
            async for item in self._outbound:
                try:
                    await self._process.stdin.send(write_message(item.message) + b"\n")
                except (anyio.BrokenResourceError, anyio.ClosedResourceError, OSError):
                    break
            else:
                return
        # The process does not read its input. If it is not about to end, it will never respond either.
        with anyio.move_on_after(_LAST_BREATH):
            await self._stdout_ended.wait()
        self._reading.cancel()

    async def watch(self) -> None:
        """Notice the end of the process even if a child of it keeps its stdout open."""
        await self._process.wait()
        with anyio.move_on_after(_LAST_WORDS):
            await self._stdout_ended.wait()
        self._reading.cancel()

    def close(self) -> None:
        for stream in self._streams:
            stream.close()

    async def _take(self, line: bytes | LongLine) -> None:
        if isinstance(line, LongLine):
            await self._take_long(line)
        elif line.strip():
            try:
                messages = read_messages(line)
            except TooManyValues as failure:
                await self._fail(line[:_ENDS], line[-_ENDS:], failure)
                return
            except NotMcp:
                self._take_garbage(_text(line))
                return
            self._has_answered = self._has_answered or bool(messages)
            if messages:
                self._is_installed()
            for message in messages:
                await self._deliver(message)

    async def _take_long(self, line: LongLine) -> None:
        if line.head.lstrip().startswith((b"{", b"[")):
            await self._fail(line.head, line.tail, MessageTooLarge(self._limit))
        else:
            self._take_garbage(_text(line))

    def _take_garbage(self, line: str) -> None:
        self._garbage += 1
        self._first_garbage = self._first_garbage or line
        self._look_for_address(line)

    def _read_log(self, line: str) -> None:
        self._stderr.add(line)
        self._look_for_address(line)

    def _look_for_address(self, line: str) -> None:
        if self._serving is None and not self._has_answered and serves_http(line):
            self._serving = line
            self._is_installed()

    def _is_installed(self) -> None:
        if self.may_install:
            self.may_install = False
            settled(self._child)

    async def _fail(self, head: bytes, tail: bytes, failure: Exception) -> None:
        """Fail the request that is answered by a message which cannot be read, given its first and last bytes."""
        request_id = answered_id(head, tail)
        if request_id is not None:
            await self._deliver(failed_answer(request_id, failure))
        else:
            # The request that waits for this message is unknown: the connection cannot continue.
            self._ending.name(failure)
            self._reading.cancel()

    async def _deliver(self, message: SessionMessage) -> None:
        if self._listening:
            try:
                await self._inbound.send(message)
            except (anyio.BrokenResourceError, anyio.ClosedResourceError):
                self._listening = False  # we are closing; reading on lets the process finish writing and end

    async def _say_why(self) -> None:
        """Record the cause before the message stream ends, so that calls that fail can report it."""
        with anyio.move_on_after(_LAST_BREATH):
            await self._process.wait()
        with anyio.move_on_after(_LAST_WORDS):
            await self._stderr_ended.wait()
        code = self._process.returncode
        how = "closed its output without exiting" if code is None else exit_words(code)
        last = [self._secrets.cause(line) for line in meaningful_lines(self._stderr.lines, _TOLD_LINES)]
        self._ending.name(ProcessEnded(how, self._hint(), last))

    def _hint(self) -> Hint | None:
        lines, garbage = self._stderr.lines, (self._garbage, self._first_garbage)
        return read_printed(last_meaningful_line(lines), *garbage, self._secrets, absent_package(lines), self._serving)


async def _chunks(stream: ByteReceiveStream) -> AsyncIterator[bytes]:
    """Yield what comes from a pipe until it ends, breaks or is closed, which are all treated as its end."""
    while True:
        try:
            chunk = await stream.receive(_CHUNK)
        except (anyio.EndOfStream, anyio.BrokenResourceError, anyio.ClosedResourceError, OSError):
            return
        for piece in few_lines_each(chunk):
            yield piece


def _text(line: bytes | LongLine) -> str:
    return (line.head if isinstance(line, LongLine) else line)[:_STDERR_LINE].decode("utf-8", "replace")
