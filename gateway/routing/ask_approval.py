"""Ask the user before a call: in the host by an elicitation, or else by a result that says how to approve it."""

import math
from collections.abc import Mapping
from typing import Any, Literal

import anyio

from gateway.core.fact_words import plain
from gateway.core.model.approval_mark import MARK, ApprovalMark, answers_approvals
from gateway.core.model.caller import Caller
from gateway.core.model.json_values import as_object
from gateway.core.model.texts import visible
from gateway.core.own_names import APPROVAL_ANSWER, APPROVAL_NO, APPROVAL_YES, APPROVE_TOOL
from gateway.errors import ApprovalNeeded, HostRefused, NotAllowed
from gateway.routing.approvals import Approvals, CallToApprove
from gateway.routing.around_upstream import AroundUpstream
from gateway.upstream.bridging.bridge import BridgedUpstream
from gateway.upstream.bridging.input_requests import INPUT_REQUIRED, can_answer
from gateway.upstream.connection.deadlines import CallLimits
from gateway.upstream.connection.host_requests import ELICITATION, Host
from gateway.upstream.connection.request_context import RequestContext

ApprovalWay = Literal["ask", "terminal", "two-step"]

_CHOICE = {"type": "string", "title": "Allow this call?", "enum": [APPROVAL_NO, APPROVAL_YES]}
_FORM: Mapping[str, Any] = {"type": "object", "properties": {APPROVAL_ANSWER: _CHOICE}, "required": [APPROVAL_ANSWER]}
"""The first value is the refusal, for hosts that fill in the first one by themselves."""


class AskFirst(AroundUpstream):
    """Wraps an upstream for one call, which it passes on only with the approval of the user.

    It is below retries and suspension, so a modern host is asked in the same way as an upstream would ask it.
    """

    def __init__(self, upstream: BridgedUpstream, call: CallToApprove, approvals: Approvals, way: ApprovalWay) -> None:
        super().__init__(upstream)
        self._call = call
        self._approvals = approvals
        self._way = way
        self._is_approved = False

    async def request(
        self,
        method: str,
        params: Mapping[str, Any],
        context: RequestContext,
        timeout: CallLimits | None = None,
    ) -> dict[str, Any]:
        """Return the upstream's raw result.

        Raises:
            NotAllowed: the user has not approved the call.
        """
        if not (self._is_approved or self._goes_on(params, context)):
            await self._ask(context)
            self._is_approved = True
        result = await self._upstream.request(method, params, context, timeout)
        if context.caller.is_modern and result.get("resultType") == INPUT_REQUIRED and "requestState" in result:
            self._approvals.expect_round(self._call, result["requestState"])
        return result

    def _goes_on(self, params: Mapping[str, Any], context: RequestContext) -> bool:
        """Whether this is a further round of a call that was approved: the upstream has asked for input meanwhile.

        The bridge has verified that the gateway issued this state to this caller, for this tool with these arguments.
        Each state counts once, or one approval would let any number of calls begin in the middle.
        """
        state = params.get("requestState")
        if context.host is None or not context.caller.is_modern or state is None:
            return False
        return self._approvals.take_round(self._call, state)

    async def _ask(self, context: RequestContext) -> None:
        verdict = self._approvals.take(self._call)
        host = context.host
        if verdict is None and self._approvals.ask_here is not None:
            verdict = await self._approvals.ask_here(self._call)
            self._approvals.answered(self._call, verdict, "program")
        elif verdict is None and self._way != "terminal" and host is not None and can_ask(context.caller):
            verdict = await self._asked(host, marked=answers_approvals(context.caller))
            if verdict is not None:
                self._approvals.answered(self._call, verdict)
        if verdict is None:
            raise self._not_yet(context.caller)
        if verdict == "denied":
            words = f"{self._named} was not called: the user declined it"
            raise NotAllowed(words, rule=self._call.rule, remedy="do not call it again unless the user asks for it")

    async def _asked(self, host: Host, *, marked: bool) -> Literal["approved", "denied"] | None:
        """Return the user's decision; None if the host was not able to ask. `marked`: the host is a program."""
        params: dict[str, Any] = {"message": self._question, "requestedSchema": _FORM}
        if marked:
            params["_meta"] = {MARK: self._mark}
        limit = math.inf if host.bounds_waiting else self.settings.timeout.answer
        try:
            with anyio.fail_after(limit):
                answer = await host.ask(ELICITATION, params)
        except (HostRefused, TimeoutError):
            return None
        match answer.get("action"):
            case "accept":
                return "approved" if as_object(answer.get("content")).get(APPROVAL_ANSWER) == APPROVAL_YES else "denied"
            case "decline":
                return "denied"
            case _:  # closed without an answer, or never shown
                return None

    @property
    def _mark(self) -> ApprovalMark:
        call = self._call
        about = {"name": call.name, "upstream": call.upstream, "tool": call.tool, "arguments": dict(call.arguments)}
        return ApprovalMark(about, rule=call.rule, reason=call.reason)

    @property
    def _named(self) -> str:
        return plain(self._call.name, 200)

    @property
    def _why(self) -> str:
        because = f": {plain(self._call.reason)}" if self._call.reason else ""
        return f"the rule {self._call.rule!r} of the gateway{because}"

    @property
    def _question(self) -> str:
        return (
            f"Call the tool {plain(self._call.tool, 200)} of {self._call.upstream}?\n\n"
            f"Arguments: {visible(self._call.shown_arguments)}\n\nAsked because of {self._why}"
        )

    def _not_yet(self, caller: Caller) -> ApprovalNeeded:
        words = f"{self._named} was not called: it needs the user's approval, because of {self._why}"
        if (here := self._approvals.remedy_here) is not None:
            return ApprovalNeeded(words, rule=self._call.rule, remedy=here)
        waiting = self._approvals.wait_for(self._call)
        if self._way == "two-step" and not can_ask(caller):
            then = f'call {APPROVE_TOOL} with id "{waiting.id}", this tool and these arguments, and then the tool again'
            remedy = f"ask the user; if they agree, {then}"
        else:
            then = "when they have, call it again with the same arguments"
            remedy = f"ask the user to run `mcp-gateway approvals approve {waiting.id}`; {then}"
        return ApprovalNeeded(words, rule=self._call.rule, remedy=remedy)


def can_ask(caller: Caller) -> bool:
    """Whether the host can ask its user: then nothing but the user's own answer counts there."""
    return can_answer(caller, ELICITATION, {}) or answers_approvals(caller)
