"""Long calls as tasks (the extension of 2026-07-28), for hosts that take them.

https://modelcontextprotocol.io/seps/2663-tasks-extension
"""

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from gateway.core.model.caller import Caller
from gateway.core.model.json_values import as_object
from gateway.core.model.wire import INVALID_PARAMS, text_result
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
    return ended_state(state, call.result, call.error)


def ended_state(state: Mapping[str, Any], result: Mapping[str, Any] | None, error: Exception | None) -> dict[str, Any]:
    """Return the result of `tasks/get` for a call that has ended; `state` has its times."""
    if result is not None:
        return {**state, "status": "completed", "result": result}
    if isinstance(error, UpstreamRefused):
        return {**state, "status": "failed", "error": dict(error.wire())}
    if isinstance(error, (InvalidRequest, ProfileError)):
        return {**state, "status": "failed", "error": {"code": INVALID_PARAMS, "message": str(error)}}
    # The same as for a call itself: the model reads why it failed.
    words = text_result(str(error), is_error=True)
    return {**state, "status": "completed", "result": words}


def task_times(call: str, times: tuple[str, str] | None, seconds: float) -> dict[str, Any]:
    """Return what is said of every task: its times (created, changed; None: not known), kept for so long."""
    now = datetime.now(UTC).isoformat(timespec="seconds")
    created, changed = times or (now, now)
    return {
        "taskId": call,
        "createdAt": created,
        "lastUpdatedAt": changed,
        "ttlMs": round(seconds * 1_000),
        "pollIntervalMs": POLL_MS,
    }


def _facts(call: LongCall, lasts: float) -> dict[str, Any]:
    times = call.created.isoformat(timespec="seconds"), call.changed.isoformat(timespec="seconds")
    return task_times(call.id, times, call.seconds + lasts)
