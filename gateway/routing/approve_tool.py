"""The tool `gateway_approve`, for hosts that cannot ask their users but show them each call before it is made.

It exists only with `[policy] approval = "two-step"`: a host that calls tools without showing them would let the model
approve its own calls. Hosts that can ask do not get it: there, a model could overrule its user's refusal.
"""

from typing import Any

from gateway.core.fact_words import plain
from gateway.core.model.json_values import as_object
from gateway.core.own_names import APPROVE_TOOL
from gateway.errors import InvalidRequest
from gateway.routing.approvals import Approvals

APPROVE: dict[str, Any] = {
    "name": APPROVE_TOOL,
    "title": "Approve a call",
    "description": (
        "Approves one call of a tool that the user has to approve first. Call it only after the user has agreed to "
        "this very call. Give the id from the answer of the refused call, and the same tool and arguments; then call "
        "that tool again."
    ),
    "inputSchema": {
        "type": "object",
        "properties": {
            "id": {"type": "string", "description": "The id from the answer of the refused call."},
            "tool": {"type": "string", "description": "The name of the tool that was refused."},
            "arguments": {"type": "object", "description": "The arguments of the refused call, unchanged."},
        },
        "required": ["id", "tool", "arguments"],
        "additionalProperties": False,
    },
    "annotations": {"title": "Approve a call", "readOnlyHint": False, "destructiveHint": True, "openWorldHint": True},
}


def approve(approvals: Approvals, arguments: object, owner: str) -> dict[str, Any]:
    """Approve the call that the arguments name, if it is this host's and they repeat it, and return a result.

    A call that was denied in a terminal stays denied.
    """
    given = as_object(arguments)
    if missing := [name for name in APPROVE["inputSchema"]["required"] if name not in given]:
        return _text(f"Missing: {', '.join(missing)}. Give the id, the tool and the arguments.", is_error=True)
    open_calls = (each for each in approvals.listed() if each.verdict is None)
    waiting = next((each for each in open_calls if each.id == given.get("id")), None)
    call = None if waiting is None else waiting.call
    if waiting is None or call is None or call.owner != owner:
        return _text("No call with this id waits for an approval.", is_error=True)
    if given.get("tool") != call.name or as_object(given.get("arguments")) != call.arguments:
        return _text("The tool or the arguments are not those of that call: repeat both unchanged.", is_error=True)
    try:
        approvals.settle(waiting.id, "approved", by="tool", owner=owner)
    except InvalidRequest as error:
        return _text(str(error), is_error=True)
    return _text(f"Approved, once. Now call {plain(call.name, 200)} again with the same arguments.", is_error=False)


def _text(words: str, *, is_error: bool) -> dict[str, Any]:
    return {"content": [{"type": "text", "text": f"[{words}]"}], "isError": is_error}
