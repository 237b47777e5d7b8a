"""The context of a host's request, resolved once on arrival and passed down unchanged."""

from dataclasses import dataclass

from gateway.core.model.caller import Caller
from gateway.core.profiles.profile import Profile
from gateway.upstream.connection.calls import ProgressCallback
from gateway.upstream.connection.host_requests import Host

EVERYTHING_AS_IT_IS = Profile(name="passthrough")
"""The profile that changes nothing."""


@dataclass(frozen=True)
class RequestContext:
    """Who sends a request, what its host shows, and how to reach that host while the request is being answered.

    A request keeps its context to the end, even if the settings change meanwhile.
    """

    caller: Caller
    profile: Profile = EVERYTHING_AS_IT_IS
    """The profile to shape the result for: the variant for the caller's model, narrowed to the caller's revision."""
    listed: Profile = EVERYTHING_AS_IT_IS
    """The profile that the tools were listed for: the same for all requests of the host, whatever model they name."""
    host: Host | None = None
    """The host that the upstream may send requests and notifications to meanwhile; None: nobody."""
    on_progress: ProgressCallback | None = None
    is_part: bool = False
    """Whether this request is part of answering another request of the host (a link of a result is read, a tool
    describes). A stateless host could not repeat it with answers, so it is not asked for any."""
