"""Calibrating a connected host from the console: begin, watch, end, as `mcp-gateway calibrate` does."""

import time
from collections.abc import Mapping
from typing import Any

from starlette.requests import Request

from gateway.core.profiles.calibrate_profile import REPORT_TOOL, SHOW_TOOL
from gateway.routing.calibration.wording import WHY_NOT_USED
from gateway.serving.console.console import Console
from gateway.serving.console.submitted import submitted
from gateway.serving.console.views import View

MINUTES = 30
_LONGEST = 200


async def show_calibration(console: Console) -> dict[str, Any]:
    """Return the progress of the calibration: `open`, `host` (null: any), and `hosts` with parts and findings.

    `connected` are the names of hosts that can be calibrated.
    """
    connected = [host["name"] for host in (await console.report())["hosts"] if host["name"]]
    return {
        **console.gateway.calibration.progress(),
        "connected": list(dict.fromkeys(connected)),
        "minutes": MINUTES,
        "tools": [SHOW_TOOL, REPORT_TOOL],
        "why_not_used": WHY_NOT_USED,
    }


async def _progress(console: Console, _: Request) -> Mapping[str, Any]:
    return await show_calibration(console)


async def _begin(console: Console, request: Request) -> Mapping[str, Any]:
    """Offer the tools of the calibration for half an hour: to `host`, a profile or a client's name, or to any."""
    host = (await submitted(request)).line("host")[:_LONGEST]
    console.gateway.calibration.open(time.time() + 60 * MINUTES, host or None)
    return await show_calibration(console)


async def _end(console: Console, _: Request) -> Mapping[str, Any]:
    console.gateway.calibration.close()
    return await show_calibration(console)


VIEWS = (
    View("/calibration", "calibration.html", _progress, "hosts"),
    View("/calibration/begin", "calibration.html", _begin, "hosts", method="POST"),
    View("/calibration/end", "calibration.html", _end, "hosts", method="POST"),
)
