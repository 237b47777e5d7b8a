"""Prompts of all upstreams as one list, and `prompts/get` by the names in it."""

from collections import OrderedDict
from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import partial
from typing import Any

from anyio import Lock

from gateway.config.gateway_settings import GatewaySettings
from gateway.core.apps import outward_prompt
from gateway.core.fact_words import plain
from gateway.core.model.caller import Caller
from gateway.core.model.grant import SEPARATOR, Grant
from gateway.core.model.json_values import as_object
from gateway.core.model.wire import WireObject
from gateway.core.near_names import nearest_words
from gateway.core.tools.catalogue import OWN, PrefixRule, PromptCatalogue, PromptRoute, build_prompts
from gateway.core.tools.catalogue.hidden_text import tamed_messages
from gateway.errors import GatewayError, InvalidRequest, UnknownPrompt
from gateway.routing.availability import Availability
from gateway.routing.large_values import work_on
from gateway.routing.log_once import Problems
from gateway.routing.ports import Ask, UpstreamsPort
from gateway.routing.visible_upstreams import sharing
from gateway.upstream import UpstreamState
from gateway.upstream.connection.request_context import RequestContext

_LONGEST_NAME = 200
_KEPT = 32
"""Maximum number of merged lists kept, most recently used: they depend on what a caller may reach."""


class Prompts:
    """The merged list, and `prompts/get`. `own` returns the gateway's own prompts for a request."""

    def __init__(
        self,
        upstreams: UpstreamsPort,
        settings: GatewaySettings,
        availability: Availability,
        own: Callable[[RequestContext], Awaitable[Sequence[WireObject]]],
    ) -> None:
        self._own = own
        self._upstreams = upstreams
        self._settings = settings
        self._availability = availability
        self._kept: OrderedDict[tuple[object, ...], tuple[Mapping[str, Sequence[Any]], PromptCatalogue]] = OrderedDict()
        """By what they were merged from, which is kept beside them: nothing else can get the same id."""
        self._problems = Problems()
        self._building = Lock()

    def reconfigure(self, settings: GatewaySettings) -> None:
        """Apply changed settings."""
        self._settings = settings
        self._kept.clear()

    async def catalogue(self, context: RequestContext) -> PromptCatalogue:
        """Return the prompts that the caller is offered now; large lists are merged in a thread."""
        lists = {OWN: await self._own(context)}
        upstreams, grant = sharing(self._upstreams, context.caller), context.caller.grant
        lists |= {name: upstreams[name].lists_for(context.caller).prompts for name in upstreams}
        key = (grant.within, *((name, id(prompts)) for name, prompts in lists.items()))
        async with self._building:
            if (kept := self._kept.get(key)) is not None:
                self._kept.move_to_end(key)
                return kept[1]
            settings = self._settings
            merged = await work_on(lists, partial(_merged, lists, grant, settings.prefix))
            self._problems.report((note.text for note in merged.problems), "prompts")
            if settings is self._settings:
                self._kept[key] = (lists, merged)
            while len(self._kept) > _KEPT:
                self._kept.popitem(last=False)
            return merged

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
        if route.upstream == OWN:
            return answer
        return await work_on(answer, partial(tamed_messages, outward_prompt(route.upstream, answer)))

    async def route(self, name: str, context: RequestContext) -> PromptRoute:
        """Return the route of a prompt. Wait, within the profile's bound, for a starting upstream that may have it.

        Raises:
            UpstreamUnavailable: the upstream that the name belongs to is not available.
            InvalidRequest: no upstream has it.
        """
        route = (await self.catalogue(context)).routes.get(name)
        if route is None:
            owner, starting = self._owner(name, context.caller), self._availability.starting(context.caller)
            awaited = [each for each in starting if owner in (each, None)]
            await self._availability.wait(awaited, context.profile.wait.tools_list, context.caller)
            route = (await self.catalogue(context)).routes.get(name)
        if route is None:
            raise await self._unknown(name, context)
        return route

    def _owner(self, name: str, caller: Caller) -> str | None:
        return next((own for own in sharing(self._upstreams, caller) if name.startswith(own + SEPARATOR)), None)

    async def _unknown(self, name: str, context: RequestContext) -> GatewayError:
        shown, owner = plain(name, _LONGEST_NAME), self._owner(name, context.caller)
        upstreams = sharing(self._upstreams, context.caller)
        if owner is not None and upstreams[owner].state is not UpstreamState.READY:
            return self._availability.unavailable(owner, f"prompt {shown!r}", context.caller)
        hint = nearest_words(shown, (await self.catalogue(context)).routes)
        return UnknownPrompt(f"there is no prompt named {shown!r}{hint}", remedy="list the prompts again")


def _merged(lists: Mapping[str, Sequence[WireObject]], grant: Grant, prefix: PrefixRule) -> PromptCatalogue:
    if grant.within:
        lists = {name: _within(grant, name, prompts) for name, prompts in lists.items()}
    return build_prompts(lists, prefix)


def _within(grant: Grant, upstream: str, prompts: Sequence[WireObject]) -> Sequence[WireObject]:
    if upstream == OWN:
        return prompts
    return [one for one in prompts if grant.reaches_prompt(upstream, str(as_object(one).get("name")))]
