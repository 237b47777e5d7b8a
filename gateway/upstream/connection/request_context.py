"""One request of a host, resolved once where it arrives, and handed down as it is."""

from dataclasses import dataclass

from gateway.core.model.caller import Caller
from gateway.core.profiles.profile import Profile
from gateway.upstream.connection.calls import ProgressCallback
from gateway.upstream.connection.host_requests import Host

EVERYTHING_AS_IT_IS = Profile(name="passthrough")
"""The profile that changes nothing."""


@dataclass(frozen=True)
class RequestContext:
    """Who sends a request, what its host shows, and how that host is reached while the request is being answered.

    A request keeps its context to the end, even if the settings change meanwhile.
    """

    caller: Caller
    profile: Profile = EVERYTHING_AS_IT_IS
    """By which the result is shaped: narrowed to the caller's revision, the variant for the caller's model."""
    listed: Profile = EVERYTHING_AS_IT_IS
    """By which the host was offered its tools: the same for all its requests, whichever model each of them names."""
    host: Host | None = None
    """Whom the upstream may ask and tell something meanwhile; None: nobody."""
    on_progress: ProgressCallback | None = None
    is_part: bool = False
    """Whether this is sent on the way to the answer to another request of the host (a link of a result is read, a tool
    describes): then a stateless host could not repeat it with answers, and is not asked."""
