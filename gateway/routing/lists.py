"""The four lists that a host may request, each merged from all upstreams into one page."""

from collections.abc import Mapping
from typing import Any

from gateway.core.tools.catalogue import Catalogue
from gateway.errors import InvalidRequest, UnknownMethod
from gateway.routing.cache_hints import hints_of
from gateway.routing.ports import OwnTools, UpstreamsPort
from gateway.routing.prompts import Prompts
from gateway.routing.resources import Resources
from gateway.routing.tool_search import ToolSearch
from gateway.routing.visible_upstreams import sharing, visible
from gateway.upstream.connection.request_context import RequestContext

LISTS: Mapping[str, str] = {
    "tools/list": "tools",
    "resources/list": "resources",
    "resources/templates/list": "resources",
    "prompts/list": "prompts",
}
"""The list methods, each with the name of the change notification for its list."""


class MergedLists:
    """Builds merged lists with their cache hints."""

    def __init__(
        self,
        upstreams: UpstreamsPort,
        own_tools: OwnTools,
        resources: Resources,
        prompts: Prompts,
        search: ToolSearch,
    ) -> None:
        self._upstreams = upstreams
        self._own_tools = own_tools
        self._resources = resources
        self._prompts = prompts
        self._search = search

    async def result(self, method: str, context: RequestContext, catalogue: Catalogue) -> dict[str, Any]:
        """Return the raw result of a method in `LISTS`. `catalogue` has the caller's tools."""
        caller = context.caller
        upstreams = (visible if method == "tools/list" else sharing)(self._upstreams, caller)
        match method:
            case "tools/list":
                tools = await self._search.listed(catalogue, context.listed)
                return {"tools": tools, **hints_of(upstreams, "tools", caller)}
            case "prompts/list":
                prompts = list((await self._prompts.catalogue(context)).prompts)
                return {"prompts": prompts, **hints_of(upstreams, "prompts", caller)}
            case "resources/list":
                own = await self._own_tools.resources(owner=caller.principal)
                hints = hints_of(upstreams, "resources", caller, own=bool(own))
                return {"resources": [*await self._resources.listed(caller), *own], **hints}
            case "resources/templates/list":
                templates = await self._resources.templates(caller)
                return {"resourceTemplates": templates, **hints_of(upstreams, "templates", caller)}
            case _:
                raise UnknownMethod(f"{method!r} is not a list")


def refuse_cursor(params: Mapping[str, Any]) -> None:
    """Refuse a request for a later page.

    Raises:
        InvalidRequest: it is one.
    """
    if params.get("cursor") is not None:
        raise InvalidRequest("there are no more pages", remedy="ask without a cursor: the whole list is one page")
