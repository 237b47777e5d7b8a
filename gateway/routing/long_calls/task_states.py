"""Long calls as tasks (the extension of 2026-07-28), for hosts that take them.

https://modelcontextprotocol.io/seps/2663-tasks-extension
"""

from typing import Any

from gateway.core.model.caller import Caller
from gateway.core.model.json_values import as_object
from gateway.core.model.wire import INVALID_PARAMS
from gateway.errors import InvalidRequest, ProfileError, UpstreamRefused
from gateway.routing.long_calls.call_texts import status
from gateway.routing.long_calls.long_call import LongCall
from gateway.routing.tasks import TASK
from gateway.upstream.connection.client_identity import TASKS

POLL_MS = 2_000
"""How often a host may ask, in milliseconds."""


def takes_tasks(caller: Caller) -> bool:
    """Whether a call of this host may be answered with a task."""
    return caller.is_modern and TASKS in as_object(caller.capabilities.get("extensions"))


def as_task(call: LongCall, lasts: float) -> dict[str, Any]:
    """Return the result of `tools/call` that says that the call is a task. `lasts`: seconds for which it is kept."""
    return {"resultType": TASK, **_facts(call, lasts), "status": "working", "statusMessage": status(call)}


def task_state(call: LongCall, lasts: float) -> dict[str, Any]:
    """Return the result of `tasks/get`."""
    state = _facts(call, lasts)
    if not call.is_over:
        return {**state, "status": "working", "statusMessage": status(call)}
    if call.asks:
        return {**state, "status": "input_required", "inputRequests": (call.result or {}).get("inputRequests", {})}
    if call.result is not None:
        return {**state, "status": "completed", "result": call.result}
    if isinstance(call.error, UpstreamRefused):
        data = {} if call.error.data is None else {"data": call.error.data}
        return {
            **state,
            "status": "failed",
            "error": {"code": call.error.code, "message": call.error.wire_message, **data},
        }
    if isinstance(call.error, (InvalidRequest, ProfileError)):
        return {**state, "status": "failed", "error": {"code": INVALID_PARAMS, "message": str(call.error)}}
    # The same as for a call itself: the model reads why it failed.
    words = {"content": [{"type": "text", "text": str(call.error)}], "isError": True}
    return {**state, "status": "completed", "result": words}


def _facts(call: LongCall, lasts: float) -> dict[str, Any]:
    return {
        "taskId": call.id,
        "createdAt": call.created.isoformat(timespec="seconds"),
        "lastUpdatedAt": call.changed.isoformat(timespec="seconds"),
        "ttlMs": round((call.seconds + lasts) * 1_000),
        "pollIntervalMs": POLL_MS,
    }
