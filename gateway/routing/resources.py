"""Resources of all upstreams as one list, and the way from a uri to whoever has it.

Uris are passed on unchanged, but for those of pages (`ui://`, MCP Apps): there the upstream stands in front, because
two servers may use the same one. Tools point to their pages by uri, which need not be listed
(https://github.com/modelcontextprotocol/ext-apps/blob/main/specification/2026-01-26/apps.mdx).
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from gateway.core import apps
from gateway.core.model.blocks import LinkBlock, ResourceBlock
from gateway.core.model.caller import Caller
from gateway.core.model.envelope import Envelope
from gateway.core.model.json_values import as_object
from gateway.core.model.wire import INVALID_PARAMS, METHOD_NOT_FOUND, RESOURCE_NOT_FOUND, WireObject
from gateway.core.tools.catalogue.repair import repaired_resource
from gateway.core.wording import plain
from gateway.errors import UnknownResource, UpstreamError, UpstreamRefused
from gateway.routing.log_once import Problems
from gateway.routing.pages import OpenPages
from gateway.routing.per_caller import PerCaller
from gateway.routing.ports import Ask, TheLists, UpstreamsPort
from gateway.routing.templates import closest_first
from gateway.upstream.connection.owners import host_of, owner_by_session
from gateway.upstream.connection.request_context import RequestContext

_NOT_FOUND = frozenset({RESOURCE_NOT_FOUND, INVALID_PARAMS, METHOD_NOT_FOUND})
"""What upstreams answer for a uri that is not theirs: not found (up to 2025-11-25), invalid params (2026-07-28), or
that they have no resources at all."""

_LONGEST = 2_048
"""Characters of a uri beyond which it is not kept in mind."""


class Resources:
    """Merged lists, and reading. Remembers which upstreams named a uri in a result: such uris need not be listed.

    Of each caller its own: what an upstream names to one host says nothing about another host's reads.
    """

    def __init__(self, upstreams: UpstreamsPort, opened: OpenPages) -> None:
        self._upstreams = upstreams
        self._opened = opened
        self._named: PerCaller[tuple[str, ...]] = PerCaller()
        self._problems = Problems()

    def listed(self, caller: Caller) -> list[dict[str, Any]]:
        """The resources of all upstreams in the order of the configuration; of equal uris the first."""
        return self._merged("uri", caller, lambda lists: lists.resources)

    def templates(self, caller: Caller) -> list[dict[str, Any]]:
        """The resource templates of all upstreams in the order of the configuration; of equal ones the first."""
        return self._merged("uriTemplate", caller, lambda lists: lists.templates)

    def remember(self, upstream: str, envelope: Envelope, caller: Caller) -> None:
        """Keep in mind that this upstream named the uris in a result of its own, to this caller.

        Whoever was the first to name a uri stays the first to be asked: naming another's takes nothing away from it.
        """
        owner = host_of(caller)
        links = [block.uri for block in envelope.blocks if isinstance(block, LinkBlock)]
        embedded = [block.resource.uri for block in envelope.blocks if isinstance(block, ResourceBlock)]
        for uri in (*links, *embedded):
            if len(uri) <= _LONGEST:
                before = self._named.get(owner, uri) or ()
                self._named.put(owner, uri, tuple(dict.fromkeys((*before, upstream))))

    def left(self, session: str) -> None:
        """A host's session has ended: what was named to it is not needed any more."""
        self._named.forget(owner_by_session(session))

    def addressed(self, uri: str, caller: Caller) -> tuple[str, str] | None:
        """The upstream that stands in front of a page's uri, and the uri as it is there; None for every other uri.

        A page may ask for another by the uri of its own server, and servers begin uris with their own names: so a uri
        that is the upstream's as it stands is that one, unless what follows the front is one of its, too. What other
        upstreams have counts for nothing here: none can take over a uri with another's name in front.
        """
        parts = apps.split(uri)
        if parts is None or parts[0] not in self._upstreams:
            return None
        is_as_it_stands = not self._knows(*parts, caller) and self._knows(parts[0], uri, caller)
        return None if is_as_it_stands else parts

    def owner(self, uri: str, caller: Caller) -> str | None:
        """The first upstream that lists the uri."""
        return next((name for name in self._upstreams if _has(self._lists(name, caller).resources, "uri", uri)), None)

    def owner_of_template(self, template: str, caller: Caller) -> str | None:
        """The first upstream that lists the template itself."""
        return next(
            (name for name in self._upstreams if _has(self._lists(name, caller).templates, "uriTemplate", template)),
            None,
        )

    def likely(self, uri: str, caller: Caller) -> list[str]:
        """The upstreams that say something of a uri which none lists, the likeliest first.

        Those whose templates fit, who named it to this caller in a result, and whose tools show it as their user
        interface (the first, for a uri of an interface): naming alone does not make a uri an upstream's own.
        """
        named = self._named.get(host_of(caller), uri) or ()
        shown = [name for name in self._upstreams if self._shows(name, uri, caller)]
        templates = [
            (name, template)
            for name in self._upstreams
            for each in self._lists(name, caller).templates
            if isinstance(template := as_object(each).get("uriTemplate"), str)
        ]
        first = shown if uri.startswith(apps.SCHEME) else ()
        found = dict.fromkeys([*first, *closest_first(templates, uri), *named, *shown])
        return [name for name in found if name in self._upstreams]  # others were taken out of the configuration

    async def read(self, uri: str, params: Mapping[str, Any], ask: Ask, context: RequestContext) -> dict[str, Any]:
        """The raw result of `resources/read` from the upstream that lists the uri, else from the first that has it.

        Asked in this order: those that are `likely` to have it, and then everybody who has resources.

        Raises:
            UnknownResource: nobody has it.
            UpstreamError: whoever lists it did not answer, or refused.
        """
        caller = context.caller
        if uri.startswith(apps.SCHEME) and (page := await self._read_page(uri, params, ask, context)) is not None:
            return page
        owner = self.owner(uri, caller)
        if owner is not None:
            return await ask(owner, "resources/read", params, context)
        others = [name for name in self._upstreams if "resources" in self._upstreams[name].capabilities]
        refused: UpstreamRefused | None = None
        absent: list[str] = []
        for name in dict.fromkeys([*self.likely(uri, caller), *others]):
            if name not in self._upstreams:  # taken out of the configuration meanwhile
                continue
            try:
                return await ask(name, "resources/read", params, context)
            except UpstreamRefused as error:
                if error.code not in _NOT_FOUND:
                    refused = refused or error
            except UpstreamError as error:
                absent.append(plain(error.message))
        if refused is not None:
            raise refused
        why = f"; not asked: {'; '.join(absent)}" if absent else ""
        raise UnknownResource(
            f"no upstream has the resource {plain(uri)}{why}", uri=uri, remedy="list the resources again"
        )

    async def _read_page(
        self, uri: str, params: Mapping[str, Any], ask: Ask, context: RequestContext
    ) -> dict[str, Any] | None:
        """A page, by the uri that hosts are told, or by the one that its own upstream uses; None: it is neither."""
        caller = context.caller
        if (addressed := self.addressed(uri, caller)) is not None:
            name, there = addressed
            try:
                result = await ask(name, "resources/read", {**params, "uri": there}, context)
            except UpstreamRefused as error:
                if error.code not in _NOT_FOUND:
                    raise
            else:
                self._opened.add(name, caller)
                return apps.outward_contents(name, result)
        for name in self._opened.latest(caller):
            if self._knows(name, uri, caller):
                return await ask(name, "resources/read", params, context)
        return None

    def _knows(self, name: str, uri: str, caller: Caller) -> bool:
        """Whether this upstream lists the uri, or has a tool with that page."""
        return name in self._upstreams and (
            _has(self._lists(name, caller).resources, "uri", uri) or self._shows(name, uri, caller)
        )

    def _shows(self, name: str, uri: str, caller: Caller) -> bool:
        """Whether a tool of this upstream has the page."""
        return any(uri in apps.pages(tool) for tool in self._tools(name, caller))

    def whose(self, uri: str, caller: Caller) -> str:
        """The upstream that a uri is most likely of.

        Raises:
            UnknownResource: no upstream lists it, named it, has a template that fits, or tells of changes at all.
        """
        owner = self.owner(uri, caller) or next(iter([*self.likely(uri, caller), *self._able()]), None)
        if owner is None:
            raise UnknownResource(
                f"no upstream has the resource {plain(uri)}", uri=uri, remedy="list the resources again"
            )
        return owner

    def _able(self) -> list[str]:
        """The upstreams that tell of changes of resources."""
        declared = {name: as_object(self._upstreams[name].capabilities.get("resources")) for name in self._upstreams}
        return [name for name, resources in declared.items() if resources.get("subscribe") is True]

    def _lists(self, name: str, caller: Caller) -> TheLists:
        return self._upstreams[name].lists_for(caller)

    def _tools(self, name: str, caller: Caller) -> Sequence[WireObject]:
        return self._lists(name, caller).tools

    def _merged(
        self, key: str, caller: Caller, declared: Callable[[TheLists], Sequence[WireObject]]
    ) -> list[dict[str, Any]]:
        merged: dict[str, dict[str, Any]] = {}
        owners: dict[str, str] = {}
        problems: list[str] = []
        for name in self._upstreams:
            for each in declared(self._lists(name, caller)):
                resource = repaired_resource(each, key)
                if resource is None:
                    problems.append(f"{name}: one without {key} or name is withheld")
                    continue
                uri = resource[key] = apps.outward(name, resource[key])
                if uri not in merged:
                    merged[uri], owners[uri] = resource, name
                elif owners[uri] != name:
                    problems.append(f"{plain(uri)} of {name} is withheld: {owners[uri]} lists it already")
        self._problems.report(problems, "resources")
        return list(merged.values())


def _has(declared: Sequence[Any], key: str, value: str) -> bool:
    return any(as_object(each).get(key) == value for each in declared)
