"""Requests that read: resources and skills, for hosts and for the gateway's own tools, and the upstream asked."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from gateway.content.store import URI_SCHEME
from gateway.core import apps
from gateway.core.tools.catalogue import OWN
from gateway.errors import InvalidRequest
from gateway.routing.availability import Availability
from gateway.routing.call_logins import CallLogins
from gateway.routing.lists import refuse_cursor
from gateway.routing.ports import OwnTools, UpstreamsPort
from gateway.routing.resources import Resources
from gateway.routing.skill_tool import use_skill
from gateway.routing.skills import Skills
from gateway.routing.visible_upstreams import sharing
from gateway.telemetry.audit import NOT_AUDITED
from gateway.upstream import RequestContext
from gateway.upstream.bridging.bridge import Bridge


class ReadRequests:
    """Answers `resources/read` and requests about skills."""

    def __init__(
        self,
        upstreams: UpstreamsPort,
        own_tools: OwnTools,
        bridge: Bridge,
        logins: CallLogins,
        availability: Availability,
        resources: Resources,
    ) -> None:
        self._upstreams = upstreams
        self._own_tools = own_tools
        self._bridge = bridge
        self._logins = logins
        self._availability = availability
        self._resources = resources
        self._skills = Skills(upstreams, resources)

    async def ask(self, name: str, method: str, params: Mapping[str, Any], context: RequestContext) -> dict[str, Any]:
        """Ask an upstream, or the gateway itself, for anything but tool calls (`gateway.routing.ports.Ask`)."""
        entry = NOT_AUDITED if context.is_part else context.audit
        entry.routed(name)
        if name == OWN:
            owner = context.caller.principal
            result = await self._own_tools.request(method, params, owner=owner, profile=context.profile)
        else:
            upstream = self._logins.around(sharing(self._upstreams, context.caller)[name])
            result = await self._bridge.request(upstream, method, params, context)
        entry.returned(result)
        return result

    async def read(self, params: Mapping[str, Any], context: RequestContext) -> dict[str, Any]:
        """Answer `resources/read`.

        Raises:
            InvalidRequest: malformed, or no upstream has the resource.
            UpstreamError: the upstream could not answer.
        """
        uri = params.get("uri")
        if not isinstance(uri, str) or not uri:
            raise InvalidRequest("resources/read needs the uri of a resource")
        if uri.startswith(URI_SCHEME):
            return await self.ask(OWN, "resources/read", {"uri": uri}, context)
        await self._wait_for(uri, context)
        return await self._owner_of(uri).read(uri, params, self.ask, context)

    async def read_part(self, context: RequestContext, uri: str) -> Mapping[str, Any]:
        """Read a resource of any upstream for the gateway's own tools, in the caller's own sessions."""
        await self._wait_for(uri, context)
        return await self._owner_of(uri).read(uri, {"uri": uri}, self.ask, context)

    async def skills(
        self, method: str, params: Mapping[str, Any], context: RequestContext, waited: float
    ) -> dict[str, Any]:
        """Answer a request about skills (`gateway.routing.skills.METHODS`)."""
        if method == "skills/list":
            refuse_cursor(params)
        profile = context.profile
        await self._availability.first(profile.name, profile.wait.for_list(waited), context.caller)
        if isinstance(uri := params.get("uri"), str):
            await self._wait_for(uri, context)
        return await self._skills.answer(method, params, self.ask, context)

    async def use_skill(self, context: RequestContext, arguments: object) -> dict[str, Any]:
        """Answer a call of `gateway_skill`."""
        part = replace(context, is_part=True, on_progress=None)
        return await use_skill(self._skills, arguments, self.ask, part)

    def _owner_of(self, uri: str) -> Resources | Skills:
        return self._skills if uri.startswith(apps.SKILL_SCHEME) else self._resources

    async def _wait_for(self, uri: str, context: RequestContext) -> None:
        """Wait, within the profile's bound, for an upstream that is starting and may have the resource."""
        caller, profile = context.caller, context.profile
        if (page := self._resources.addressed(uri, caller)) is not None:
            # A host that cached its list of tools may request a page before anything else.
            starting = [name for name in self._availability.starting(caller) if name == page[0]]
            await self._availability.wait(starting, profile.wait.tools_list, caller)
        elif self._resources.owner(uri, caller) is None:
            await self._availability.first(profile.name, profile.wait.tools_list, caller)
