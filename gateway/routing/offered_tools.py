"""The tools that a caller is offered, as far as they are known: nothing here waits for upstreams."""

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from gateway.core.model.caller import Caller
from gateway.core.tools.catalogue import Catalogue, Route
from gateway.errors import InvalidRequest, ProfileError, UnknownToolset
from gateway.routing.call_rules import CallRules
from gateway.routing.callers import Callers
from gateway.routing.profile_choices import ProfileChoices
from gateway.routing.tool_catalogues import ToolCatalogues
from gateway.routing.tool_search import MOST_FOUND, ToolSearch, query_problem


class KnownCall(NamedTuple):
    """A call of a tool that its caller is offered; of one that a call of `gateway_call_tool` names, the inner call."""

    caller: Caller
    name: str
    params: Mapping[str, Any]
    route: Route
    catalogue: Catalogue


class OfferedTools:
    """Answers from the catalogues."""

    def __init__(
        self,
        profiles: ProfileChoices,
        callers: Callers,
        catalogues: ToolCatalogues,
        rules: CallRules,
        search: ToolSearch,
    ) -> None:
        self._profiles = profiles
        self._callers = callers
        self._catalogues = catalogues
        self._rules = rules
        self._search = search

    def catalogue(self, caller: Caller) -> Catalogue:
        """Return the caller's catalogue, with notes of what was changed or left out."""
        return self._catalogues.catalogue(self._profiles.listed_for(caller), self._callers.known(caller))

    def all_tools(self, caller: Caller) -> list[dict[str, Any]]:
        """Return the caller's tools: those too that are found by searching."""
        return self._search.unsearched(self.catalogue(caller))

    def asking(self, caller: Caller) -> dict[str, str]:
        """Return the tools offered to a caller whose calls wait for its user, each with the rule that wants it."""
        known = self._callers.known(caller)
        routes = self.catalogue(caller).routes.items()
        return {name: rule for name, route in routes if (rule := self._rules.asks(route, known))}

    async def search(self, words: str, caller: Caller) -> list[str]:
        """Return the names of the tools that a search for these words finds for a caller, best first.

        Raises:
            InvalidRequest: there are no words, or too many.
        """
        if (problem := query_problem(words)) is not None:
            raise InvalidRequest(problem)
        return (await self._search.best(self.catalogue(caller), words, MOST_FOUND))[0]

    def header_schema(self, name: str, caller: Callable[[], Caller]) -> Mapping[str, Any] | None:
        """Return the input schema of a tool that declares headers, by the name under which the caller is offered it.

        Returns None if the caller has not been offered it yet. `caller` is only called if somebody has.
        """
        if not self._catalogues.declares_headers(name):
            return None
        asking = caller()
        try:
            return self._catalogues.header_schema(name, self._profiles.listed_for(asking), self._callers.known(asking))
        except (ProfileError, UnknownToolset):  # the request is refused for that
            return None

    async def call(self, params: Mapping[str, Any], caller: Caller) -> KnownCall | None:
        """Return the call with these params; None if its tool is not known, or if it is refused before it is routed."""
        try:
            caller = self._callers.known(caller)
            listed = self._profiles.listed_for(caller)
            params = self._search.inner_call(params, listed)
            catalogue = await self._catalogues.prepared(listed, caller)
        except (ProfileError, InvalidRequest):
            return None
        name = str(params.get("name"))
        route = catalogue.routes.get(name)
        return None if route is None else KnownCall(caller, name, params, route, catalogue)
