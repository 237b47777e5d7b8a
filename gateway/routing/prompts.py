"""Prompts of all upstreams as one list, and `prompts/get` by the names in it."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from gateway.config.gateway_settings import GatewaySettings
from gateway.core.apps import outward_prompt
from gateway.core.model.caller import Caller
from gateway.core.model.grant import SEPARATOR, Grant
from gateway.core.model.json_values import as_object
from gateway.core.model.wire import WireObject
from gateway.core.near_names import nearest_words
from gateway.core.tools.catalogue import OWN, PromptCatalogue, PromptRoute, build_prompts
from gateway.core.tools.catalogue.repair import tamed_messages
from gateway.core.wording import plain
from gateway.errors import GatewayError, InvalidRequest, UnknownPrompt
from gateway.routing.availability import Availability
from gateway.routing.log_once import Problems
from gateway.routing.ports import Ask, UpstreamsPort
from gateway.routing.visible_upstreams import sharing
from gateway.upstream import UpstreamState
from gateway.upstream.connection.request_context import RequestContext

_LONGEST_NAME = 200
_COMPARED = 500
"""Maximum number of names that an unknown name is compared with."""


class Prompts:
    """The merged list, and `prompts/get`. `own` returns the gateway's own prompts for a request."""

    def __init__(
        self,
        upstreams: UpstreamsPort,
        settings: GatewaySettings,
        availability: Availability,
        own: Callable[[RequestContext], Sequence[WireObject]] = lambda _: (),
    ) -> None:
        self._own = own
        self._upstreams = upstreams
        self._settings = settings
        self._availability = availability
        self._last: tuple[Mapping[str, Sequence[Any]], PromptCatalogue] | None = None
        self._problems = Problems()

    def reconfigure(self, settings: GatewaySettings) -> None:
        """Apply changed settings."""
        self._settings = settings
        self._last = None

    def catalogue(self, context: RequestContext) -> PromptCatalogue:
        """Return the prompts that the caller is offered now."""
        lists = {OWN: self._own(context)}
        upstreams, grant = sharing(self._upstreams, context.caller), context.caller.grant
        for name in upstreams:
            prompts = upstreams[name].lists_for(context.caller).prompts
            lists[name] = prompts if not grant.within else _within(grant, name, prompts)
        if self._last is None or not _same(self._last[0], lists):
            self._last = (lists, build_prompts(lists, self._settings.prefix))
            self._problems.report((note.text for note in self._last[1].problems), "prompts")
        return self._last[1]

    async def get(self, params: Mapping[str, Any], context: RequestContext, ask: Ask) -> dict[str, Any]:
        """Return the raw result of `prompts/get` from the upstream that has the prompt.

        Raises:
            InvalidRequest: no prompt has this name.
            UpstreamError: the upstream is not available, or did not answer; UpstreamRefused carries its own error.
        """
        name = params.get("name")
        if not isinstance(name, str) or not name:
            raise InvalidRequest("prompts/get needs the name of a prompt")
        route = await self.route(name, context)
        passed = {**params, "name": route.prompt}
        if passed.get("arguments") is None:
            passed.pop("arguments", None)
        answer = await ask(route.upstream, "prompts/get", passed, context)
        return answer if route.upstream == OWN else tamed_messages(outward_prompt(route.upstream, answer))

    async def route(self, name: str, context: RequestContext) -> PromptRoute:
        """Return the route of a prompt. Wait, within the profile's bound, for a starting upstream that may have it.

        Raises:
            UpstreamUnavailable: the upstream that the name belongs to is not available.
            InvalidRequest: no upstream has it.
        """
        route = self.catalogue(context).routes.get(name)
        if route is None:
            owner, starting = self._owner(name, context.caller), self._availability.starting(context.caller)
            awaited = [each for each in starting if owner in (each, None)]
            await self._availability.wait(awaited, context.profile.wait.tools_list, context.caller)
            route = self.catalogue(context).routes.get(name)
        if route is None:
            raise self._unknown(name, context)
        return route

    def _owner(self, name: str, caller: Caller) -> str | None:
        return next((own for own in sharing(self._upstreams, caller) if name.startswith(own + SEPARATOR)), None)

    def _unknown(self, name: str, context: RequestContext) -> GatewayError:
        shown, owner = plain(name, _LONGEST_NAME), self._owner(name, context.caller)
        upstreams = sharing(self._upstreams, context.caller)
        if owner is not None and upstreams[owner].state is not UpstreamState.READY:
            return self._availability.unavailable(owner, f"prompt {shown!r}", context.caller)
        hint = nearest_words(shown, self.catalogue(context).routes)
        return UnknownPrompt(f"there is no prompt named {shown!r}{hint}", remedy="list the prompts again")


def _within(grant: Grant, upstream: str, prompts: Sequence[WireObject]) -> Sequence[WireObject]:
    return [one for one in prompts if grant.reaches_prompt(upstream, str(as_object(one).get("name")))]


def _same(before: Mapping[str, Sequence[Any]], now: Mapping[str, Sequence[Any]]) -> bool:
    return list(before) == list(now) and all(before[name] is now[name] for name in now)
