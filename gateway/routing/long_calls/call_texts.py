"""Declarations and sentences about long calls, written for the models that read them."""

from typing import Any

from gateway.core.fact_words import plain
from gateway.core.own_names import CANCEL_TOOL, WAIT_TOOL
from gateway.core.wording import failure_text
from gateway.routing.long_calls.long_call import LongCall, Progress

_CALL = {
    "type": "object",
    "properties": {"call": {"type": "string", "description": 'The call as it was named, for example "c_...".'}},
    "required": ["call"],
    "additionalProperties": False,
}

WAIT: dict[str, Any] = {
    "name": WAIT_TOOL,
    "title": "Wait for a running call",
    "description": (
        "Waits for a tool call that was answered with [still running ... call c_...], and returns its result. If it "
        "takes longer still, the answer says so again: then wait again. The tool itself must not be called again."
    ),
    "inputSchema": _CALL,
    "annotations": {
        "title": "Wait for a running call",
        "readOnlyHint": True,
        "destructiveHint": False,
        "idempotentHint": True,
        "openWorldHint": False,
    },
}

CANCEL: dict[str, Any] = {
    "name": CANCEL_TOOL,
    "title": "Cancel a running call",
    "description": "Ends a tool call that was answered with [still running ... call c_...] and is not needed any more.",
    "inputSchema": _CALL,
    "annotations": {
        "title": "Cancel a running call",
        "readOnlyHint": False,
        "destructiveHint": False,
        "idempotentHint": True,
        "openWorldHint": False,
    },
}


def still_running(call: LongCall) -> str:
    """The answer in place of the result."""
    progress = "" if call.last_progress is None else _progress(call.last_progress)
    asks = "; it has a question, which is asked during the wait" if call.is_asking else ""
    running = f"{plain(call.name, 200)} is still running ({duration_words(call.seconds)}{progress}){asks}"
    return f"[{running}: call {WAIT_TOOL} with call {call.id} for its result, or {CANCEL_TOOL} to end it]"


def status(call: LongCall) -> str:
    """The same, for a host that takes tasks."""
    progress = "" if call.last_progress is None else _progress(call.last_progress)
    return f"still running ({duration_words(call.seconds)}{progress})"


def cancelled(call: LongCall) -> str:
    """The answer of `gateway_cancel`."""
    return f"[{call.id}, a call of {plain(call.name, 200)}, was cancelled after {duration_words(call.seconds)}]"


def already_over(call: LongCall) -> str:
    """The answer of `gateway_cancel` for a call that has ended."""
    return f"[{call.id} had already ended: {WAIT_TOOL} has its result]"


def still_running_elsewhere(call: str) -> str:
    """The answer in place of the result of a call that another replica runs."""
    return f"[{plain(call, 40)} is still running: call {WAIT_TOOL} with call {plain(call, 40)} for its result]"


def runs_elsewhere(call: str) -> str:
    """The answer of `gateway_cancel` for a call that another replica runs."""
    return f"[{plain(call, 40)} goes on: only the session that made it can end it; {WAIT_TOOL} has its result later]"


def over_elsewhere(call: str) -> str:
    """The answer of `gateway_cancel` for a call that has ended at another replica."""
    return f"[{plain(call, 40)} had already ended: {WAIT_TOOL} has its result]"


def call_missing() -> str:
    """The answer to arguments that name no call."""
    return failure_text("it is not said which call", 'give `call` as it was named, for example "c_..."')


def duration_words(seconds: float) -> str:
    """Format a time: `50 s`, `2 min 10 s`, `1 h 5 min`."""
    whole = round(seconds)
    hours, minutes = whole // 3_600, whole // 60 % 60
    parts = ((hours, "h"), (minutes, "min"), (0 if hours else whole % 60, "s"))
    return " ".join(f"{count} {unit}" for count, unit in parts if count) or "0 s"


def _progress(progress: Progress) -> str:
    done, total, message = progress
    said = f", {plain(message, 200)}" if message else ""
    if total is not None and total > 0:
        return f", last progress {min(100.0, 100 * max(0.0, done) / total):.0f}%{said}"
    return f", last progress {done:.6g}{said}" if round(done, 3) > 0 else said
