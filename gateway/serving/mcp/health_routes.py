"""HTTP routes for those who run the gateway: whether it is alive, whether it is ready, and its metrics."""

from collections.abc import Callable

from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, Response
from starlette.routing import BaseRoute, Route

from gateway.serving.access import Identified
from gateway.serving.mcp.request_caller import IDENTIFIED_SCOPE
from gateway.serving.mcp.security import HEALTH_PATH, READINESS_PATH, refused_response
from gateway.telemetry import Telemetry
from gateway.telemetry.metric_kinds import CONTENT_TYPE

METRICS_PATH = "/metrics"

_FRESH = {"Cache-Control": "no-store"}


def observing(telemetry: Telemetry, is_stopping: Callable[[], bool] = lambda: False) -> list[BaseRoute]:
    """Return the routes `/healthz`, `/readyz` and `/metrics`. `security.Guard` decides who may call them.

    A gateway that `is_stopping` is not ready.
    """

    async def alive(_: Request) -> Response:
        return PlainTextResponse("ok\n", headers=_FRESH)

    async def readyz(request: Request) -> Response:
        """Answer 200 or 503. The upstreams are named only to those who may see all of them."""
        readiness = telemetry.readiness()
        ready = readiness.ready and not is_stopping()
        told: dict[str, object] = {"ready": ready}
        if is_stopping():
            told["stopping"] = True
        if _may_see_all(request):
            told["upstreams"] = readiness.upstreams
        return JSONResponse(told, 200 if ready else 503, headers=_FRESH)

    async def metrics(request: Request) -> Response:
        if not _may_see_all(request):
            return refused_response(403, "the metrics name every upstream, which this token may not see")
        return Response(telemetry.metrics.exposition(), headers={**_FRESH, "Content-Type": CONTENT_TYPE})

    return [Route(HEALTH_PATH, alive), Route(READINESS_PATH, readyz), Route(METRICS_PATH, metrics)]


def _may_see_all(request: Request) -> bool:
    """Whether whoever asks may see what concerns the gateway as a whole; without a valid token, nobody may.

    A token of the configuration may if no upstream is withheld from it. Whom an authorization server knows reaches
    every upstream unless the configuration says otherwise, so of them only admins may.
    """
    identified = request.scope.get(IDENTIFIED_SCOPE)
    if not isinstance(identified, Identified):
        return False
    return identified.is_admin or (identified.token is not None and identified.grant.reaches_all_upstreams)
