"""A program in front of a running gateway, which asks it about approvals: `gateway.connect(on_approval=...)`."""

from collections.abc import Mapping
from typing import Any

from gateway.agents.approval import AskByProgram
from gateway.core.fact_words import plain
from gateway.core.model.approval_mark import MARK
from gateway.core.model.json_values import as_object, is_object
from gateway.core.model.wire import METHOD_NOT_FOUND
from gateway.core.own_names import APPROVAL_ANSWER, APPROVAL_NO, APPROVAL_YES
from gateway.errors import HostRefused, NotAllowed
from gateway.routing.approvals import CallToApprove
from gateway.upstream.connection.host_requests import ELICITATION


class ApprovalAnswers:
    """The host in front of one call: it answers the gateway's questions about approvals, and nothing else.

    `error` is why the call was not approved, if it was asked about: it describes the call's end better than the
    gateway's answer, which does not know what went wrong in this program.
    """

    bounds_waiting = False
    party = "this program"
    connection = None

    def __init__(self, ask: AskByProgram) -> None:
        self._ask = ask
        self.error: NotAllowed | None = None

    async def ask(self, method: str, params: Mapping[str, Any]) -> dict[str, Any]:
        """Return the decision as an elicitation's result. Raises HostRefused for other requests."""
        mark = as_object(params.get("_meta")).get(MARK)
        call = _call_of(as_object(mark))
        if method != ELICITATION or call is None:
            raise HostRefused(METHOD_NOT_FOUND, f"this program does not answer {method}, except for approvals")
        try:
            verdict = await self._ask(call)
        except NotAllowed as error:
            self.error = error
            return {"action": "decline"}
        if verdict == "denied":
            words = f"{plain(call.name, 200)} was not called: the user declined it"
            remedy = "do not call it again unless the user asks for it"
            self.error = NotAllowed(words, rule=call.rule, remedy=remedy)
        return {
            "action": "accept",
            "content": {APPROVAL_ANSWER: APPROVAL_YES if verdict == "approved" else APPROVAL_NO},
        }

    async def tell(self, method: str, params: Mapping[str, Any]) -> None:
        """Ignore notifications: a toolset has no use for them."""

    async def let_go(self) -> None:
        """Do nothing: the connection resumes its streams itself."""


def _call_of(mark: Mapping[str, Any]) -> CallToApprove | None:
    """Return the call that a mark describes; None if it describes none."""
    words = [mark.get(key) for key in ("name", "upstream", "tool", "rule", "reason")]
    arguments = mark.get("arguments")
    if not is_object(arguments) or not all(isinstance(word, str) for word in words):
        return None
    name, upstream, tool, rule, reason = map(str, words)
    return CallToApprove("", "", "", name, upstream, tool, arguments, rule, reason)
