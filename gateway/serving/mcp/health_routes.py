"""HTTP routes for those who run the gateway: whether it is alive, whether it is ready, and its metrics."""

from collections.abc import Callable

from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, Response
from starlette.routing import BaseRoute, Route

from gateway.serving.access import Identified
from gateway.serving.mcp.cluster_port import ClusterPort
from gateway.serving.mcp.request_caller import IDENTIFIED_SCOPE
from gateway.serving.mcp.security import HEALTH_PATH, READINESS_PATH, refused_response
from gateway.serving.mcp.worker_port import WorkerPort
from gateway.telemetry import Telemetry
from gateway.telemetry.merge_expositions import labelled, merged
from gateway.telemetry.metric_kinds import CONTENT_TYPE

METRICS_PATH = "/metrics"

_FRESH = {"Cache-Control": "no-store"}


def observing(
    telemetry: Telemetry,
    is_stopping: Callable[[], bool] = lambda: False,
    worker: WorkerPort | None = None,
    cluster: ClusterPort | None = None,
) -> list[BaseRoute]:
    """Return the routes `/healthz`, `/readyz` and `/metrics`. `security.Guard` decides who may call them.

    A gateway that `is_stopping` is not ready. Nor is one of several workers before all are; its metrics are those of
    all workers, which `cluster` has.
    """

    async def alive(_: Request) -> Response:
        return PlainTextResponse("ok\n", headers=_FRESH)

    async def readyz(request: Request) -> Response:
        """Answer 200 or 503. The upstreams are named only to those who may see all of them."""
        readiness = telemetry.readiness()
        starting = worker is not None and not worker.all_ready
        ready = readiness.ready and not is_stopping() and not starting
        told: dict[str, object] = {"ready": ready}
        if starting:
            told["starting"] = True
        if readiness.lacks_memory:
            told["reason"] = "memory"
        if is_stopping():
            told["stopping"] = True
        if _may_see_all(request):
            told["upstreams"] = readiness.upstreams
        return JSONResponse(told, 200 if ready else 503, headers=_FRESH)

    async def metrics(request: Request) -> Response:
        if not _may_see_all(request):
            return refused_response(403, "the metrics name every upstream, which this token may not see")
        text = telemetry.metrics.exposition()
        if worker is not None and cluster is not None:
            others = await cluster.asked_of_others(request.scope)
            text = merged([labelled(text, worker.number), *others])
        return Response(text, headers={**_FRESH, "Content-Type": CONTENT_TYPE})

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
