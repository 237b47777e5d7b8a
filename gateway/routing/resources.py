"""Resources of all upstreams as one list, and the way from a URI to the upstream that has it.

URIs are passed on unchanged, except those of pages (`ui://`, MCP Apps) and skills (`skill://`): these are prefixed with
the upstream's name, because two servers may use the same one. `gateway.routing.skills` reads those of skills. Tools
refer to their pages by URI, and these need not be listed
(https://github.com/modelcontextprotocol/ext-apps/blob/main/specification/2026-01-26/apps.mdx).
"""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple

from anyio import Lock

from gateway.core import apps
from gateway.core.fact_words import plain
from gateway.core.model.blocks import LinkBlock, ResourceBlock
from gateway.core.model.caller import Caller
from gateway.core.model.envelope import Envelope
from gateway.core.model.json_values import as_object
from gateway.core.model.wire import UNKNOWN_RESOURCE, WireObject
from gateway.core.tools.catalogue.repair import repaired_resource
from gateway.errors import UnknownResource, UpstreamError, UpstreamRefused
from gateway.routing.large_values import work_on
from gateway.routing.log_once import Problems
from gateway.routing.pages import OpenPages
from gateway.routing.per_caller import PerCaller
from gateway.routing.ports import Ask, ListsPort, UpstreamsPort
from gateway.routing.templates import closest_first
from gateway.routing.visible_upstreams import sharing
from gateway.upstream.connection.owners import host_of, owner_by_session
from gateway.upstream.connection.request_context import RequestContext

_LONGEST = 2_048
"""Maximum length of a URI to remember, in characters."""


class _Repaired(NamedTuple):
    """An upstream's list, and what can be listed of it: for each declared item its URI, and None if it is withheld."""

    declared: Sequence[WireObject]
    items: Sequence[tuple[object, dict[str, Any] | None]]


class Resources:
    """Merged lists, and reading. Remembers which upstreams named a URI in a result, because it need not be listed.

    This is remembered separately for each caller: what one host was shown does not affect another host's reads. With a
    toolset, what is in it exists, and what its tools have: their pages, and what they name in results.
    """

    def __init__(self, upstreams: UpstreamsPort, opened: OpenPages) -> None:
        self._upstreams = upstreams
        self._opened = opened
        self._named: PerCaller[tuple[str, ...]] = PerCaller()
        self._problems = Problems()
        self._repaired: dict[tuple[str, str], _Repaired] = {}
        self._repairing = Lock()

    async def listed(self, caller: Caller) -> list[dict[str, Any]]:
        """The resources of all upstreams in the order of the configuration; of equal URIs only the first."""
        return await self._merged("uri", caller, lambda lists: lists.resources)

    async def templates(self, caller: Caller) -> list[dict[str, Any]]:
        """The resource templates of all upstreams in the order of the configuration; of equal ones only the first."""
        return await self._merged("uriTemplate", caller, lambda lists: lists.templates)

    def remember(self, upstream: str, envelope: Envelope, caller: Caller) -> None:
        """Remember that this upstream named the URIs in this result to this caller.

        The first upstream to name a URI remains the first to be asked: another cannot take a URI over by naming it.
        """
        owner, narrowed = host_of(caller), _key_of(caller)
        links = [block.uri for block in envelope.blocks if isinstance(block, LinkBlock)]
        embedded = [block.resource.uri for block in envelope.blocks if isinstance(block, ResourceBlock)]
        for uri in (*links, *embedded):
            if len(uri) <= _LONGEST:
                before = self._named.get(owner, narrowed + uri) or ()
                self._named.put(owner, narrowed + uri, tuple(dict.fromkeys((*before, upstream))))

    def left(self, session: str) -> None:
        """Forget the URIs named to a host's session that has ended."""
        self._named.forget(owner_by_session(session))

    def addressed(self, uri: str, caller: Caller) -> tuple[str, str] | None:
        """Split the URI of a page or skill into the upstream in front and that upstream's URI; None for others.

        A page may request another page by its server's own URI, and servers often begin URIs with their own names. So a
        URI that the upstream knows unchanged is taken to be that one, unless the upstream also knows the part after the
        prefix. Other upstreams are not considered: none can take over a URI prefixed with another's name.
        """
        parts = apps.split(uri)
        if parts is None or parts[0] not in sharing(self._upstreams, caller):
            return None
        if uri.startswith(apps.SKILL_SCHEME):
            return parts if self.exists(*parts, caller) else None
        is_as_it_stands = not self._knows(*parts, caller) and self._knows(parts[0], uri, caller)
        return None if is_as_it_stands or not self.exists(*parts, caller) else parts

    def owner(self, uri: str, caller: Caller) -> str | None:
        """The first upstream that lists the URI."""
        names = sharing(self._upstreams, caller)
        listing = (name for name in names if _has(self._lists(name, caller).resources, "uri", uri))
        return next((name for name in listing if self.exists(name, uri, caller)), None)

    def owner_of_template(self, template: str, caller: Caller) -> str | None:
        """The first upstream that lists the template itself."""
        names = sharing(self._upstreams, caller)
        listing = (name for name in names if _has(self._lists(name, caller).templates, "uriTemplate", template))
        return next((name for name in listing if self.exists(name, template, caller)), None)

    def likely(self, uri: str, caller: Caller) -> list[str]:
        """The upstreams that probably have a URI which none lists, most likely first.

        These are the ones with a matching template, those that named it to this caller in a result, and those with a
        tool that has it as its page (first, for the URI of a page): naming a URI does not make it the upstream's own.
        """
        upstreams = sharing(self._upstreams, caller)
        named = self._naming(uri, caller)
        shown = [name for name in upstreams if self._shows(name, uri, caller)]
        templates = [
            (name, template)
            for name in upstreams
            for each in self._lists(name, caller).templates
            if isinstance(template := as_object(each).get("uriTemplate"), str)
        ]
        first = shown if uri.startswith(apps.SCHEME) else ()
        found = dict.fromkeys([*first, *closest_first(templates, uri), *named, *shown])
        # The others were removed from the configuration, or are not for this caller.
        return [name for name in found if name in upstreams and self.exists(name, uri, caller)]

    async def read(self, uri: str, params: Mapping[str, Any], ask: Ask, context: RequestContext) -> dict[str, Any]:
        """Return the raw result of `resources/read` from the upstream that lists the URI, else the first that has it.

        The upstreams that are `likely` to have it are asked first, then all others with resources.

        Raises:
            UnknownResource: no upstream has it.
            UpstreamError: the upstream that lists it did not answer, or refused.
        """
        caller = context.caller
        if uri.startswith(apps.SCHEME) and (page := await self._read_page(uri, params, ask, context)) is not None:
            return page
        owner = self.owner(uri, caller)
        if owner is not None:
            return await ask(owner, "resources/read", params, context)
        upstreams = sharing(self._upstreams, caller)
        able = [name for name in upstreams if "resources" in upstreams[name].capabilities]
        others = [name for name in able if self.exists(name, uri, caller)]
        refused: UpstreamRefused | None = None
        absent: list[str] = []
        for name in dict.fromkeys([*self.likely(uri, caller), *others]):
            if name not in upstreams:  # removed from the configuration meanwhile
                continue
            try:
                return await ask(name, "resources/read", params, context)
            except UpstreamRefused as error:
                if error.code not in UNKNOWN_RESOURCE:
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
        """Read a page by the prefixed URI that hosts know or by its upstream's own; None if the URI is neither."""
        caller = context.caller
        if (addressed := self.addressed(uri, caller)) is not None:
            name, there = addressed
            try:
                result = await ask(name, "resources/read", {**params, "uri": there}, context)
            except UpstreamRefused as error:
                if error.code not in UNKNOWN_RESOURCE:
                    raise
            else:
                self._opened.add(name, caller)
                return apps.outward_contents(name, result)
        for name in self._opened.latest(caller):
            if self._knows(name, uri, caller):
                return await ask(name, "resources/read", params, context)
        return None

    def _knows(self, name: str, uri: str, caller: Caller) -> bool:
        """Whether this upstream lists the URI, or has a tool with that page."""
        return name in sharing(self._upstreams, caller) and (
            (_has(self._lists(name, caller).resources, "uri", uri) and self.exists(name, uri, caller))
            or self._shows(name, uri, caller)
        )

    def exists(self, name: str, uri: str, caller: Caller) -> bool:
        """Whether the URI may be one that this upstream has for the caller, as far as toolsets decide that."""
        if not caller.grant.within or caller.grant.reaches_resource(name, uri):
            return True
        return name in self._naming(uri, caller) or self._shows(name, uri, caller)

    def _naming(self, uri: str, caller: Caller) -> tuple[str, ...]:
        """The upstreams that named the URI to this caller in a result."""
        return self._named.get(host_of(caller), _key_of(caller) + uri) or ()

    def _shows(self, name: str, uri: str, caller: Caller) -> bool:
        """Whether a tool of this upstream has the page."""
        return any(uri in apps.pages(tool) for tool in self._tools(name, caller))

    def whose(self, uri: str, caller: Caller) -> str:
        """Return the upstream that most probably has a URI.

        Raises:
            UnknownResource: no upstream lists or named it, has a matching template, or supports subscriptions.
        """
        # Changes are told by URI alone, so only who reaches every upstream may guess whose a URI is.
        able = self._able(caller) if caller.grant.reaches_all_upstreams and not caller.grant.closed else []
        owner = self.owner(uri, caller) or next(iter([*self.likely(uri, caller), *able]), None)
        if owner is None:
            raise UnknownResource(
                f"no upstream has the resource {plain(uri)}", uri=uri, remedy="list the resources again"
            )
        return owner

    def _able(self, caller: Caller) -> list[str]:
        """The upstreams that support subscriptions to resources."""
        upstreams = sharing(self._upstreams, caller)
        declared = {name: as_object(upstreams[name].capabilities.get("resources")) for name in upstreams}
        return [name for name, resources in declared.items() if resources.get("subscribe") is True]

    def _lists(self, name: str, caller: Caller) -> ListsPort:
        return self._upstreams[name].lists_for(caller)

    def _tools(self, name: str, caller: Caller) -> Sequence[WireObject]:
        tools, grant = self._lists(name, caller).tools, caller.grant
        if not grant.within:
            return tools
        return [tool for tool in tools if grant.reaches_tool(name, str(as_object(tool).get("name")))]

    async def _merged(
        self, key: str, caller: Caller, declared: Callable[[ListsPort], Sequence[WireObject]]
    ) -> list[dict[str, Any]]:
        merged: dict[str, dict[str, Any]] = {}
        owners: dict[str, str] = {}
        problems: list[str] = []
        for name in sharing(self._upstreams, caller):
            for declared_uri, resource in await self._repairs(name, key, declared(self._lists(name, caller))):
                if not self._is_listed(name, declared_uri, caller):
                    continue
                if resource is None:
                    problems.append(f"{name}: one without a name or a {key} that clients can read is withheld")
                    continue
                uri = apps.outward(name, resource[key])
                if uri not in merged:
                    merged[uri], owners[uri] = {**resource, key: uri}, name
                elif owners[uri] != name:
                    problems.append(f"{plain(uri)} of {name} is withheld: {owners[uri]} lists it already")
        self._problems.report(problems, "resources")
        return list(merged.values())

    async def _repairs(
        self, name: str, key: str, declared: Sequence[WireObject]
    ) -> Sequence[tuple[object, dict[str, Any] | None]]:
        """Repair an upstream's list, once for all who are listed it (`_Repaired.items`)."""
        async with self._repairing:
            known = self._repaired.get((name, key))
            if known is None or known.declared is not declared:
                items = await work_on(declared, partial(_repairs, declared, key))
                kept = {each: found for each, found in self._repaired.items() if each[0] in self._upstreams}
                known = _Repaired(declared, items)
                self._repaired = {**kept, (name, key): known}
            return known.items

    def _is_listed(self, name: str, uri: object, caller: Caller) -> bool:
        """Whether something of an upstream is listed for the caller, as far as toolsets decide that."""
        return not caller.grant.within or (isinstance(uri, str) and caller.grant.reaches_resource(name, uri))


def _repairs(declared: Sequence[WireObject], key: str) -> Sequence[tuple[object, dict[str, Any] | None]]:
    return [(as_object(each).get(key), repaired_resource(each, key)) for each in declared]


def _key_of(caller: Caller) -> str:
    """The beginning of the keys under which URIs are remembered: what is named in one toolset is not in another."""
    return "".join(f"{name}\n" for name in sorted(caller.toolsets))


def _has(declared: Sequence[Any], key: str, value: str) -> bool:
    return any(as_object(each).get(key) == value for each in declared)
