"""Resources of all upstreams as one list, and the way from a uri to whoever has it.

Uris are passed on unchanged: tools point to their user interfaces by uri (`_meta.ui.resourceUri`).
"""

import logging
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from gateway.core.catalogue.repair import repaired_resource
from gateway.core.model.blocks import LinkBlock, ResourceBlock
from gateway.core.model.envelope import Envelope
from gateway.core.model.wire import WireObject
from gateway.core.wording import plain
from gateway.errors import UnknownResource, UpstreamError, UpstreamRefused
from gateway.routing.ports import AnUpstream, TheUpstreams
from gateway.routing.templates import closest_first

logger = logging.getLogger(__name__)

_NOT_FOUND = frozenset({-32002, -32602, -32601})
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

    def listed(self) -> list[dict[str, Any]]:
        """The resources of all upstreams in the order of the configuration; of equal uris the first."""
        return self._merged("uri", lambda upstream: upstream.resources())

    def templates(self) -> list[dict[str, Any]]:
        """The resource templates of all upstreams in the order of the configuration; of equal ones the first."""
        return self._merged("uriTemplate", lambda upstream: upstream.templates())

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

    def owner(self, uri: str) -> str | None:
        """The first upstream that lists the uri."""
        return next((name for name in self._upstreams if self._lists(name, uri)), None)

    async def read(self, uri: str, params: Mapping[str, Any]) -> dict[str, Any]:
        """The raw result of `resources/read` from the upstream that lists the uri, else from the first that has it.

        Asked in this order: who named it in a result, whose templates fit, and then everybody who has resources.

        Raises:
            UnknownResource: nobody has it.
            UpstreamError: whoever lists it did not answer, or refused.
        """
        owner = self.owner(uri)
        if owner is not None:
            return await self._ask(owner, params)
        refused: UpstreamRefused | None = None
        absent: list[str] = []
        for name in self._candidates(uri):
            if name not in self._upstreams:  # taken out of the configuration, meanwhile or before
                continue
            try:
                return await self._ask(name, params)
            except UpstreamRefused as error:
                if error.code not in _NOT_FOUND:
                    refused = refused or error
            except UpstreamError as error:
                absent.append(plain(error.message))
        if refused is not None:
            raise refused
        why = f"; not asked: {'; '.join(absent)}" if absent else ""
        raise UnknownResource(f"no upstream has the resource {plain(uri)}{why}", remedy="list the resources again")

    def _candidates(self, uri: str) -> list[str]:
        named = [self._named[uri]] if uri in self._named else []
        templates = [
            (name, template)
            for name in self._upstreams
            for each in self._upstreams[name].templates()
            if isinstance(template := each.get("uriTemplate"), str)
        ]
        others = [name for name in self._upstreams if "resources" in self._upstreams[name].capabilities]
        return list(dict.fromkeys([*named, *closest_first(templates, uri), *others]))

    def _lists(self, name: str, uri: str) -> bool:
        return any(resource.get("uri") == uri for resource in self._upstreams[name].resources())

    async def _ask(self, name: str, params: Mapping[str, Any]) -> dict[str, Any]:
        upstream = self._upstreams[name]
        return await upstream.request("resources/read", params, timeout=upstream.settings.timeout)

    def _merged(self, key: str, declared: Callable[[AnUpstream], Sequence[WireObject]]) -> list[dict[str, Any]]:
        merged: dict[str, dict[str, Any]] = {}
        for name in self._upstreams:
            for each in declared(self._upstreams[name]):
                resource = repaired_resource(each, key)
                if resource is None:
                    logger.debug("%s: a resource without uri or name is withheld", name)
                elif resource[key] in merged:
                    logger.debug("%s: another upstream lists %s already", name, plain(resource[key]))
                else:
                    merged[resource[key]] = resource
        return list(merged.values())
