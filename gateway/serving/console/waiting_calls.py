"""Calls that wait for an approval, in the console: as `mcp-gateway approvals` shows them."""

from collections.abc import Mapping
from functools import partial
from typing import Any

from starlette.requests import Request

from gateway.routing.approvals import Verdict
from gateway.serving.console.console import Console
from gateway.serving.console.views import View


async def _waiting(console: Console, _: Request) -> Mapping[str, Any]:
    """Return the calls that wait, `waiting`, the oldest first, and the seconds for which they do, `lasts`."""
    approvals = console.gateway.router.approvals
    waiting = [each.described for each in approvals.listed() if each.verdict is None]
    return {"waiting": waiting, "lasts": approvals.lasts}


async def _settle(verdict: Verdict, console: Console, request: Request) -> Mapping[str, Any]:
    settled = console.gateway.router.approvals.settle(request.path_params["id"], verdict, by="console")
    return {**settled.described, "verdict": verdict}


VIEWS = (
    View("/approvals", "approvals.html", _waiting, "servers"),
    View("/approvals/{id}/approve", "approval_settled.html", partial(_settle, "approved"), "servers", method="POST"),
    View("/approvals/{id}/deny", "approval_settled.html", partial(_settle, "denied"), "servers", method="POST"),
)
