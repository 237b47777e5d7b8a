"""Calls of code mode: those of `gateway_run`, and those that its scripts make."""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

from gateway.core.own_names import RUN_TOOL
from gateway.core.tools.catalogue import OWN
from gateway.errors import UnknownTool
from gateway.routing.offered_tools import KnownCall
from gateway.routing.request_accounts import RequestAccounts
from gateway.routing.tool_catalogues import ToolCatalogues
from gateway.routing.tool_search import ToolSearch
from gateway.upstream import RequestContext

if TYPE_CHECKING:  # most gateways run no scripts
    from gateway.routing.code_mode import CodeMode

CallTool = Callable[[Mapping[str, Any], RequestContext], Awaitable[dict[str, Any]]]
"""Calls a tool (`gateway.routing.calls.Calls.call`)."""


class ScriptCalls:
    """Runs scripts, whose calls are counted and recorded as the host's own are."""

    def __init__(
        self,
        code_mode: "CodeMode | None",
        catalogues: ToolCatalogues,
        search: ToolSearch,
        accounts: RequestAccounts,
        call_tool: CallTool,
    ) -> None:
        self._code_mode = code_mode
        self._catalogues = catalogues
        self._search = search
        self._accounts = accounts
        self._call_tool = call_tool

    async def run(self, context: RequestContext, arguments: object) -> dict[str, Any]:
        """Answer a call of `gateway_run`."""
        if self._code_mode is None:  # it is not listed, but a session may have been moved here
            raise UnknownTool(f"the gateway has no tool named {RUN_TOOL!r}")
        catalogue = await self._catalogues.offered(context)
        return await self._code_mode.run(arguments, catalogue, context, partial(self._call, context), self._search)

    async def _call(self, context: RequestContext, name: str, arguments: Mapping[str, Any]) -> dict[str, Any]:
        """Make a call as the host's own is made, but with a result that is whole, for the script of this context."""
        from gateway.routing.code_mode.code_mode import whole_results

        params, caller, profile = {"name": name, "arguments": arguments}, context.caller, context.profile
        entry = self._accounts.entry("tools/call", params, caller, profile)
        part = replace(context, profile=whole_results(profile.name), on_progress=None, is_part=True, by_model=True)
        async with entry:
            with await self._accounts.counted("tools/call", params, caller, profile, is_part=True):
                return await self._call_tool(params, replace(part, within=RUN_TOOL, audit=entry))


def upstreams_acted_on(call: KnownCall) -> set[str]:
    """Return the upstreams that a call may act on; none if only the gateway itself answers it.

    Those of a script are only guessed: the ones that it names, or may act on.
    """
    if call.route.upstream != OWN:
        return {call.route.upstream}
    if call.route.tool != RUN_TOOL:
        return set()
    from gateway.routing.code_mode.upstreams_of_script import upstreams_of_script

    return upstreams_of_script(call.params, call.catalogue.routes)
