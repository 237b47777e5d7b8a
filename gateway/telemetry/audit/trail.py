"""The audit trail of a gateway: entries are queued, and written in order by one task, in a thread."""

import asyncio
import logging
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from fnmatch import fnmatchcase
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import anyio
from anyio import to_thread
from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream

from gateway.config.audit_settings import ArgumentRule, AuditSettings
from gateway.config.schema import Settings
from gateway.config.secrets import all_secrets, longest_first
from gateway.config.upstream_settings import UpstreamSettings
from gateway.core.model.caller import Caller
from gateway.core.model.grant import SEPARATOR
from gateway.errors import (
    AuditUnavailable,
    ConfigError,
)
from gateway.system.background_tasks import background_tasks
from gateway.telemetry.audit.audited_request import AuditedRequest
from gateway.telemetry.audit.chain import Chain
from gateway.telemetry.audit.entry import AuditEntry
from gateway.telemetry.audit.mask_arguments import masked
from gateway.telemetry.audit.record_writer import Record, RecordWriter, now
from gateway.telemetry.audit.refusal_counts import RefusalCounts
from gateway.telemetry.audit.upstream_identity import identity_of

if TYPE_CHECKING:
    from gateway.telemetry.audit.send_lines import LineSender

logger = logging.getLogger(__name__)

_QUEUED = 256
"""Maximum number of entries that wait for the writer; then requests wait, and events are dropped and counted."""
_AT_ONCE = 64
_LAST_SECONDS = 10.0
"""Time to write what is left when the gateway ends."""
_SHORTEST_SECRET = 6
FindUpstream = Callable[[str], tuple[UpstreamSettings, Mapping[str, Any] | None] | None]
"""Returns an upstream's settings and what it says it is (`serverInfo`); None if there is no such upstream."""


class _Item(NamedTuple):
    """What waits for the writer: how to make the record, and what is set once it was written, or could not be."""

    record: Callable[[], Record] | None
    done: anyio.Event | None = None


@asynccontextmanager
async def open_audit_trail(settings: Settings, upstream: FindUpstream) -> AsyncGenerator["AuditTrail | None"]:
    """Context manager: the audit trail, or None if none is configured.

    Raises:
        ConfigError: its file cannot be written to, or what sends its lines is not installed.
    """
    path = settings.audit.path
    if path is None:
        yield None
        return
    try:
        chain = await to_thread.run_sync(lambda: _opened(settings.audit))
    except OSError as error:
        remedy = "name a file in a folder of this user"
        if isinstance(error, FileNotFoundError):
            remedy += f", or create {path.parent.parent}"
        raise ConfigError(f"cannot be written: {error.strerror or error}", where="audit.path", remedy=remedy) from None
    try:
        sender = _sender(settings)
        trail = AuditTrail(settings, chain, upstream, sender)
        try:
            async with trail.writing():
                yield trail
        finally:
            if sender is not None:
                with anyio.CancelScope(shield=True):
                    await to_thread.run_sync(sender.close)
    finally:
        chain.close()


def _sender(settings: Settings) -> "LineSender | None":
    if not settings.audit.otlp:
        return None
    from gateway.telemetry.audit.send_lines import LineSender

    return LineSender(settings.gateway.name)


def _opened(settings: AuditSettings) -> Chain:
    assert settings.path is not None
    return Chain(settings.path, max_bytes=settings.max_bytes, keep=settings.keep)


class AuditTrail:
    """Writes a line for each request (`begin`) and for each event (`login`, `reloaded` and so on).

    Lines are made and written by a thread, one after the other. With `on_failure = "refuse"` a request is answered only
    after its line was written, and refused while nothing can be.
    """

    def __init__(
        self, settings: Settings, chain: Chain, upstream: FindUpstream, sender: "LineSender | None" = None
    ) -> None:
        self._chain = chain
        self._writer = RecordWriter(chain, sender)
        self._upstream = upstream
        self._send: MemoryObjectSendStream[_Item]
        self._receive: MemoryObjectReceiveStream[_Item]
        self._send, self._receive = anyio.create_memory_object_stream[_Item](_QUEUED)
        self._until_written = anyio.CancelScope(shield=True)
        self._not_queued = 0
        self._failure: str | None = None
        self._refusals, self._refused_logins, self._limited = RefusalCounts(), RefusalCounts(), RefusalCounts()
        self.reconfigure(settings)

    def reconfigure(self, settings: Settings) -> None:
        """Apply changed settings; the file stays the same."""
        self._settings = settings.audit
        self.secrets = longest_first(all_secrets(settings), _SHORTEST_SECRET)
        self._chain.max_bytes, self._chain.keep = settings.audit.max_bytes, settings.audit.keep

    @property
    def path(self) -> Path:
        """The file that is written to."""
        return self._chain.path

    @property
    def refuses(self) -> bool:
        """Whether requests that cannot be recorded are refused."""
        return self._settings.on_failure == "refuse"

    @property
    def problem(self) -> str | None:
        """Why nothing can be written at present; None if all is well."""
        return self._failure

    @asynccontextmanager
    async def writing(self) -> AsyncGenerator[None]:
        """Context manager: entries are written while it is open, and what is left at its end."""
        async with background_tasks() as tasks:
            tasks.start_soon(self._write_all)
            try:
                yield
            finally:
                self._send.close()
                self._until_written.deadline = anyio.current_time() + _LAST_SECONDS

    # -- requests ------------------------------------------------------------------------------------------------------

    def begin(self, method: str, params: Mapping[str, Any], caller: Caller, profile: str) -> AuditEntry:
        """Return the entry for a request, to be entered while it runs."""
        return AuditedRequest(self, method, params, caller, profile)

    def argument_rule(self, upstream: str, tool: str) -> ArgumentRule:
        """Return what is written of a tool's arguments."""
        name = f"{upstream}{SEPARATOR}{tool}"
        for pattern, rule in self._settings.tools.items():
            if fnmatchcase(name, pattern):
                return rule
        return self._settings.arguments

    def about_upstream(self, name: str) -> Callable[[], Mapping[str, Any]]:
        """Return what says which server an upstream is at this moment; to be called by the writer."""
        found = self._upstream(name) if name else None
        return dict if found is None else lambda: identity_of(*found)

    async def admit(self) -> None:
        """Wait until it is known whether lines can be written, if the last attempt failed.

        Raises:
            AuditUnavailable: they cannot, and requests have to be refused for that.
        """
        if self._failure is not None and self.refuses:
            await self.put(None)

    async def put(self, record: Callable[[], Record] | None) -> None:
        """Queue a record, and wait until it is written if requests are refused otherwise.

        Raises:
            AuditUnavailable: it could not be written, and the request has to be refused for that.
        """
        done = anyio.Event() if self.refuses else None
        try:
            await self._queue(_Item(record, done))
        except (anyio.ClosedResourceError, anyio.BrokenResourceError):  # the gateway ends
            return
        if done is None:
            return
        await done.wait()
        if self._failure is not None:
            raise AuditUnavailable(
                "the request is refused, because the audit trail cannot be written",
                remedy="the log of the gateway says why",
            )

    async def _queue(self, item: _Item) -> None:
        try:
            self._send.send_nowait(item)  # also if the request is cancelled at this moment
        except anyio.WouldBlock:
            try:
                await self._send.send(item)
            except asyncio.CancelledError:
                self._not_queued += item.record is not None
                raise

    def put_at_once(self, record: Callable[[], Record]) -> None:
        """Queue a record without waiting; if there is no room, it is dropped and counted."""
        try:
            self._send.send_nowait(_Item(record))
        except anyio.WouldBlock:
            self._not_queued += 1
        except (anyio.ClosedResourceError, anyio.BrokenResourceError):
            return

    # -- events --------------------------------------------------------------------------------------------------------

    def reloaded(self, changes: Sequence[str], problem: str | None = None) -> None:
        """Record that the configuration was read again: what has changed (keys and names), or why it is refused."""
        self._event("reload", changes=list(changes), problem=problem)

    def login(self, principal: str, upstream: str, outcome: str, issuer: str = "") -> None:
        """Record a login to an upstream, or the end of one: `outcome` is such as `ok`, `failed` or `logged out`."""
        self._event("login", principal=principal, upstream=upstream, outcome=outcome, issuer=issuer)

    def approval(self, principal: str, upstream: str, tool: str, verdict: str, rule: str, by: str = "") -> None:
        """Record that somebody (`by`) was asked whether a call may be made, and the verdict."""
        self._event("approval", principal=principal, upstream=upstream, tool=tool, verdict=verdict, rule=rule, by=by)

    def token_refused(self, address: str, why: str) -> None:
        """Record that a token was refused. Of many in a short time, one line has the number."""
        if (count := self._refusals.count()) is not None:
            self._event("token refused", address=address, why=why, earlier=count or None)

    def too_many_requests(self, principal: str, token: str | None) -> None:
        """Record that a request over HTTP was refused for a limit. Of many of a principal, one line has the number."""
        if (count := self._limited.count(principal)) is not None:
            about = {"principal": principal, "decision": "deny", "rule": "limits", "earlier": count or None}
            self._event("too many requests", token=token, **about)

    def login_refused(self, principal: str, address: str, why: str) -> None:
        """Record that somebody could not log in to approve hosts. Of many in a short time, one line has the number."""
        if (count := self._refused_logins.count()) is not None:
            self._event("login refused", principal=principal, address=address, why=why, earlier=count or None)

    def host_approval(
        self, principal: str, outcome: str, approval: str, host: str, goes_to: str, *, by: str = ""
    ) -> None:
        """Record what became of somebody's approval of a host: `approved`, or why it has ended.

        `by` says who ended it, if neither its person nor the host did.
        """
        about = {"principal": principal, "outcome": outcome, "approval": approval}
        self._event("host approval", **about, client=host, goes_to=goes_to, by=by)

    async def flush(self) -> None:
        """Wait until what was recorded so far is written, or could not be."""
        await self._queue(_Item(None, done := anyio.Event()))
        await done.wait()

    def _event(self, event: str, *, token: str | None = None, **about: Any) -> None:
        """Queue the line of an event; `token` is the name of one, which is not a secret."""
        moment, named = now(), {} if token is None else {"token": token}
        known = {key: value for key, value in about.items() if value not in (None, "")}
        self.put_at_once(lambda: {"time": moment, "event": event, **named, **self._clean(known)})

    def _clean(self, value: Any) -> Any:
        return masked(value, None, self.secrets)

    # -- the writer ----------------------------------------------------------------------------------------------------

    async def _write_all(self) -> None:
        with (
            self._until_written,
            self._receive,
        ):  # ends when the queue is closed and empty, not when the gateway is cancelled
            async for first in self._receive:
                items = [first]
                with suppress(anyio.WouldBlock, anyio.EndOfStream):
                    while len(items) < _AT_ONCE:
                        items.append(self._receive.receive_nowait())
                makers = [item.record for item in items if item.record is not None]
                self._changed(await to_thread.run_sync(self._writer.write, makers, self._not_queued))
                for item in items:
                    if item.done is not None:
                        item.done.set()

    def _changed(self, failure: str | None) -> None:
        if failure == self._failure:
            return
        self._failure = failure
        if failure is None:
            logger.info("the audit trail is written again")
        else:
            then = "requests are refused" if self.refuses else "requests are answered without"
            logger.error("the audit trail %s cannot be written: %s; %s", self._chain.path, failure, then)
