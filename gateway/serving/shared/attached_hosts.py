"""The gateway's side: the hosts that are attached, each with a connection and a state of its own."""

import logging
import os
import time
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import anyio
from anyio.abc import SocketAttribute, SocketStream

from gateway.config.moments import moment_text
from gateway.config.shared_settings import SharedSettings
from gateway.config.toolset_settings import which_toolset
from gateway.core.model.caller import Caller
from gateway.core.model.json_values import as_list, as_object, is_object
from gateway.core.model.toolset_scope import problem_in
from gateway.core.near_names import did_you_mean
from gateway.core.profiles.match_profile import known_name
from gateway.errors import GatewayError, InvalidRequest
from gateway.serving.control.protocol import refusal_reply, result
from gateway.serving.mcp.downstream import Downstream
from gateway.serving.mcp.handshake import Handshake
from gateway.serving.mcp.line_streams import LineReads, LineWrites, Sender
from gateway.serving.mcp.stdio import LINGER_SECONDS, expected_host
from gateway.serving.mcp.streams import StreamConnection
from gateway.serving.shared.attach import ATTACH, GOODBYE, differing
from gateway.system.background_tasks import background_tasks
from gateway.system.peer_credentials import peer_of

_FIRST_SECONDS = 30.0
"""Minimum time for the first host to attach."""
_GOODBYE_SECONDS = 1.0
_CLOSING_SECONDS = 4.0
_LONGEST_NAME = 200
_LONGEST_TOOLSET = 500
_MOST_IDS = 2**53
_MOST_TOOLSETS = 8

_logger = logging.getLogger(__name__)


@dataclass(eq=False)
class AttachedHost:
    """An attached host: the process that relays for it, what it was started with, and its connection."""

    pid: int | None
    since: float
    sender: Sender
    differing: list[str]
    first_id: int
    handshake: Handshake
    scope: anyio.CancelScope = field(default_factory=anyio.CancelScope)
    session: str | None = None

    @property
    def caller(self) -> Caller | None:
        """The host, as far as it has introduced itself."""
        return expected_host(self.handshake)


class AttachedHosts:
    """The hosts of a shared gateway. `key` is that by which they find it.

    `settings`, `profile_names` and `toolset_names` return what is in force. Hosts that attach before `open` wait for
    it.
    """

    def __init__(
        self,
        key: str,
        settings: Callable[[], SharedSettings],
        profile_names: Callable[[], Collection[str]],
        toolset_names: Callable[[], Collection[str]] = tuple[str, ...],
        environ: Mapping[str, str] = os.environ,
    ) -> None:
        self.key = key
        self._settings = settings
        self._profile_names = profile_names
        self._toolset_names = toolset_names
        self._environ = environ
        self._downstream: Downstream | None = None
        self._opened = anyio.Event()
        self._changed = anyio.Event()
        self._hosts: list[AttachedHost] = []
        self._ending = False
        self._had_one = False

    def open(self, downstream: Downstream) -> None:
        """Serve the hosts with this server, which has to run, from now on."""
        self._downstream = downstream
        self._opened.set()

    def sole(self, before: Caller | None = None) -> Caller | None:
        """Return the host if there is exactly one; `before` until the first one has attached."""
        if not self._had_one:
            return before
        if len(self._hosts) != 1:
            return None
        (host,) = self._hosts
        caller = host.caller
        return before if caller is None and before is not None else caller

    async def deserted(self) -> None:
        """Return when no host has been attached for `[shared] linger` seconds. From then on none can attach."""
        while not self._ending:
            while self._hosts:
                await self._changed.wait()
            linger = self._settings().linger
            with anyio.move_on_after(linger if self._had_one else max(linger, _FIRST_SECONDS)) as scope:
                await self._changed.wait()
            self._ending = scope.cancelled_caught and not self._hosts

    async def close(self) -> None:
        """Say goodbye to all hosts, and wait for a limited time until they are gone."""
        self._ending = True
        with anyio.move_on_after(_CLOSING_SECONDS, shield=True):
            for host in self._hosts:
                host.scope.cancel()
            while self._hosts:
                await self._changed.wait()

    def report(self) -> list[dict[str, Any]]:
        """Return the attached hosts for `status`."""
        return [_reported(host) for host in self._hosts]

    def pid_of(self, session: str | None) -> int | None:
        """Return the process that relays for the host of a session."""
        return next((host.pid for host in self._hosts if session is not None and host.session == session), None)

    async def serve(self, request: Mapping[str, Any], stream: SocketStream, rest: bytes) -> None:
        """Serve the host of a connection until either end closes it."""
        await self._opened.wait()
        assert self._downstream is not None
        try:
            if self._ending:
                return await stream.send(result({"ending": True}))
            host = self._host(request, stream)
        except GatewayError as error:
            _logger.warning("a host cannot attach: %s", error)
            return await stream.send(refusal_reply(str(error)))
        self._hosts.append(host)
        self._had_one = True
        self._wake()
        _logger.info("a host has attached: process %s%s", host.pid, _with(host.sender))
        if host.differing:
            _logger.warning(
                "process %s has other values of %s than this gateway, whose values hold for all hosts",
                host.pid,
                ", ".join(host.differing),
            )
        try:
            await stream.send(result({"pid": os.getpid()}))
            await self._served(host, stream, rest, self._downstream)
        finally:
            self._hosts.remove(host)
            self._wake()
            _logger.info("an attached host has left: process %s", host.pid)
        return None

    async def _served(self, host: AttachedHost, stream: SocketStream, rest: bytes, downstream: Downstream) -> None:
        reads, writes = LineReads(stream, rest, host.sender), LineWrites(stream)
        reads.room = writes.room
        connection = StreamConnection(downstream, reads, writes, host.handshake, first_id=host.first_id)
        host.session = connection.session

        async def settle() -> None:
            await connection.settle(LINGER_SECONDS)

        reads.settle = settle
        left = False
        try:
            async with background_tasks() as tasks:
                tasks.start_soon(writes.run)
                with host.scope:
                    await connection.serve()
                    left = True
        finally:
            if not left and writes.is_whole:  # this gateway ends, and was asked to
                with anyio.move_on_after(_GOODBYE_SECONDS, shield=True):
                    await stream.send(GOODBYE)

    def _host(self, request: Mapping[str, Any], stream: SocketStream) -> AttachedHost:
        """Return the host that wants to attach. Raises InvalidRequest if it may not."""
        assert self._downstream is not None
        if request.get("attach") != ATTACH:
            raise InvalidRequest(
                "this gateway is of another version than the process of the host", remedy="restart the host"
            )
        most = self._settings().max_hosts
        if len(self._hosts) >= most:
            raise InvalidRequest(
                f"{most} hosts are attached to the gateway {os.getpid()} already",
                remedy="raise [shared] max_hosts, or start this host's gateway without --shared",
            )
        differs = differing(as_object(request.get("environment")), self._environ, str(request.get("salt")))
        first_id, peer = request.get("first_id"), peer_of(stream.extra_attributes[SocketAttribute.raw_socket]())
        return AttachedHost(
            pid=peer.pid if peer is not None and peer.pid is not None else _whole(request.get("pid")),
            since=time.time(),
            sender=replace(self._sender(request), keeps_lists=not differs),
            differing=differs,
            first_id=min(max(0, _whole(first_id) or 0), _MOST_IDS),
            handshake=Handshake(self._downstream.identity),
        )

    def _sender(self, request: Mapping[str, Any]) -> Sender:
        names, known, chosen = _names(request.get("toolsets")), self._toolset_names(), _name(request.get("toolset"))
        if chosen is not None and chosen not in known:  # one that only its project names leaves it nothing
            raise InvalidRequest(f"there is no toolset {chosen!r}", remedy=which_toolset(chosen, known))
        return Sender(self._profile(_name(request.get("profile"))), _name(request.get("model")), names)

    def _profile(self, chosen: str | None) -> str | None:
        if chosen is None:
            return None
        names = self._profile_names()
        if (known := known_name(names, chosen)) is None:
            remedy = did_you_mean(chosen, names) or "`mcp-gateway profiles` lists them"
            raise InvalidRequest(f"there is no profile {chosen!r}", remedy=remedy)
        return known

    def _wake(self) -> None:
        self._changed.set()
        self._changed = anyio.Event()


def _reported(host: AttachedHost) -> dict[str, Any]:
    caller = host.caller
    return {
        "pid": host.pid,
        "since": moment_text(host.since),
        "profile": host.sender.profile,
        "model": host.sender.model,
        "toolsets": [name for name in host.sender.toolsets if problem_in(name) is None],
        "name": None if caller is None else caller.client_name,
        "version": None if caller is None else as_object(caller.client_info).get("version"),
        "environment": host.differing,
    }


def introduced_host(told: object) -> Caller | None:
    """Return the host whose introduction its relay has sent ahead (`introduction`), or None if there is none."""
    if not is_object(told) or not isinstance(told.get("revision"), str):
        return None
    info = as_object(told.get("client_info"))
    return Caller(
        revision=told["revision"],
        client_name=_name(info.get("name")),
        client_info=info or None,
        capabilities=as_object(told.get("capabilities")),
        profile=_name(told.get("profile")),
        model=_name(told.get("model")),
        toolsets=_names(told.get("toolsets")),
    )


def _with(sender: Sender) -> str:
    profile = "" if sender.profile is None else f", profile {sender.profile}"
    return profile + "".join(f", toolset {name}" for name in sender.toolsets if problem_in(name) is None)


def _whole(value: object) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def _name(value: object) -> str | None:
    return value if isinstance(value, str) and 0 < len(value) <= _LONGEST_NAME else None


def _names(value: object) -> tuple[str, ...]:
    # None is left out: each takes something away, and no toolset has a name that is too long.
    return tuple(one[:_LONGEST_TOOLSET] for one in as_list(value)[:_MOST_TOOLSETS] if isinstance(one, str))
