"""The upstreams' instructions for models, and how much of them each host keeps."""

from collections.abc import Callable, Mapping

from gateway.core.profiles.match_profile import find_profile, glob_of, specificity
from gateway.core.profiles.profile import Profile
from gateway.core.skills import has_skills
from gateway.core.tools.instructions import Introductions, part
from gateway.routing.call_rules import NOBODY, CallRules
from gateway.routing.ports import UpstreamPort, UpstreamsPort
from gateway.routing.profile_choices import ProfileChoices
from gateway.upstream import UpstreamState


class SharedInstructions:
    """The instructions of all upstreams that no rule withholds from everybody it does not name, as last known."""

    def __init__(self, upstreams: UpstreamsPort, profiles: ProfileChoices, rules: CallRules) -> None:
        self._upstreams = upstreams
        self._profiles = profiles
        self._rules = rules
        self._listener: Callable[[Introductions], None] | None = None
        self.latest = self._shared()

    def on_change(self, listener: Callable[[Introductions], None]) -> None:
        """Set the only listener for changes."""
        self._listener = listener

    def refresh(self) -> None:
        """Read them again, and notify the listener if they have changed."""
        now = self._shared()
        if now != self.latest:
            self.latest = now
            if self._listener is not None:
                self._listener(now)

    def _shared(self) -> Introductions:
        found = introductions(self._upstreams, self._profiles.profiles, self._profiles.configured)
        return found.only(lambda name: self._rules.policy.shares(name, NOBODY))


def introductions(upstreams: UpstreamsPort, profiles: Mapping[str, Profile], configured: str | None) -> Introductions:
    """The instructions of all enabled upstreams, as last known. `configured` is the profile set for every host, if any.

    Only the host's name is considered: the instructions are sent before it has said more about itself.
    """
    enabled = [name for name in upstreams if upstreams[name].state is not UpstreamState.DISABLED]
    parts = tuple((name, text) for name in enabled if (text := part(upstreams[name].instructions)))
    skilled = tuple(name for name in enabled if _may_have_skills(upstreams[name]))
    owners = tuple((name, upstreams[name].principal) for name, _ in parts if upstreams[name].is_personal)
    if configured is not None:
        rules = find_profile(profiles, configured).instructions
        return Introductions(parts, (), rules.max_chars, (("*", True),) if rules.handles else (), owners, skilled)
    found = [
        (specificity(match, position), glob, profile.instructions)
        for position, profile in enumerate(profiles.values())
        for match in profile.match
        if (glob := glob_of(match)) is not None
        and match.user_agent
        is match.model
        is match.client_version
        is match.header
        is None  # recognised by the name alone
    ]
    closest_first = [(glob, rules) for _, glob, rules in sorted(found, reverse=True, key=lambda each: each[0])]
    others = find_profile(profiles, "default").instructions
    limits = tuple((glob, rules.max_chars) for glob, rules in closest_first)
    handles = (*((glob, rules.handles) for glob, rules in closest_first), ("*", others.handles))
    told = handles if any(told for _, told in handles) else ()
    return Introductions(parts, limits, others.max_chars, told, owners, skilled)


def _may_have_skills(upstream: UpstreamPort) -> bool:
    return not upstream.capabilities or has_skills(upstream.capabilities)
