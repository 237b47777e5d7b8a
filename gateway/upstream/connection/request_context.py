"""The context of a host's request, resolved once on arrival and passed down unchanged."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from gateway.core.model.caller import Caller
from gateway.core.profiles.profile import Profile
from gateway.telemetry.audit.entry import NOT_AUDITED, AuditEntry
from gateway.upstream.connection.deadlines import ProgressCallback
from gateway.upstream.connection.host_requests import Host

EVERYTHING_AS_IT_IS = Profile(name="passthrough")
"""The profile that changes nothing."""


@dataclass(frozen=True)
class RequestContext:
    """The sender of a request, the profile of its host, and the channel to that host while the request is answered.

    A request keeps its context to the end, even if the settings change meanwhile.
    """

    caller: Caller
    profile: Profile = EVERYTHING_AS_IT_IS
    """The profile to shape the result for: the variant for the caller's model, narrowed to the caller's revision."""
    listed: Profile = EVERYTHING_AS_IT_IS
    """The profile that the tools were listed for: the same for all requests of the host, whatever model they name."""
    host: Host | None = None
    """The host that receives the upstream's requests and notifications meanwhile; None if there is none."""
    on_progress: ProgressCallback | None = None
    is_part: bool = False
    """Whether this request is part of answering another request of the host (to read a link of a result, or to describe
    content with a tool). A host of the modern era could not repeat it with answers, so it is not asked for any."""
    by_model: bool = False
    """Whether a model names the tool to call in an argument (`gateway_call_tool`), so that no host has looked whether
    the tool is for the model."""
    within: str = ""
    """The tool of the gateway's own whose script makes this call, so that the script gets the result, and no model."""
    outputs: Sequence[Any] | None = None
    """The forms of the result that the host has chosen (`core.results.output_variants`); None if it chooses none."""
    audit: AuditEntry = NOT_AUDITED
    """The request's entry in the audit trail."""
