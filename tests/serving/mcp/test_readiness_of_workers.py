"""`/readyz` of one of several workers, and the metrics of those that cannot be asked."""

from dataclasses import dataclass

import pytest
from starlette.applications import Starlette
from starlette.testclient import TestClient

from gateway.serving.mcp.health_routes import observing
from gateway.telemetry import Telemetry


@dataclass
class OneOfTwo:
    number: int = 1
    all_ready: bool = False


def test_it_is_not_ready_before_all_workers_have_been() -> None:
    worker = OneOfTwo()
    with TestClient(Starlette(routes=observing(Telemetry(), worker=worker))) as client:
        answer = client.get("/readyz")
        assert (answer.status_code, answer.json()) == (503, {"ready": False, "starting": True})
        worker.all_ready = True
        answer = client.get("/readyz")
        assert (answer.status_code, answer.json()) == (200, {"ready": True})
        assert client.get("/healthz").status_code == 200


@pytest.mark.parametrize("is_stopping", [True, False])
def test_one_alone_is_ready_unless_it_stops(is_stopping: bool) -> None:
    with TestClient(Starlette(routes=observing(Telemetry(), lambda: is_stopping))) as client:
        assert client.get("/readyz").status_code == (503 if is_stopping else 200)
