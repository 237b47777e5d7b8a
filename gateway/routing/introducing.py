"""What the upstreams say to a model about themselves, and how much of it each host keeps."""

from collections.abc import Mapping

from gateway.core.instructions import Introductions, part
from gateway.core.matching import find, glob_of, specificity
from gateway.core.model.profile import Profile
from gateway.routing.ports import TheUpstreams
from gateway.upstream import UpstreamState


def introductions(upstreams: TheUpstreams, profiles: Mapping[str, Profile], configured: str | None) -> Introductions:
    """Of all upstreams that are not disabled, as last known. `configured` is the profile set for every host, if any.

    A host is known by its name only: before it has said more, it is told.
    """
    enabled = [name for name in upstreams if upstreams[name].state is not UpstreamState.DISABLED]
    parts = tuple((name, text) for name in enabled if (text := part(upstreams[name].instructions)))
    if configured is not None:
        return Introductions(parts, (), find(profiles, configured).instructions.max_chars)
    found = [
        (specificity(match, position), glob, profile.instructions.max_chars)
        for position, profile in enumerate(profiles.values())
        for match in profile.match
        if (glob := glob_of(match)) is not None and match.user_agent is None
    ]
    limits = tuple((glob, limit) for _, glob, limit in sorted(found, reverse=True, key=lambda each: each[0]))
    return Introductions(parts, limits, find(profiles, "default").instructions.max_chars)
