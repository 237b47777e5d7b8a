"""One call that may outlive the request of its host, and what its upstream has for the host meanwhile."""

import secrets
from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import anyio

from gateway.core.model.json_size import Size
from gateway.telemetry.audit import AuditEntry
from gateway.upstream import RequestContext
from gateway.upstream.bridging.input_requests import INPUT_REQUIRED
from gateway.upstream.connection.host_requests import Host
from gateway.upstream.connection.owners import client_of

ID_PREFIX = "c_"
_ALPHABET = "abcdefghijkmnpqrstuvwxyz23456789"
_ID_LENGTH = 16

Progress = tuple[float, float | None, str | None]


class LongCall:
    """A call that runs beside its request. Its host may collect the outcome later, as often as it asks.

    It belongs to the client (a principal, a name and a chosen profile) that made it: many hosts open a new connection
    for each call.
    """

    def __init__(self, name: str, params: Mapping[str, Any], context: RequestContext) -> None:
        self.id = ID_PREFIX + "".join(secrets.choice(_ALPHABET) for _ in range(_ID_LENGTH))
        self.name = name
        self.params = params
        self.owner = client_of(context.caller)
        self.principal = context.caller.principal
        self.session = context.caller.session
        self.began = anyio.current_time()
        self.created = self.changed = datetime.now(UTC)
        self.scope = anyio.CancelScope()
        self.is_kept = False
        """Whether its request has been answered, so that the outcome is kept."""
        self.is_cancelled = False
        self.release: Callable[[], None] = lambda: None
        """Ends its being counted among the calls that the caller has running."""
        self.gone = anyio.Event()
        """Set when nothing of it runs or is kept any more."""
        self.result: dict[str, Any] | None = None
        self.error: Exception | None = None
        self.size = Size(0, 0)
        self.last_progress: Progress | None = None
        self.audit = CallAudit(context.audit)
        self._host = None if context.host is None else AbsentHost(context.host)
        self._watching: list[RequestContext] = []
        self._ended = anyio.Event()
        self._resumed = anyio.Event()

    def context(self, request: RequestContext) -> RequestContext:
        """Return the context to make the call in, which outlives the request."""
        return replace(request, host=self._host, on_progress=self.progress, audit=self.audit)

    @property
    def is_over(self) -> bool:
        """Whether there is an outcome."""
        return self._ended.is_set()

    @property
    def asks(self) -> bool:
        """Whether the outcome is questions that a host of 2026-07-28 has to answer before the call goes on."""
        return self.result is not None and self.result.get("resultType") == INPUT_REQUIRED

    @property
    def is_asking(self) -> bool:
        """Whether the upstream waits for an answer of a host of the handshake era that waits for nothing now."""
        return self._host is not None and self._host.is_asking

    @property
    def seconds(self) -> float:
        """The seconds since it began."""
        return anyio.current_time() - self.began

    async def progress(self, progress: float, total: float | None, message: str | None) -> None:
        """Remember the upstream's progress, and pass it to the request that waits for the call now, if any."""
        self.last_progress = progress, total, message
        self.changed = datetime.now(UTC)
        if self._watching and (on_progress := self._watching[-1].on_progress) is not None:
            await on_progress(progress, total, message)

    async def wait(self, context: RequestContext, seconds: float | None) -> bool:
        """Wait at most `seconds` for the outcome (None: however long it takes), and return whether there is one.

        Meanwhile, questions and progress go to this request's host; of several, to the newest.
        """
        with self._watched(context), anyio.move_on_after(seconds):
            await self._ended.wait()
        return self.is_over

    @contextmanager
    def _watched(self, context: RequestContext) -> Generator[None]:
        self._watching.append(context)
        self._show()
        try:
            yield
        finally:
            self._watching.remove(context)
            self._show()

    @property
    def is_watched(self) -> bool:
        """Whether a request waits for it."""
        return bool(self._watching)

    def _show(self) -> None:
        if self._host is not None:
            self._host.show(next((each.host for each in reversed(self._watching) if each.host is not None), None))

    def over(self, result: dict[str, Any] | None, error: Exception | None, size: Size) -> None:
        """Record the outcome."""
        self.result, self.error, self.size = result, error, size
        self.changed = datetime.now(UTC)
        self._ended.set()

    def resume(self, answers: Mapping[str, Any]) -> None:
        """Let the call go on with a host's answers: `inputResponses`, and the `requestState` that came with it."""
        self.params = {**self.params, **answers}
        self.result, self._ended = None, anyio.Event()
        self.audit.go_on()
        self._resumed.set()

    async def until_resumed(self) -> None:
        """Wait until the call goes on."""
        await self._resumed.wait()
        self._resumed = anyio.Event()


class AbsentHost:
    """The host of a call that may be answered already: it can be asked while one of its requests waits for the call."""

    bounds_waiting = False

    def __init__(self, first: Host) -> None:
        self.party = first.party
        self.connection = first.connection
        self._host: Host | None = first
        self._shown = anyio.Event()
        self._asking = 0

    @property
    def is_asking(self) -> bool:
        """Whether a question waits for the host to come back."""
        return self._asking > 0 and self._host is None

    def show(self, host: Host | None) -> None:
        """Set the host of the request that waits for the call now."""
        self._host = host
        if host is not None:
            self._shown.set()
            self._shown = anyio.Event()

    async def ask(self, method: str, params: Mapping[str, Any]) -> dict[str, Any]:
        """Ask the host as soon as it waits for the call. Raises HostRefused as the host's own channel does."""
        self._asking += 1
        try:
            while (host := self._host) is None:
                await self._shown.wait()
            return await host.ask(method, params)
        finally:
            self._asking -= 1

    async def tell(self, method: str, params: Mapping[str, Any]) -> None:
        """Pass a notification on, if the host waits for the call."""
        if self._host is not None:
            await self._host.tell(method, params)

    async def let_go(self) -> None:
        """Let the host poll for the answer of its request, if it waits for one."""
        if self._host is not None:
            await self._host.let_go()


class CallAudit(AuditEntry):
    """The audit entry of a call: that of its request, and after its answer one that is written when the call ends.

    It also knows where the call went.
    """

    def __init__(self, entry: AuditEntry) -> None:
        self._entry = entry
        self.upstream = self.tool = ""

    def routed(
        self, upstream: str, tool: str = "", schema: Callable[[], Any] | None = None, *, audience: str = ""
    ) -> None:
        self.upstream, self.tool = upstream, tool
        self._entry.routed(upstream, tool, schema, audience=audience)

    def decided(self, verdict: str, rule: str) -> None:
        self._entry.decided(verdict, rule)

    def answered_from_cache(self) -> None:
        self._entry.answered_from_cache()

    def turned_down(self, cause: str) -> None:
        self._entry.turned_down(cause)

    def returned(self, result: Mapping[str, Any]) -> None:
        self._entry.returned(result)

    def go_on(self) -> None:
        """Leave the request's entry as it is: the request is answered now, and the call goes on."""
        self._entry = self._entry.follow_up()

    async def write(self, result: Mapping[str, Any] | None, error: BaseException | None) -> None:
        """Write the entry of a call that has ended after its request. Raises AuditUnavailable if it cannot."""
        if result is not None:
            self._entry.shown(result)
        await self._entry.__aexit__(None if error is None else type(error), error, None)
