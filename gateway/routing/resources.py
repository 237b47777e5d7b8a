"""Resources of all upstreams as one list, and the way from a uri to whoever has it.

Uris are passed on unchanged: tools point to their user interfaces by uri (`_meta.ui.resourceUri`, MCP Apps:
https://github.com/modelcontextprotocol/ext-apps/blob/main/specification/2026-01-26/apps.mdx), which need not be listed.
"""

from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from typing import Any, cast

from gateway.core.catalogue.repair import repaired_resource
from gateway.core.model.blocks import LinkBlock, ResourceBlock
from gateway.core.model.caller import Caller
from gateway.core.model.envelope import Envelope
from gateway.core.model.wire import INVALID_PARAMS, METHOD_NOT_FOUND, RESOURCE_NOT_FOUND, WireObject
from gateway.core.wording import plain
from gateway.errors import UnknownResource, UpstreamError, UpstreamRefused
from gateway.routing.ports import Ask, TheLists, TheUpstreams
from gateway.routing.reporting import Problems
from gateway.routing.templates import closest_first

_NOT_FOUND = frozenset({RESOURCE_NOT_FOUND, INVALID_PARAMS, METHOD_NOT_FOUND})
"""What upstreams answer for a uri that is not theirs: not found (up to 2025-11-25), invalid params (2026-07-28), or
that they have no resources at all."""

_REMEMBERED = 4_096
"""How many uris that results named are kept in mind, the newest."""
_LONGEST = 2_048
"""Characters of a uri beyond which it is not kept in mind."""


class Resources:
    """Merged lists, and reading. Remembers which upstream named a uri in a result: such uris need not be listed."""

    def __init__(self, upstreams: TheUpstreams) -> None:
        self._upstreams = upstreams
        self._named: OrderedDict[str, str] = OrderedDict()
        self._problems = Problems()

    def listed(self, caller: Caller) -> list[dict[str, Any]]:
        """The resources of all upstreams in the order of the configuration; of equal uris the first."""
        return self._merged("uri", caller, lambda lists: lists.resources)

    def templates(self, caller: Caller) -> list[dict[str, Any]]:
        """The resource templates of all upstreams in the order of the configuration; of equal ones the first."""
        return self._merged("uriTemplate", caller, lambda lists: lists.templates)

    def remember(self, upstream: str, envelope: Envelope) -> None:
        """Keep in mind that this upstream named the uris in a result of its own."""
        links = [block.uri for block in envelope.blocks if isinstance(block, LinkBlock)]
        embedded = [block.resource.uri for block in envelope.blocks if isinstance(block, ResourceBlock)]
        for uri in (*links, *embedded):
            if len(uri) <= _LONGEST:
                self._named[uri] = upstream
                self._named.move_to_end(uri)
        while len(self._named) > _REMEMBERED:
            self._named.popitem(last=False)

    def owner(self, uri: str, caller: Caller | None = None) -> str | None:
        """The first upstream that lists the uri."""
        return next((name for name in self._upstreams if _has(self._lists(name, caller).resources, "uri", uri)), None)

    def owner_of_template(self, template: str, caller: Caller) -> str | None:
        """The first upstream that lists the template itself."""
        return next(
            (name for name in self._upstreams if _has(self._lists(name, caller).templates, "uriTemplate", template)),
            None,
        )

    def likely(self, uri: str, caller: Caller | None = None) -> list[str]:
        """The upstreams that say something of a uri which none lists, the likeliest first.

        Those who named it in a result, whose tools show it as their user interface, and whose templates fit.
        """
        named = [self._named[uri]] if uri in self._named else []
        shown = [name for name in self._upstreams if any(uri in interfaces(tool) for tool in self._tools(name, caller))]
        templates = [
            (name, template)
            for name in self._upstreams
            for each in self._lists(name, caller).templates
            if isinstance(template := _object(each).get("uriTemplate"), str)
        ]
        found = dict.fromkeys([*named, *shown, *closest_first(templates, uri)])
        return [name for name in found if name in self._upstreams]  # others were taken out of the configuration

    async def read(self, uri: str, params: Mapping[str, Any], ask: Ask, caller: Caller | None = None) -> dict[str, Any]:
        """The raw result of `resources/read` from the upstream that lists the uri, else from the first that has it.

        Asked in this order: those that are `likely` to have it, and then everybody who has resources.

        Raises:
            UnknownResource: nobody has it.
            UpstreamError: whoever lists it did not answer, or refused.
        """
        owner = self.owner(uri, caller)
        if owner is not None:
            return await ask(owner, "resources/read", params)
        others = [name for name in self._upstreams if "resources" in self._upstreams[name].capabilities]
        refused: UpstreamRefused | None = None
        absent: list[str] = []
        for name in dict.fromkeys([*self.likely(uri, caller), *others]):
            if name not in self._upstreams:  # taken out of the configuration meanwhile
                continue
            try:
                return await ask(name, "resources/read", params)
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
        declared = {name: _object(self._upstreams[name].capabilities.get("resources")) for name in self._upstreams}
        return [name for name, resources in declared.items() if resources.get("subscribe") is True]

    def _lists(self, name: str, caller: Caller | None) -> TheLists:
        return self._upstreams[name].lists_for(caller)

    def _tools(self, name: str, caller: Caller | None) -> Sequence[WireObject]:
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
                elif (uri := resource[key]) not in merged:
                    merged[uri], owners[uri] = resource, name
                elif owners[uri] != name:
                    problems.append(f"{plain(uri)} of {name} is withheld: {owners[uri]} lists it already")
        self._problems.report(problems, "resources")
        return list(merged.values())


def interfaces(tool: Any) -> tuple[str, ...]:
    """The uris of a tool's user interface: where it is today, and where it was before the extension was stable."""
    meta = _object(_object(tool).get("_meta"))
    found = (_object(meta.get("ui")).get("resourceUri"), meta.get("ui/resourceUri"))
    return tuple(uri for uri in found if isinstance(uri, str))


def _has(declared: Sequence[Any], key: str, value: str) -> bool:
    return any(_object(each).get(key) == value for each in declared)


def _object(value: Any) -> Mapping[str, Any]:
    return cast("Mapping[str, Any]", value) if isinstance(value, Mapping) else {}
