"""Declarations of the calibration tools, as listed to hosts."""

from typing import Any

from gateway.core.profiles.calibrate_profile import PARTS, REPORT_TOOL, SHOW_TOOL

_SAFE = {"readOnlyHint": True, "destructiveHint": False, "idempotentHint": False, "openWorldHint": False}

SHOW: dict[str, Any] = {
    "name": SHOW_TOOL,
    "title": "Calibrate: show a part",
    "description": (
        "Starts or continues the calibration of this gateway, which finds out what this host really shows you. "
        "Call it when the user asks to calibrate the gateway. Each call shows the next of "
        f"{len(PARTS)} parts with codes of 5 digits; its text says what to do then."
    ),
    "inputSchema": {
        "type": "object",
        "properties": {
            "part": {
                "type": "integer",
                "minimum": 1,
                "maximum": len(PARTS),
                "description": "Give this only to see one part again; leave it out to continue.",
            },
        },
        "additionalProperties": False,
    },
    "annotations": {"title": "Calibrate: show a part", **_SAFE},
}

REPORT: dict[str, Any] = {
    "name": REPORT_TOOL,
    "title": "Calibrate: report what you see",
    "description": (
        f"Reports the codes that you could read in what {SHOW_TOOL} showed last. Report only what you really see or "
        "hear: codes are random, and a guessed one counts as not seen. The answer says how to go on."
    ),
    "inputSchema": {
        "type": "object",
        "properties": {
            "codes": {
                "type": "array",
                "items": {"type": "string"},
                "description": "Every code that you could read, 5 digits each, in any order; empty if none.",
            },
            "after_user_message": {
                "type": "boolean",
                "default": False,
                "description": "True only when the user has sent a message since the last part was shown.",
            },
            "model": {"type": "string", "description": "The name of the model that you are, if you know it."},
        },
        "required": ["codes"],
        "additionalProperties": False,
    },
    "annotations": {"title": "Calibrate: report what you see", **_SAFE},
}

DECLARED: tuple[dict[str, Any], ...] = (SHOW, REPORT)
