"""The SDK's server, with a middleware in front that answers requests for the gateway in raw JSON.

The SDK checks results against its models and drops unknown members. A result that a middleware returns without calling
the next handler is sent unchanged, so everything that the gateway serves is answered here, for both eras and every
transport.
"""

import logging
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import AbstractContextManager, asynccontextmanager, nullcontext
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from anyio import to_thread
from mcp.server.context import CallNext, HandlerResult, ServerRequestContext
from mcp.server.lowlevel import Server
from mcp.shared.exceptions import MCPError
from mcp.shared.jsonrpc_dispatcher import progress_token_from_params
from pydantic import ValidationError

from gateway.admission.admission import Admitted
from gateway.content.links.base_url import BASE_SCOPE, answering_under
from gateway.core.model.apps_extension import declares
from gateway.core.model.caller import Caller
from gateway.core.model.change import Change
from gateway.core.model.json_shape import DEEPEST, is_deep
from gateway.core.model.json_size import MANY_VALUES
from gateway.core.model.revisions import MODERN_REVISIONS
from gateway.core.model.wire import INVALID_PARAMS, MISSING_CAPABILITY
from gateway.core.results.output_variants import (
    REQUESTED,
    REVISION,
    in_chosen_outputs,
    with_variants,
    without_variants,
)
from gateway.errors import GatewayError, Overloaded
from gateway.routing.long_calls.task_states import takes_tasks
from gateway.serving.mcp.announce_changes import Announcer
from gateway.serving.mcp.cluster_port import SessionJournal
from gateway.serving.mcp.early_stdio import Arrival
from gateway.serving.mcp.era_headers import check_task_header
from gateway.serving.mcp.failures import as_error, as_result, safe_error, sole_gateway_error, unexpected
from gateway.serving.mcp.handshake import TASKS_EXTENSION, Identity, Refusal, discover_result, initialize_result
from gateway.serving.mcp.hosts import HostChannel, host_channel, introduce, set_level
from gateway.serving.mcp.kept_lists import LISTS, AskedList, KeptLists
from gateway.serving.mcp.list_keeper import ListKeeper
from gateway.serving.mcp.presence import Presence
from gateway.serving.mcp.request_caller import (
    ADMITTED_SCOPE,
    caller_of,
    checked_params,
    grant_of,
    principal_of,
    token_of,
)
from gateway.serving.mcp.running_requests import RunningRequests
from gateway.serving.mcp.safe_json import json_safe
from gateway.serving.mcp.service import OF_TASKS, SERVED, ProgressCallback, Service
from gateway.serving.mcp.written_json import WrittenArrays
from gateway.telemetry import new_request
from gateway.upstream.bridging.finalize_result import finalize_result

ROOTS_CHANGED = "notifications/roots/list_changed"

OF_THE_CONNECTION = frozenset({"resources/subscribe", "resources/unsubscribe", "logging/setLevel"})
"""Requests with which a host of the handshake era configures its connection; 2026-07-28 has none of them."""

_logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class HostRequest:
    """A request of a host for the service behind the MCP server.

    `channel` is the host's for the time of this request, `on_progress` reports progress to it; `waited` is the number
    of seconds that the request has waited already. `place` is the one that it was admitted to, if it was already.
    """

    method: str
    params: Mapping[str, Any] | None
    revision: str
    caller: Caller
    channel: HostChannel
    on_progress: ProgressCallback
    waited: float = 0.0
    place: Admitted | None = None


class Downstream:
    """The gateway's MCP server: one for every connection, transport and era.

    `kept` has the lists that hosts on stdio are given early at their next start.
    """

    def __init__(
        self,
        service: Service,
        identity: Identity,
        kept: KeptLists | None = None,
        *,
        journal: SessionJournal | None = None,
        requests: RunningRequests | None = None,
    ) -> None:
        self.identity = identity
        self._journal = journal
        self._keeper = ListKeeper(kept)
        self.requests = requests or RunningRequests()
        self.announcer = Announcer(service, on_list_changed=self._keeper.changed)
        self.presence = Presence()
        self._service = service
        self._server_info = identity.server_info()
        self._written = WrittenArrays()
        self.server: Server[Any] = Server(
            identity.name,
            version=identity.version,
            title=identity.title,
            instructions=identity.instructions,
            on_subscriptions_listen=self.announcer.listen,
            # Otherwise the SDK lists all tools before each call over HTTP in order to check headers.
            # Nor does it know whose request it is; `ModernEndpoint` does.
            get_tool_input_schema=lambda _: None,
        )
        # This replaces the SDK's tracing, which would wrap every message.
        self.server.middleware[:] = [self._answer]

    def introduce(self, identity: Identity) -> None:
        """Use this identity from now on."""
        self.identity = identity
        self._server_info = identity.server_info()

    @asynccontextmanager
    async def running(self) -> AsyncGenerator[None]:
        """Context manager: hosts are notified of changes while it is open."""
        unsubscribe = self._service.subscribe(self._changed)
        try:
            async with self.announcer.running():
                yield
        finally:
            unsubscribe()

    def _changed(self, change: Change) -> None:
        if change.kind == "tools":
            self._written.forget()
        self.announcer.changed(change)

    def header_schema(self, name: str, caller: Callable[[], Caller]) -> Mapping[str, Any] | None:
        """Return the input schema of a tool with headers that the caller is offered (`Service.header_schema`)."""
        return self._service.header_schema(name, caller)

    async def check_scopes(self, params: Mapping[str, Any], caller: Caller) -> None:
        """Raise `ScopeMissing` if a call needs scopes that the caller's token lacks (`Service.check_scopes`)."""
        await self._service.check_scopes(params, caller)

    def attending(self, host: str) -> AbstractContextManager[None]:
        """Context manager to hold while the host has a request or a stream open."""
        return self._service.attending(host)

    def left(self, session: str) -> None:
        """Release everything that belongs to a session whose host has disconnected."""
        self._service.left(session)

    async def _answer(self, ctx: ServerRequestContext[Any, Any], call_next: CallNext) -> HandlerResult:
        modern = ctx.protocol_version in MODERN_REVISIONS
        ctx = await _readable(ctx)
        caller = self._noticed(ctx, modern)
        if ctx.request_id is None:
            if ctx.method == ROOTS_CHANGED and caller is not None and caller.session is not None:
                await self._service.roots_changed(caller.session)
            return await call_next(ctx)
        scope: Mapping[str, Any] = getattr(ctx.request, "scope", {})
        with new_request(), answering_under(scope.get(BASE_SCOPE)):
            _logger.debug("%s", ctx.method)
            return await self._answered(ctx, call_next, caller, modern)

    async def _answered(
        self, ctx: ServerRequestContext[Any, Any], call_next: CallNext, caller: Caller | None, modern: bool
    ) -> HandlerResult:
        try:
            if ctx.method == "initialize" and not modern:
                result = initialize_result(self._towards(ctx), ctx.params)
                introduce(ctx.session._connection, ctx.params or {})  # pyright: ignore[reportPrivateUsage]
                self._note_opened(ctx)
                return result
            if ctx.method == "server/discover" and modern:
                chooses = caller is not None and caller.chooses_outputs
                return discover_result(self._towards(ctx), ctx.params, tasks=not chooses)
            if ctx.method not in SERVED | self.identity.methods | (OF_TASKS if modern else OF_THE_CONNECTION):
                return await call_next(ctx)
            if caller is None:
                raise Refusal(INVALID_PARAMS, "the connection has to be initialized before this request")
            if ctx.method in OF_THE_CONNECTION:
                return await self._change_connection(ctx, caller)
            check_task_header(ctx.method, ctx.params or {}, ctx.request)
        except Refusal as refusal:
            raise safe_error(refusal.code, refusal.message, refusal.data) from None
        except MCPError as error:
            raise safe_error(error.code, error.message, error.data) from error
        except ValidationError:
            raise
        except Exception as error:  # nothing catches errors after this, not even those of the SDK's own answers
            raise unexpected(ctx.method, error) from error
        request = HostRequest(
            ctx.method,
            ctx.params,
            ctx.protocol_version,
            caller,
            host_channel(ctx, caller),
            ctx.session.report_progress,
            ctx.request.ago if isinstance(ctx.request, Arrival) else 0.0,
            getattr(ctx.request, "scope", {}).get(ADMITTED_SCOPE),
        )
        asked = ctx.request.asked if isinstance(ctx.request, Arrival) else None
        return await self._served(request) if asked is None else await self._listed(request, asked, ctx)

    async def _listed(
        self, request: HostRequest, asked: AskedList, ctx: ServerRequestContext[Any, Any]
    ) -> dict[str, Any]:
        """Answer a request for a list, and notify a host that was given another one early."""
        kind, connection = LISTS[request.method].notified, ctx.session._connection  # pyright: ignore[reportPrivateUsage]
        modern = request.revision in MODERN_REVISIONS
        old, new = partial(self.announcer.tell, connection), partial(self.announcer.tell_listener, request.caller)
        tell = new if modern else old
        try:
            result = await self._served(request)
        except MCPError:
            if asked.given is not None:  # what it was given is not known to be right
                await tell(kind)
            raise
        hears = self._service.hears(request.caller, Change(kind))
        # The key knows what the host was started with, and nothing of the folders that it has open.
        by_key = self._service.toolsets_in_force(request.caller) == request.caller.toolsets
        is_known = self._service.knows_upstreams(request.caller)
        if await self._keeper.is_other(
            request.method, asked, result, connection, hears=hears, by_key=by_key, is_known=is_known
        ):
            _logger.info("the host was given other %s early: it is told to ask again", kind)
            await tell(kind)
        return result

    def _note_opened(self, ctx: ServerRequestContext[Any, Any]) -> None:
        session = ctx.session._connection.session_id  # pyright: ignore[reportPrivateUsage]
        if self._journal is not None and session is not None:
            self._journal.opened(session, principal_of(ctx.request), token_of(ctx.request), ctx.params or {})

    def _towards(self, ctx: ServerRequestContext[Any, Any]) -> Identity:
        return self.identity.towards(grant_of(ctx.request), principal_of(ctx.request))

    async def answer(self, request: "HostRequest", base: str | None = None) -> dict[str, Any]:
        """Return the result of a request for one of `SERVED` or `OF_TASKS` that does not come through the SDK's server.

        It is what the host gets, with an array in it that may be a `WrittenArray`. `base` is the base URL of the
        request. The params must be safe to pass on (`to_json_safe`).

        Raises:
            MCPError: the error for the host.
        """
        self.presence.asked(request.caller)
        with new_request(), answering_under(base):
            _logger.debug("%s", request.method)
            return await self._served(request)

    async def _served(self, request: "HostRequest") -> dict[str, Any]:
        try:
            with self.requests.one(), await self._place(request):
                return await self._finished(request, await self._result(request))
        except Overloaded as refused:
            raise as_error(refused, request.revision) from refused
        except MCPError as error:
            raise safe_error(error.code, error.message, error.data) from error
        except Exception as error:
            raise unexpected(request.method, error) from error

    async def _place(self, request: "HostRequest") -> AbstractContextManager[None]:
        """Return the place of a request, which is admitted now if it was not before. Tasks are always let in."""
        if request.place is not None and not request.place.is_over:
            return request.place
        if request.method not in SERVED:
            return nullcontext()
        return await self._service.admission.admit(request.caller.principal)

    async def _finished(self, request: "HostRequest", result: dict[str, Any]) -> dict[str, Any]:
        """Return a result with what the host's revision requires, and without what no writer can write.

        A list of tools is finished and written once for all the hosts that get the same.
        """

        async def finish(result: Mapping[str, Any]) -> dict[str, Any]:
            done = finalize_result(
                request.method, result, request.revision, server_info=self._server_info, params=request.params
            )
            return await json_safe(done)

        if request.method != "tools/list":
            return await finish(result)
        tools, era = result["tools"], "modern" if request.revision in MODERN_REVISIONS else "handshake"
        chooses, pages = request.caller.chooses_outputs, declares(request.caller.capabilities)
        form = era if not chooses else f"{REVISION} with pages" if pages else REVISION
        if (written := self._written.get(form, tools)) is not None:
            return {**await finish({**result, "tools": []}), "tools": written}
        if chooses:
            result = {**result, "tools": [with_variants(tool, shows_pages=pages) for tool in tools]}
        elif self.identity.newer:  # upstreams may have been asked for the forms of their results
            result = {**result, "tools": without_variants(tools)}
        finished = await finish(result)
        return {**finished, "tools": self._written.keep(form, tools, finished["tools"])}

    def _noticed(self, ctx: ServerRequestContext[Any, Any], modern: bool) -> Caller | None:
        """Return the caller, or None if its connection is not initialized yet."""
        if modern:
            caller = caller_of(ctx)
            self.presence.asked(caller)
            return caller
        if ctx.method == "initialize" or ctx.session.client_params is None:
            return None
        caller = caller_of(ctx)
        connection = self.announcer.follow(ctx.session, caller)
        self.presence.asked(caller, connection, connection.exit_stack)
        return caller

    async def _result(self, request: "HostRequest") -> dict[str, Any]:
        """Return the service's answer as raw JSON, of a call in the forms that the host has chosen, if it chooses.

        Raises:
            MCPError: a failure that is not for the model to read.
        """
        if request.method in OF_TASKS and not takes_tasks(request.caller):
            needed: dict[str, Any] = {"requiredCapabilities": {"extensions": {TASKS_EXTENSION: {}}}}
            raise MCPError(MISSING_CAPABILITY, f"{request.method} needs the extension {TASKS_EXTENSION}", needed)
        result = await self._responded(request)
        if request.method != "tools/call" or not request.caller.chooses_outputs:
            return result
        try:
            return in_chosen_outputs(result, (request.params or {}).get(REQUESTED))
        except GatewayError as error:
            raise as_error(error, request.revision) from error

    async def _responded(self, request: "HostRequest") -> dict[str, Any]:
        """Return the service's answer. A failure for the model to read is a result as well.

        Raises:
            MCPError: any other failure.
        """
        try:
            return await self._service.respond(
                request.method,
                checked_params(request.method, request.params),
                request.caller,
                on_progress=request.on_progress if progress_token_from_params(request.params) is not None else None,
                host=request.channel,
                waited=request.waited,
            )
        except Exception as error:
            if (known := sole_gateway_error(error)) is None:
                raise unexpected(request.method, error) from error
            if (told := as_result(request.method, known)) is None:
                raise as_error(known, request.revision) from error
            return told

    async def _change_connection(self, ctx: ServerRequestContext[Any, Any], caller: Caller) -> dict[str, Any]:
        connection = ctx.session._connection  # pyright: ignore[reportPrivateUsage]  # the SDK has no public handle
        try:
            params = checked_params(ctx.method, ctx.params)
            if ctx.method == "resources/subscribe":
                await self.announcer.subscribe(connection, params["uri"], caller)
            elif ctx.method == "resources/unsubscribe":
                self.announcer.unsubscribe(connection, params["uri"])
            elif ctx.method == "logging/setLevel":
                set_level(connection, params["level"])
            self._note_change(connection.session_id, ctx.method, params)
        except Exception as error:
            if (known := sole_gateway_error(error)) is None:
                raise
            raise as_error(known, ctx.protocol_version) from error
        return {}

    def _note_change(self, session: str | None, method: str, params: Mapping[str, Any]) -> None:
        if self._journal is None or session is None:
            return
        if method == "logging/setLevel":
            self._journal.set_level(session, params["level"])
        else:
            self._journal.watched(session, params["uri"], ended=method == "resources/unsubscribe")


async def _readable(ctx: ServerRequestContext[Any, Any]) -> ServerRequestContext[Any, Any]:
    """Return the request with params that are safe to pass on and to log.

    Raises:
        MCPError: the params are nested too deeply.
    """
    params = await safe_params(ctx.params)
    return ctx if params is ctx.params else replace(ctx, params=params)


async def safe_params(params: Mapping[str, Any] | None) -> Any:
    """Return the params of a request so that they are safe to pass on and to log.

    Raises:
        MCPError: they are nested too deeply.
    """
    deep = is_deep(params, most_values=MANY_VALUES)
    if await to_thread.run_sync(is_deep, params) if deep is None else deep:
        raise MCPError(INVALID_PARAMS, f"params nest deeper than {DEEPEST} levels")
    return await json_safe(params)
