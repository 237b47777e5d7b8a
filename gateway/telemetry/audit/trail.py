"""The audit trail of a gateway: entries are queued, and written in order by one task, in a thread."""

import asyncio
import logging
import math
import time
from collections import OrderedDict, deque
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from copy import copy
from datetime import UTC, datetime
from fnmatch import fnmatchcase
from pathlib import Path
from time import perf_counter
from types import TracebackType
from typing import TYPE_CHECKING, Any, NamedTuple

import anyio
from anyio import to_thread
from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream

from gateway._version import __version__
from gateway.config.audit_settings import ArgumentRule, AuditSettings
from gateway.config.schema import Settings, UpstreamSettings
from gateway.config.secrets import all_secrets, hide, longest_first
from gateway.core.model.caller import Caller
from gateway.core.model.grant import SEPARATOR
from gateway.core.model.json_values import as_object
from gateway.core.wording import plain
from gateway.errors import (
    ApprovalNeeded,
    AuditUnavailable,
    ConfigError,
    GatewayError,
    NotAllowed,
    ScopeMissing,
    TooManyCalls,
    UnknownPrompt,
    UnknownResource,
    UnknownTask,
    UnknownTool,
    UpstreamRefused,
)
from gateway.system.background_tasks import background_tasks
from gateway.telemetry.audit.chain import Chain
from gateway.telemetry.audit.digests import Digests, sha256_of_json
from gateway.telemetry.audit.entry import AuditEntry
from gateway.telemetry.audit.mask_arguments import masked
from gateway.telemetry.audit.upstream_identity import identity_of
from gateway.telemetry.calls import ASKED, asks, outcome_of
from gateway.telemetry.requests import request_id

if TYPE_CHECKING:
    from gateway.telemetry.audit.send_lines import LineSender

logger = logging.getLogger(__name__)

_QUEUED = 256
"""Maximum number of entries that wait for the writer; then requests wait, and events are dropped and counted."""
_AT_ONCE = 64
_UNWRITTEN = 10_000
"""Maximum number of records that are kept while nothing can be written; the oldest are then dropped and counted."""
_LAST_SECONDS = 10.0
"""Time to write what is left when the gateway ends."""
_SHORTEST_SECRET = 6
_REFUSAL_SECONDS = 10.0
"""Seconds between two lines about refused tokens, refused logins, or too many requests of a principal.

The second one says how many there were.
"""
_REFUSED = 1_000
"""Maximum number of principals whose refused requests are counted."""

_BEYOND_THE_GRANT = (UnknownTool, UnknownResource, UnknownPrompt, UnknownTask)
"""Raised for what does not exist for the caller, whether it exists for others or not."""

FindUpstream = Callable[[str], tuple[UpstreamSettings, Mapping[str, Any] | None] | None]
"""Returns an upstream's settings and what it says it is (`serverInfo`); None if there is no such upstream."""

Record = dict[str, Any]


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
        self._sender = sender
        self._upstream = upstream
        self._send: MemoryObjectSendStream[_Item]
        self._receive: MemoryObjectReceiveStream[_Item]
        self._send, self._receive = anyio.create_memory_object_stream[_Item](_QUEUED)
        self._until_written = anyio.CancelScope(shield=True)
        self._unwritten: deque[Record] = deque()
        # Counted apart, because one is the event loop's, and the others are the writer's thread's.
        self._not_queued = self._not_kept = self._told = 0
        self._failure: str | None = None
        self._has_begun, self._start = False, _now()
        self._refusals, self._refused_logins, self._limited = _Refusals(), _Refusals(), _Refusals()
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
        return _Entry(self, method, params, caller, profile)

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
        """Queue the line of an event; `token` is the name of one, which is no secret."""
        moment, named = _now(), {} if token is None else {"token": token}
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
                self._changed(await to_thread.run_sync(self._write, items))
                for item in items:
                    if item.done is not None:
                        item.done.set()

    def _write(self, items: Sequence[_Item]) -> str | None:
        """Write the records, and those that could not be written before; return why that fails."""
        self._unwritten.extend(_made(item.record) for item in items if item.record is not None)
        while len(self._unwritten) > _UNWRITTEN:
            self._unwritten.popleft()
            self._not_kept += 1
        records = list(self._unwritten)
        if dropped := self._not_queued + self._not_kept - self._told:
            records.append({"time": _now(), "event": "dropped", "lines": dropped})
        if records and not self._has_begun:
            records.insert(0, {"time": self._start, "event": "start", "version": __version__, **self._chain.resumed()})
        try:
            if records:
                lines = self._chain.append(records)
                if self._sender is not None:
                    self._sender.send(lines)
                self._has_begun = True
                self._unwritten.clear()
                self._told += dropped
            if records or self._failure is not None:
                self._chain.keep_head()
        except OSError as error:
            return error.strerror or type(error).__name__
        return None

    def _changed(self, failure: str | None) -> None:
        if failure == self._failure:
            return
        self._failure = failure
        if failure is None:
            logger.info("the audit trail is written again")
        else:
            then = "requests are refused" if self.refuses else "requests are answered without"
            logger.error("the audit trail %s cannot be written: %s; %s", self._chain.path, failure, then)


class _Entry(AuditEntry):
    """A request that is audited."""

    def __init__(self, trail: AuditTrail, method: str, params: Mapping[str, Any], caller: Caller, profile: str) -> None:
        self._trail = trail
        self._method = method
        self._params = params
        self._caller = caller
        self._profile = profile
        self._upstream = self._tool = self._audience = ""
        self._schema: Callable[[], Any] = _unknown
        self._verdict = self._rule = ""
        self._from_cache = False
        self._returned: Mapping[str, Any] | None = None
        self._shown: Mapping[str, Any] | None = None
        self._request = request_id()
        self._began = perf_counter()

    def routed(
        self, upstream: str, tool: str = "", schema: Callable[[], Any] | None = None, *, audience: str = ""
    ) -> None:
        self._upstream, self._tool, self._audience = upstream, tool, audience
        self._schema = schema or _unknown
        self._verdict = self._verdict or "allow"

    def decided(self, verdict: str, rule: str) -> None:
        self._verdict, self._rule = verdict, rule

    def returned(self, result: Mapping[str, Any]) -> None:
        self._returned = result

    def answered_from_cache(self) -> None:
        self._from_cache = True

    def shown(self, result: Mapping[str, Any]) -> None:
        self._shown = result

    def follow_up(self) -> AuditEntry:
        entry = copy(self)
        entry._returned = entry._shown = None
        return entry

    async def __aenter__(self) -> AuditEntry:
        await self._trail.admit()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if isinstance(error, TooManyCalls):
            self.decided("deny", "limits")
        elif isinstance(error, ScopeMissing):
            self.decided("deny", "scopes")
        elif isinstance(error, _BEYOND_THE_GRANT):
            self.decided("deny", "grant")
        elif isinstance(error, NotAllowed):
            self.decided("approve" if isinstance(error, ApprovalNeeded) else "deny", error.rule or "pins")
        moment, seconds = _now(), round(perf_counter() - self._began, 4)
        who = self._trail.about_upstream(self._upstream)
        outcome, cause = _outcome(error, self._shown)

        def record() -> Record:
            about = self._about(who())
            ended = {"outcome": outcome, "cause": cause and hide(cause, self._trail.secrets), "seconds": seconds}
            whole = {"time": moment, "event": self._method, **about, **ended, **self._content()}
            return {key: value for key, value in whole.items() if value not in (None, "", {})}

        if isinstance(error, asyncio.CancelledError):
            self._trail.put_at_once(record)
            return
        try:
            await self._trail.put(record)
        except AuditUnavailable as unavailable:
            if error is None:  # the model must not think that nothing was done
                what = "the request was carried out, but its result is withheld: the audit trail cannot be written"
                raise AuditUnavailable(what, remedy=unavailable.remedy) from None

    def _about(self, identity: Mapping[str, Any]) -> Record:
        caller = self._caller
        host = {
            "name": plain(caller.client_name or "", 100),
            "version": plain(caller.client_version or "", 100),
            "agent": plain(caller.user_agent or "", 200),
            "profile": self._profile,
            "revision": caller.revision,
        }
        return {
            "request": self._request,
            "principal": caller.principal,
            "token": caller.token,
            "host": {key: value for key, value in host.items() if value},
            "upstream": self._upstream,
            "server": identity,
            **self._asked_for(),
            "audience": self._audience,
            "decision": self._verdict,
            "rule": self._rule,
        }

    def _asked_for(self) -> Record:
        match self._method:
            case "tools/call":
                return {"tool": self._tool or plain(str(self._params.get("name")), 200)}
            case "prompts/get":
                return {"prompt": plain(str(self._params.get("name")), 200)}
            case "resources/read":
                uri = str(self._params.get("uri")).partition("?")[0]
                return {"resource": hide(plain(uri, 300), self._trail.secrets)}
            case _:
                return {"tool": self._tool}

    def _content(self) -> Record:
        """Return the hashes of what was asked, returned and shown."""
        digests, parts = Digests(), Record()
        if (rule := self._trail.argument_rule(self._upstream, self._tool)) != "none":
            arguments = self._arguments()
            hashed = sha256_of_json(arguments)
            parts |= {"arguments_bytes": hashed["bytes"], "arguments_sha256": hashed["sha256"]}
            if rule == "full" and self._method != "resources/read":  # a URI is shown without its query, which it has
                parts["arguments"] = masked(arguments, self._schema(), self._trail.secrets)
        if self._returned is not None:
            parts["returned"] = digests.of_result(self._returned)
            parts["from_cache"] = self._from_cache or None
        if self._shown is not None:
            parts["shown"] = parts.get("returned") if self._shown is self._returned else digests.of_result(self._shown)
        return parts

    def _arguments(self) -> Any:
        if self._method == "tools/call":
            return self._params.get("arguments") or {}
        return {key: value for key, value in self._params.items() if key != "_meta"}


class _Refusals:
    """Decides which of many refusals get a line."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._seen: OrderedDict[str, tuple[float, int]] = OrderedDict()

    def count(self, of: str = "") -> int | None:
        """Return the number of those without a line since the last one that has one; None for no line.

        Those `of` one principal are counted apart from those of others.
        """
        now = self._clock()
        since, silent = self._seen.get(of, (-math.inf, 0))
        if now - since < _REFUSAL_SECONDS:
            self._seen[of] = since, silent + 1
            return None
        self._seen[of] = now, 0
        self._seen.move_to_end(of)
        if len(self._seen) > _REFUSED:
            self._seen.popitem(last=False)
        return silent


def _outcome(error: BaseException | None, shown: Mapping[str, Any] | None) -> tuple[str, str | None]:
    if error is None:
        if asks(shown):
            return ASKED, None
        is_error = as_object(shown).get("isError") is True
        return ("tool_error" if is_error else "ok"), None
    outcome, error = outcome_of(error)
    if isinstance(error, UpstreamRefused):  # the words are the upstream's own, so they may contain anything
        return outcome, f"error {error.code}"
    return outcome, plain(error.logged, 300) if isinstance(error, GatewayError) else type(error).__name__


def _unknown() -> None:
    """The schema of what has none."""


def _made(record: Callable[[], Record]) -> Record:
    try:
        return record()
    except Exception as error:  # a line without details is better than none
        logger.exception("a line of the audit trail could not be made in full")
        return {"time": _now(), "event": "unreadable", "cause": type(error).__name__}


def _now() -> str:
    return f"{datetime.now(UTC).isoformat(timespec='milliseconds')[:-6]}Z"
