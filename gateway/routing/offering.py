"""What is offered to whom: catalogues per profile and revision, kept until an upstream's list changes."""

import logging
from collections.abc import Callable, Mapping
from difflib import get_close_matches
from typing import Any

from gateway.config.schema import GatewaySettings
from gateway.core.catalogue import OWN, Catalogue, Route, build
from gateway.core.catalogue.names import SEPARATOR, NameRules
from gateway.core.model.caller import REVISIONS
from gateway.core.model.profile import Profile
from gateway.core.wording import plain
from gateway.errors import GatewayError, UnknownTool
from gateway.routing.availability import Availability
from gateway.routing.ports import OwnTools, TheUpstreams
from gateway.upstream import UpstreamState

ProfileNow = Callable[[], Profile]
"""Gives the profile in force for one caller."""

logger = logging.getLogger(__name__)

_LONGEST_NAME = 200
_COMPARED = 500
"""How many names are compared with one that is unknown: comparing costs, and strangers choose the name."""
_LOGGED = 50
"""How many problems of one catalogue are logged one by one."""
_REMEMBERED = 5_000
"""How many logged problems are kept in mind, so as not to log them again."""


class Offering:
    """The catalogues in force, and the way from an offered name to its upstream."""

    def __init__(
        self, upstreams: TheUpstreams, own: OwnTools, settings: GatewaySettings, availability: Availability
    ) -> None:
        self._upstreams = upstreams
        self._own = own
        self._settings = settings
        self._availability = availability
        self._catalogues: dict[tuple[str, str], Catalogue] = {}
        self._schemas: dict[str, Mapping[str, Any]] = {}
        self._reported: set[str] = set()

    def reconfigure(self, settings: GatewaySettings) -> None:
        """Offer by other settings from now on."""
        self._settings = settings
        self.forget()

    def forget(self) -> None:
        """An upstream's list or state changed: the next question builds its catalogue anew."""
        self._catalogues.clear()
        self._schemas.clear()

    def catalogue(self, profile: Profile, revision: str) -> Catalogue:
        """What a profile's host of a revision is offered now. `profile` is narrowed to the revision already."""
        key = (profile.name, revision if revision in REVISIONS else REVISIONS[0])
        found = self._catalogues.get(key)
        if found is None:
            found = self._catalogues[key] = self._built(profile, revision)
            self._schemas.update((tool["name"], tool["inputSchema"]) for tool in found.tools)
            self._report(found, profile.name)
        return found

    def input_schema(self, name: str) -> Mapping[str, Any] | None:
        """The input schema of a tool that was offered to anybody under this name; None when none was."""
        return self._schemas.get(name)

    async def route(self, name: str, profile_now: ProfileNow, revision: str) -> Route:
        """Where a call of `name` goes. Waits, within the profile's bound, for an upstream that may bring it yet.

        `profile_now` is asked again after waiting: the profiles may be others then.

        Raises:
            UpstreamUnavailable: the name is one of an upstream that is not there.
            UnknownTool: it is nobody's.
        """
        profile = profile_now()
        route = self.catalogue(profile, revision).routes.get(name)
        if route is not None:
            return route
        owner = self._owner(name, profile)
        starting = self._availability.starting()
        awaited = [owner] if owner in starting else starting if owner is None else []
        if awaited:
            await self._availability.wait(awaited, profile.wait.tools_list)
            profile = profile_now()
            route = self.catalogue(profile, revision).routes.get(name)
            if route is not None:
                return route
        raise self._unknown(name, self._owner(name, profile), profile, revision)

    def _built(self, profile: Profile, revision: str) -> Catalogue:
        lists = {name: self._upstreams[name].tools() for name in self._upstreams}
        if profile.tools.helpers:
            lists = {OWN: self._own.tools(), **lists}
        settings = {name: self._upstreams[name].settings.tools for name in self._upstreams}
        registered_as = self._settings.name
        return build(lists, settings, self._settings.prefix, profile, registered_as, revision=revision)

    def _report(self, catalogue: Catalogue, profile: str) -> None:
        logger.debug("profile %s: %d tools, %d notes", profile, len(catalogue.tools), len(catalogue.notes))
        if len(self._reported) > _REMEMBERED:
            self._reported.clear()
        fresh = [note.text for note in catalogue.problems if note.text not in self._reported]
        for text in fresh[:_LOGGED]:
            logger.warning("tools for profile %s: %s", profile, text)
        self._reported.update(fresh[:_LOGGED])

    def _owner(self, name: str, profile: Profile) -> str | None:
        """The upstream that a prefixed name belongs to, if it begins with one's prefix."""
        rules = NameRules.of(profile.tools, self._settings.name)
        return next((own for own in self._upstreams if name.startswith(rules.legal(own) + SEPARATOR)), None)

    def _unknown(self, name: str, owner: str | None, profile: Profile, revision: str) -> GatewayError:
        shown = plain(name, _LONGEST_NAME)
        if owner is not None and self._upstreams[owner].state is not UpstreamState.READY:
            return self._availability.unavailable(owner, f"tool {shown!r}")
        routes = self.catalogue(profile, revision).routes
        likely = [offered for offered, route in routes.items() if route.upstream == owner] or list(routes)
        near = get_close_matches(shown, likely[:_COMPARED], n=3)
        hint = f"; the nearest: {', '.join(repr(match) for match in near)}" if near else ""
        absent = self._availability.missing()
        why = f"; not there now: {', '.join(absent)}" if absent else ""
        return UnknownTool(f"no tool is named {shown!r}{hint}{why}", remedy="list the tools again")
