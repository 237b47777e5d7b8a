"""HTTP routes for those who run the gateway: whether it is alive, whether it is ready, and its metrics."""

from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, Response
from starlette.routing import BaseRoute, Route

from gateway.content.links.base_url import PRINCIPAL_SCOPE
from gateway.serving.mcp.security import HEALTH_PATH, READINESS_PATH
from gateway.telemetry import Telemetry
from gateway.telemetry.metric_kinds import CONTENT_TYPE

METRICS_PATH = "/metrics"

_FRESH = {"Cache-Control": "no-store"}


def observing(telemetry: Telemetry) -> list[BaseRoute]:
    """Return the routes `/healthz`, `/readyz` and `/metrics`. `security.Guard` decides who may call them."""

    async def alive(_: Request) -> Response:
        return PlainTextResponse("ok\n", headers=_FRESH)

    async def ready(request: Request) -> Response:
        """Answer 200 or 503. The upstreams are named only to callers that may use their tools."""
        readiness = telemetry.readiness()
        told: dict[str, object] = {"ready": readiness.ready}
        if PRINCIPAL_SCOPE in request.scope:
            told["upstreams"] = readiness.upstreams
        return JSONResponse(told, 200 if readiness.ready else 503, headers=_FRESH)

    async def metrics(_: Request) -> Response:
        return Response(telemetry.metrics.exposition(), headers={**_FRESH, "Content-Type": CONTENT_TYPE})

    return [Route(HEALTH_PATH, alive), Route(READINESS_PATH, ready), Route(METRICS_PATH, metrics)]
