"""Accounts of requests: entries in the audit trail, and counts against the limits of callers."""

import logging
from collections.abc import Mapping
from typing import Any

from gateway.core.model.caller import Caller
from gateway.core.model.grant import Quota
from gateway.core.profiles.profile import Profile
from gateway.errors import TooManyCalls
from gateway.routing.approvals import CallToApprove, Verdict
from gateway.routing.caller_limits import CallerLimits, CountedRequest
from gateway.routing.long_calls.early_answers import LONG_CALL_TOOLS
from gateway.routing.ports import AuditTrailPort
from gateway.routing.replica_port import SharedUse
from gateway.routing.tasks import METHODS as TASK_METHODS
from gateway.telemetry import Telemetry
from gateway.telemetry.audit import NOT_AUDITED, AuditEntry

logger = logging.getLogger(__name__)

AUDITED = frozenset({"tools/call", "resources/read", "prompts/get", *TASK_METHODS})
"""The requests that the audit trail has."""


class RequestAccounts:
    """Begins the entry of each request, and counts it."""

    def __init__(self, audit: AuditTrailPort | None, telemetry: Telemetry, quota: Quota) -> None:
        self._audit = audit
        self._telemetry = telemetry
        self.limits = CallerLimits(quota)
        self.shared_use: SharedUse | None = None
        """Counts together with other replicas."""

    def entry(self, method: str, params: Mapping[str, Any], caller: Caller, profile: Profile) -> AuditEntry:
        """Return the request's entry in the audit trail, to be entered while it runs."""
        if self._audit is None or method not in AUDITED:
            return NOT_AUDITED
        return self._audit.begin(method, params, caller, profile.name)

    async def counted(
        self, method: str, params: Mapping[str, Any], caller: Caller, profile: Profile, *, is_part: bool = False
    ) -> CountedRequest:
        """Count a request against the caller's limits; one too many is logged, as every other call is.

        `is_part`: it is made for another one, which is counted as running already.

        Raises:
            TooManyCalls: the caller's limits allow no more for now.
        """
        try:
            is_wait = params.get("name") in LONG_CALL_TOOLS
            counted = self.limits.begin(method, caller, is_wait=is_wait or is_part)
            return counted if self.shared_use is None or is_wait else await counted.shared(self.shared_use)
        except TooManyCalls as error:
            if method != "tools/call":
                logger.info("%s of %s is refused: %s", method, caller.principal, error.message)
                raise
            with self._telemetry.call(caller, profile.name, str(params.get("name")), params):
                raise

    def note_verdict(self, call: CallToApprove, verdict: Verdict, by: str) -> None:
        """Record what became of a call that waited for the approval of its user."""
        if self._audit is not None:
            self._audit.approval(call.principal, call.upstream, call.tool, verdict, call.rule, by)
