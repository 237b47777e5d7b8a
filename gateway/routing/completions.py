"""`completion/complete`: ask the upstream of a prompt or resource template for possible values of an argument."""

from collections.abc import Mapping
from typing import Any

from gateway.core.fact_words import plain
from gateway.core.model.json_values import as_object
from gateway.core.model.revisions import REVISIONS
from gateway.core.model.wire import METHOD_NOT_FOUND
from gateway.core.tools.catalogue import OWN
from gateway.errors import InvalidRequest, UpstreamRefused
from gateway.routing.ports import Ask, UpstreamsPort
from gateway.routing.prompts import Prompts
from gateway.routing.resources import Resources
from gateway.routing.visible_upstreams import sharing
from gateway.upstream.connection.request_context import RequestContext


class Completions:
    """Forwards completion requests to the upstream that the reference belongs to."""

    def __init__(self, upstreams: UpstreamsPort, prompts: Prompts, resources: Resources) -> None:
        self._upstreams = upstreams
        self._prompts = prompts
        self._resources = resources

    async def complete(self, params: Mapping[str, Any], context: RequestContext, ask: Ask) -> dict[str, Any]:
        """Return the upstream's raw result. The argument and the context are passed on unchanged.

        The result has no values if the upstream does not support completions.

        Raises:
            InvalidRequest: the reference is malformed, or no upstream has it.
            UpstreamError: the upstream is not available, or did not answer.
        """
        upstream, ref = await self._routed(params.get("ref"), context)
        if upstream == OWN:
            return _nothing()
        asked = sharing(self._upstreams, context.caller)[upstream]
        offered = "completions" in asked.capabilities
        # The capability came with 2025-03-26, so a server of the revision before may support completions undeclared.
        if not offered and asked.revision != REVISIONS[0]:
            return _nothing()
        try:
            return await ask(upstream, "completion/complete", {**params, "ref": ref}, context)
        except UpstreamRefused as error:
            if offered or error.code != METHOD_NOT_FOUND:
                raise
            return _nothing()

    async def _routed(self, given: Any, context: RequestContext) -> tuple[str, Mapping[str, Any]]:
        """Return the upstream that a reference belongs to, and the reference as that upstream knows it."""
        caller = context.caller
        ref = as_object(given)
        kind, name, uri = ref.get("type"), ref.get("name"), ref.get("uri")
        if kind == "ref/prompt" and isinstance(name, str):
            route = await self._prompts.route(name, context)
            return route.upstream, {**ref, "name": route.prompt}
        if kind != "ref/resource" or not isinstance(uri, str):
            raise InvalidRequest("completion/complete needs a ref of type ref/prompt (name) or ref/resource (uri)")
        page = self._resources.addressed(uri, caller)
        if page is not None:
            return page[0], {**ref, "uri": page[1]}
        owner = self._resources.owner_of_template(uri, caller) or self._resources.owner(uri, caller)
        found = owner or next(iter(self._resources.likely(uri, caller)), None)
        if found is None:
            raise InvalidRequest(f"no resource template is {plain(uri)}", remedy="list the templates again")
        return found, ref


def _nothing() -> dict[str, Any]:
    return {"completion": {"values": [], "total": 0, "hasMore": False}}
