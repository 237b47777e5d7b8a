"""A request as the audit trail has it: what is gathered while it runs, and the record that is made of it."""

import asyncio
from collections.abc import Callable, Mapping
from copy import copy
from time import perf_counter
from types import TracebackType
from typing import TYPE_CHECKING, Any

from gateway.config.secrets import hide
from gateway.core.fact_words import plain
from gateway.core.model.caller import Caller
from gateway.core.model.json_values import as_object
from gateway.errors import (
    ApprovalNeeded,
    AuditUnavailable,
    GatewayError,
    NotAllowed,
    ScopeMissing,
    TooManyCalls,
    UnknownPrompt,
    UnknownResource,
    UnknownTask,
    UnknownTool,
    UpstreamRefused,
)
from gateway.telemetry.audit.digests import Digests, sha256_of_json
from gateway.telemetry.audit.entry import AuditEntry
from gateway.telemetry.audit.mask_arguments import masked
from gateway.telemetry.audit.record_writer import Record, now
from gateway.telemetry.calls import ASKED, INVALID, TOOL_ERROR, asks, outcome_of
from gateway.telemetry.requests import request_id

if TYPE_CHECKING:
    from gateway.telemetry.audit.trail import AuditTrail

_BEYOND_THE_GRANT = (UnknownTool, UnknownResource, UnknownPrompt, UnknownTask)
"""Raised for what does not exist for the caller, whether it exists for others or not."""
_LONGEST_CAUSE = 300


class AuditedRequest(AuditEntry):
    """A request that is audited."""

    def __init__(
        self, trail: "AuditTrail", method: str, params: Mapping[str, Any], caller: Caller, profile: str
    ) -> None:
        self._trail = trail
        self._method = method
        self._params = params
        self._caller = caller
        self._profile = profile
        self._upstream = self._tool = self._audience = ""
        self._schema: Callable[[], Any] = _unknown
        self._verdict = self._rule = ""
        self._from_cache = False
        self._turned_down: str | None = None
        self._returned: Mapping[str, Any] | None = None
        self._shown: Mapping[str, Any] | None = None
        self._request = request_id()
        self._began = perf_counter()

    def routed(
        self, upstream: str, tool: str = "", schema: Callable[[], Any] | None = None, *, audience: str = ""
    ) -> None:
        self._upstream, self._tool, self._audience = upstream, tool, audience
        self._schema = schema or _unknown
        self._verdict = self._verdict or "allow"

    def decided(self, verdict: str, rule: str) -> None:
        self._verdict, self._rule = verdict, rule

    def returned(self, result: Mapping[str, Any]) -> None:
        self._returned = result

    def turned_down(self, cause: str) -> None:
        self._turned_down = plain(cause, _LONGEST_CAUSE)

    def answered_from_cache(self) -> None:
        self._from_cache = True

    def shown(self, result: Mapping[str, Any]) -> None:
        self._shown = result

    def follow_up(self) -> AuditEntry:
        entry = copy(self)
        entry._returned = entry._shown = None
        return entry

    async def __aenter__(self) -> AuditEntry:
        await self._trail.admit()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if isinstance(error, TooManyCalls):
            self.decided("deny", "limits")
        elif isinstance(error, ScopeMissing):
            self.decided("deny", "scopes")
        elif isinstance(error, _BEYOND_THE_GRANT):
            self.decided("deny", "grant")
        elif isinstance(error, NotAllowed):
            self.decided("approve" if isinstance(error, ApprovalNeeded) else "deny", error.rule or "pins")
        moment, seconds = now(), round(perf_counter() - self._began, 4)
        who = self._trail.about_upstream(self._upstream)
        outcome, cause = _outcome(error, self._shown, self._turned_down)

        def record() -> Record:
            about = self._about(who())
            ended = {"outcome": outcome, "cause": cause and hide(cause, self._trail.secrets), "seconds": seconds}
            whole = {"time": moment, "event": self._method, **about, **ended, **self._content()}
            return {key: value for key, value in whole.items() if value not in (None, "", {})}

        if isinstance(error, asyncio.CancelledError):
            self._trail.put_at_once(record)
            return
        try:
            await self._trail.put(record)
        except AuditUnavailable as unavailable:
            if error is None:  # the model must not think that nothing was done
                what = "the request was carried out, but its result is withheld: the audit trail cannot be written"
                raise AuditUnavailable(what, remedy=unavailable.remedy) from None

    def _about(self, identity: Mapping[str, Any]) -> Record:
        caller = self._caller
        host = {
            "name": plain(caller.client_name or "", 100),
            "version": plain(caller.client_version or "", 100),
            "agent": plain(caller.user_agent or "", 200),
            "profile": self._profile,
            "revision": caller.revision,
        }
        return {
            "request": self._request,
            "principal": caller.principal,
            "token": caller.token,
            "host": {key: value for key, value in host.items() if value},
            "upstream": self._upstream,
            "server": identity,
            **self._asked_for(),
            "audience": self._audience,
            "decision": self._verdict,
            "rule": self._rule,
        }

    def _asked_for(self) -> Record:
        match self._method:
            case "tools/call":
                return {"tool": self._tool or plain(str(self._params.get("name")), 200)}
            case "prompts/get":
                return {"prompt": plain(str(self._params.get("name")), 200)}
            case "resources/read":
                uri = str(self._params.get("uri")).partition("?")[0]
                return {"resource": hide(plain(uri, 300), self._trail.secrets)}
            case _:
                return {"tool": self._tool}

    def _content(self) -> Record:
        """Return the hashes of what was asked, returned and shown."""
        digests, parts = Digests(), Record()
        if (rule := self._trail.argument_rule(self._upstream, self._tool)) != "none":
            arguments = self._arguments()
            hashed = sha256_of_json(arguments)
            parts |= {"arguments_bytes": hashed["bytes"], "arguments_sha256": hashed["sha256"]}
            if rule == "full" and self._method != "resources/read":  # a URI is shown without its query, which it has
                parts["arguments"] = masked(arguments, self._schema(), self._trail.secrets)
        if self._returned is not None and self._turned_down is None:
            parts["returned"] = digests.of_result(self._returned)
            parts["from_cache"] = self._from_cache or None
        if self._shown is not None:
            parts["shown"] = parts.get("returned") if self._shown is self._returned else digests.of_result(self._shown)
        return parts

    def _arguments(self) -> Any:
        if self._method == "tools/call":
            return self._params.get("arguments") or {}
        return {key: value for key, value in self._params.items() if key != "_meta"}


def _outcome(
    error: BaseException | None, shown: Mapping[str, Any] | None, turned_down: str | None
) -> tuple[str, str | None]:
    if error is None:
        if asks(shown):
            return ASKED, None
        if as_object(shown).get("isError") is not True:
            return "ok", None
        return (TOOL_ERROR, None) if turned_down is None else (INVALID, turned_down)
    outcome, error = outcome_of(error)
    if isinstance(error, UpstreamRefused):  # the words are the upstream's own, so they may contain anything
        return outcome, f"error {error.code}"
    return outcome, plain(error.logged, _LONGEST_CAUSE) if isinstance(error, GatewayError) else type(error).__name__


def _unknown() -> None:
    """The schema of what has none."""
