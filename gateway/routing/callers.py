"""Callers as they are answered: with the toolset of their project, and what toolsets and rules leave them."""

from gateway.config.schema import Settings
from gateway.core.model.caller import Caller
from gateway.core.profiles.match_profile import able
from gateway.core.profiles.profile import Profile
from gateway.errors import ProfileError, UnknownToolset
from gateway.routing.call_rules import CallRules
from gateway.routing.lists import LISTS
from gateway.routing.log_once import Problems
from gateway.routing.profile_choices import ProfileChoices
from gateway.routing.project_toolsets import ProjectToolsets
from gateway.routing.result_context import host_folders
from gateway.upstream import RequestContext
from gateway.upstream.connection.host_requests import Host


class Callers:
    """Narrows callers to what exists for them."""

    def __init__(self, profiles: ProfileChoices, rules: CallRules, settings: Settings) -> None:
        self._profiles = profiles
        self._rules = rules
        self._has_toolsets = bool(settings.toolsets)
        self._problems = Problems()
        self.projects = ProjectToolsets()

    def reconfigure(self, settings: Settings) -> None:
        """Apply changed settings."""
        self._has_toolsets = bool(settings.toolsets)

    async def for_request(self, method: str, caller: Caller, profile: Profile, host: Host | None) -> Caller:
        """Return the caller of a request, whose host is asked for its project if there are any toolsets.

        Raises:
            UnknownToolset: one of its toolsets does not exist.
        """
        if self._has_toolsets:
            context = RequestContext(caller, profile, host=host)
            caller = await self.projects.narrowed(caller, lambda: host_folders(context))
        return self._narrowed(able(caller, profile), method)

    def known(self, caller: Caller) -> Caller:
        """Return the caller with what is known of it already, without asking its host.

        Raises:
            ProfileError: it asks for a profile that does not exist.
            UnknownToolset: the same of a toolset.
        """
        return self._rules.narrowed(self.projects.known(able(caller, self._profiles.profile_of(caller))))

    def unknown_toolset(self, caller: Caller) -> str | None:
        """Return which toolset of a host does not exist, and the nearest one; None if all do."""
        try:
            self.known(caller)
        except UnknownToolset as error:
            return self.projects.problem(caller, error)
        except ProfileError:
            return None
        return None

    def _narrowed(self, caller: Caller, method: str) -> Caller:
        """Return the caller with what its toolsets leave. Lists for a project with one that does not exist are empty.

        A host that is given an error in place of its first list often does not say why.
        """
        try:
            return self._rules.narrowed(caller)
        except UnknownToolset as error:
            if method not in LISTS or not caller.on_stdio:
                raise
            words = self.projects.problem(caller, error)
            self._problems.report([words], "a host is offered no server's tools, because of its project's file")
            return self._rules.without_upstreams(caller)
