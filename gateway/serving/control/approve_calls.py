"""Calls that wait for an approval, at the command line's request: list, approve, or deny them."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from gateway.errors import InvalidRequest

if TYPE_CHECKING:
    from gateway.routing.approvals import Approvals


def answer_approvals(approvals: "Approvals", request: Mapping[str, Any]) -> dict[str, Any]:
    """List the calls that wait (`ls`), or `approve` or `deny` the one with this `id`.

    Raises InvalidRequest if there is none, or the action is another.
    """
    match request.get("action"):
        case "ls":
            return {"waiting": [waiting.described for waiting in approvals.listed() if waiting.verdict is None]}
        case "approve":
            return approvals.settle(str(request.get("id")), "approved").described
        case "deny":
            return approvals.settle(str(request.get("id")), "denied").described
        case _:
            raise InvalidRequest("approvals needs an action: ls, approve or deny")
