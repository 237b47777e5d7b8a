"""The gateway's side of the control socket: one command per connection, with limits against misuse."""

import hmac
import logging
import os
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Mapping
from contextlib import aclosing
from dataclasses import dataclass
from inspect import isawaitable
from typing import TYPE_CHECKING, Any

import anyio
from anyio.abc import SocketAttribute, SocketListener, SocketStream

from gateway.errors import GatewayError
from gateway.serving.control import protocol
from gateway.serving.control.endpoint import Endpoint
from gateway.system.peer_credentials import peer_of

if TYPE_CHECKING:
    from gateway.serving.http import WrongTokens

logger = logging.getLogger(__name__)

_AT_ONCE = 16
_SAYING = 5.0  # seconds for a caller to send its request, and again to read the answer
_PAUSE = 1.0
_PIECE = 256 * 1024

_SILENCE = 60.0  # seconds without a piece of content

Silent = dict[SocketStream, anyio.CancelScope]
"""Callers that have not sent a request yet, in order of arrival, each with the scope that cancels the wait for it."""

Answer = Callable[[], Awaitable[dict[str, Any]]]
Plain = Callable[[Mapping[str, Any]], dict[str, Any] | Awaitable[dict[str, Any]]]
"""Takes a request and returns the result, or what it is awaited from. Raises GatewayError."""
Transfer = Callable[[dict[str, Any], AsyncIterator[bytes]], AsyncGenerator[bytes]]
"""Takes a request and the bytes that follow it, and yields the bytes of the reply. Raises GatewayError."""
Attach = Callable[[Mapping[str, Any], SocketStream, bytes], Awaitable[None]]
"""Takes a request, its connection, and the bytes that have followed it, and returns when the connection has ended."""


@dataclass(frozen=True)
class Commands:
    """The commands. `stop` is called after its answer has been sent, and must not block."""

    status: Answer
    reload: Answer
    stop: Callable[[], None]
    calibrate: Plain | None = None
    content: Transfer | None = None
    approvals: Plain | None = None
    pins: Plain | None = None
    logins: Callable[[Mapping[str, Any]], Awaitable[dict[str, Any]]] | None = None
    console: Callable[[], Awaitable[str]] | None = None
    """Returns an address of the console for one browser."""
    attach: Attach | None = None
    """Serves the host of a connection (`serve --shared`), for as long as that is open."""
    grace: float = 0.0
    """Seconds that `stop` may take, because running requests end first."""


async def answer_callers(listener: SocketListener, endpoint: Endpoint, commands: Commands) -> None:
    """Answer callers until cancelled. A caller that misbehaves does not affect others."""
    callers: set[SocketStream] = set()
    silent: Silent = {}
    guesses = _Guesses()
    is_out = False
    async with listener, anyio.create_task_group() as tasks:
        while True:
            try:
                stream = await listener.accept()
                is_out = False
            except OSError as error:  # no free file descriptors, for instance
                if not is_out:  # one line each time would fill the log
                    logger.warning("the control endpoint cannot accept a connection: %s", error.strerror or error)
                is_out = True
                await anyio.sleep(_PAUSE)
                continue
            if _is_foreign(stream) or (len(callers) >= _AT_ONCE and not silent):
                await stream.aclose()
                continue
            if len(callers) >= _AT_ONCE:  # the caller that has been silent for longest is dropped
                longest = next(iter(silent))
                silent.pop(longest).cancel()
                callers.discard(longest)
            callers.add(stream)
            silent[stream] = listening = anyio.CancelScope()
            tasks.start_soon(_converse, stream, listening, endpoint, commands, callers, silent, guesses)


async def _converse(
    stream: SocketStream,
    listening: anyio.CancelScope,
    endpoint: Endpoint,
    commands: Commands,
    callers: set[SocketStream],
    silent: Silent,
    guesses: "_Guesses",
) -> None:
    stopping = False
    try:
        async with stream:
            said: tuple[dict[str, Any] | bytes, bytes] | None = None
            with listening:
                said = await _said(stream, endpoint, guesses)
            silent.pop(stream, None)
            if said is None:
                return None
            request, rest = said
            if isinstance(request, dict) and request.get("command") == "content" and commands.content is not None:
                return await _transfer(stream, rest, request, commands.content)
            if isinstance(request, dict) and request.get("command") == "attach" and commands.attach is not None:
                callers.discard(stream)  # it stays as long as its host, and has a limit of its own
                return await _attached(stream, rest, request, commands.attach)
            reply, stopping = (
                (request, False) if isinstance(request, bytes) else await _reply(request, commands, _by(stream))
            )
            with anyio.move_on_after(_SAYING):
                await stream.send(reply)
    except (anyio.BrokenResourceError, anyio.ClosedResourceError, OSError):
        logger.debug("a caller of the control endpoint is gone")
    finally:
        silent.pop(stream, None)
        callers.discard(stream)
        if stopping:
            commands.stop()


async def _line(stream: SocketStream) -> tuple[bytes, bytes] | None:
    """Return the bytes before the first line end and those after it, or None if it is too long or has no end."""
    gathered = b""
    while b"\n" not in gathered:
        if len(gathered) > protocol.MAX_REQUEST_BYTES:
            return None
        try:
            gathered += await stream.receive(protocol.MAX_REQUEST_BYTES)
        except anyio.EndOfStream:
            return None
    line, _, rest = gathered.partition(b"\n")
    return line, rest


class _Guesses:
    """Wrong tokens, handled as on the gateway's other ports: logged, and each answered later than the one before."""

    def __init__(self) -> None:
        self._wrong_tokens: WrongTokens | None = None

    async def count(self) -> None:
        """Count one more, and wait for its delay."""
        if self._wrong_tokens is None:
            from gateway.serving.http import WrongTokens  # imports a web server, which is not needed before

            self._wrong_tokens = WrongTokens("the control endpoint")
        await self._wrong_tokens.refused_from("127.0.0.1")


async def _said(
    stream: SocketStream, endpoint: Endpoint, guesses: "_Guesses"
) -> tuple[dict[str, Any] | bytes, bytes] | None:
    """Return the request or the refusal to answer with, and the bytes after it; None if nothing came in time.

    A wrong token is refused later each time. A caller that waits for this makes room for others, as a silent one does.
    """
    said: tuple[bytes, bytes] | None = None
    with anyio.move_on_after(_SAYING):
        said = await _line(stream)
    if said is None:
        return None
    line, rest = said
    request = _request(line)
    if isinstance(request, dict) and not _may(request, endpoint):
        await guesses.count()
        return protocol.refusal_reply("the token is wrong"), rest
    return request, rest


def _request(line: bytes) -> dict[str, Any] | bytes:
    """Return the request, or a refusal if it cannot be read."""
    try:
        return protocol.parse_line(line)
    except ValueError as error:
        return protocol.refusal_reply(f"the request cannot be read: {error}")


def _may(request: Mapping[str, Any], endpoint: Endpoint) -> bool:
    given = str(request.get("token")).encode("utf-8", "replace")
    return endpoint.token is None or hmac.compare_digest(given, endpoint.token.encode())


def _is_foreign(stream: SocketStream) -> bool:
    """Whether another user is at the other end, as far as the system says so. The socket's folder is closed to them."""
    peer = peer_of(stream.extra_attributes[SocketAttribute.raw_socket]())
    return peer is not None and peer.user not in (os.geteuid(), 0)


def _by(stream: SocketStream) -> str:
    """Return words for the log: which process asks, as far as the system says so."""
    peer = peer_of(stream.extra_attributes[SocketAttribute.raw_socket]())
    if peer is None:
        return ""
    return f" by user {peer.user}" if peer.pid is None else f" by process {peer.pid} of user {peer.user}"


async def _attached(stream: SocketStream, rest: bytes, request: dict[str, Any], attach: Attach) -> None:
    try:
        await attach(request, stream, rest)
    except (anyio.BrokenResourceError, anyio.ClosedResourceError):
        raise
    except Exception:  # as in `_reply`: no error in it may end the gateway
        logger.exception("the connection of an attached host failed")


async def _transfer(stream: SocketStream, rest: bytes, request: dict[str, Any], content: Transfer) -> None:
    begun = False
    async with aclosing(_incoming(stream, rest)) as incoming:
        try:
            async with aclosing(content(request, incoming)) as pieces:
                async for piece in pieces:
                    begun = True
                    with anyio.fail_after(_SILENCE):
                        await stream.send(piece)
            return
        except (anyio.BrokenResourceError, anyio.ClosedResourceError):
            raise
        except GatewayError as error:
            said = str(error)
        except Exception as error:
            # As in `_reply`: no error in it may end the gateway.
            logger.exception("content at the control endpoint failed")
            said = f"internal error of the gateway: {type(error).__name__}, see its log"
        if begun:  # the caller sees that there is less than announced
            logger.warning("content broke off at the control endpoint: %s", said)
            return
        with anyio.move_on_after(_SAYING):
            await stream.send(protocol.refusal_reply(said))
            async for _ in incoming:  # until the caller has read the answer
                pass


async def _incoming(stream: SocketStream, rest: bytes) -> AsyncGenerator[bytes]:
    if rest:
        yield rest
    while True:
        try:
            with anyio.fail_after(_SILENCE):
                piece = await stream.receive(_PIECE)
        except anyio.EndOfStream:
            return
        yield piece


async def _reply(request: dict[str, Any], commands: Commands, by: str) -> tuple[bytes, bool]:
    """Return the answer, and whether the gateway is to stop after it. `by` says for the log who asks."""
    try:
        match request.get("command"):
            case "status":
                return _bounded(protocol.result(await commands.status())), False
            case "reload":
                logger.info("asked to read the configuration again")
                return _bounded(protocol.result(await commands.reload())), False
            case "stop":
                logger.info("asked to stop%s", by)
                return protocol.result({"grace": commands.grace}), True
            case "login" | "logout" if commands.logins is not None:
                return _bounded(protocol.result(await commands.logins(request))), False
            case "calibrate" | "approvals" | "pins" as name if (plain := getattr(commands, name)) is not None:
                answer = plain(request)
                return _bounded(protocol.result(await answer if isawaitable(answer) else answer)), False
            case "console" if commands.console is not None:
                return _bounded(protocol.result({"url": await commands.console()})), False
            case _:
                return protocol.refusal_reply(f"the commands are {', '.join(protocol.COMMANDS)}"), False
    except GatewayError as error:
        return protocol.refusal_reply(str(error)), False
    except Exception as error:
        # Nothing catches errors after this, and no error in an answer may end the gateway.
        logger.exception("a command of the control endpoint failed")
        return protocol.refusal_reply(f"internal error of the gateway: {type(error).__name__}, see its log"), False


def _bounded(reply: bytes) -> bytes:
    return reply if len(reply) <= protocol.MAX_REPLY_BYTES else protocol.refusal_reply("the answer would be too long")
