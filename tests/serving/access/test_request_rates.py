"""Requests over HTTP above a limit are answered with 429, and when to come back."""

import pytest
from starlette.testclient import TestClient

from gateway.config.access_settings import AccessSettings
from gateway.config.http_settings import HttpSettings
from gateway.core.model.grant import Grant, Quota
from gateway.serving.access import Access
from gateway.serving.access import request_rates as rates_module
from gateway.serving.access.request_rates import RequestRates
from gateway.serving.access.tokens import hash_of
from gateway.serving.cluster.local_use import LocalUse
from gateway.serving.databases.local_records import LocalRecords
from gateway.serving.mcp.handshake import Identity
from gateway.serving.mcp.http import http_app
from tests.servers.downstream_service import SampleService

ALL = Grant()


@pytest.mark.anyio
async def test_requests_are_counted_within_any_minute_for_each_principal():
    now = 0.0
    rates = RequestRates(2, lambda: now)
    assert [await rates.wait("alice", ALL, token) for token in ("laptop", "phone", "laptop")] == [0, 0, 60]
    assert await rates.wait("bob", ALL, None) == 0
    now = 20.5
    assert await rates.wait("alice", ALL, "laptop") == 40
    now = 60.0
    assert await rates.wait("alice", ALL, "laptop") == 0


@pytest.mark.anyio
async def test_a_token_may_have_a_limit_of_its_own():
    rates = RequestRates(1, lambda: 0.0)
    busy = Grant(quota=Quota(requests_per_minute=2))
    assert [await rates.wait("alice", busy, "robot") for _ in range(3)] == [0, 0, 60]
    assert await rates.wait("alice", ALL, "laptop") == 0
    assert await RequestRates().wait("alice", ALL, None) == 0


@pytest.mark.anyio
async def test_only_so_many_principals_are_remembered(monkeypatch):
    monkeypatch.setattr(rates_module, "_REMEMBERED", 2)
    rates = RequestRates(1, lambda: 0.0)
    assert [await rates.wait(name, ALL, None) for name in ("a", "b", "c", "c", "a")] == [0, 0, 0, 60, 0]


@pytest.mark.anyio
async def test_replicas_count_together_and_each_for_itself_while_they_cannot(tmp_path):
    records = [LocalRecords(tmp_path / "records") for _ in range(2)]
    rates = [RequestRates(3, lambda: 0.0) for _ in records]
    for rate, one in zip(rates, records, strict=True):
        rate.shared = LocalUse(one, "own", list)
    first, second = rates
    assert [await one.wait("alice", ALL, None) for one in (first, second, first)] == [0, 0, 0]
    assert 0 < await second.wait("alice", ALL, None) <= 60, "at the second it is only the second one"
    assert await second.wait("bob", ALL, None) == 0
    await records[1].close()
    assert [await second.wait("alice", ALL, None) for _ in range(3)] == [0, 0, 60]
    await records[0].close()


@pytest.mark.parametrize("limits", ["principal", "token"])
def test_a_request_too_many_is_told_when_to_come_back(limits):
    token, least = "mcpg_0123456789abcdef", {"requests_per_minute": 1}
    table = {"hash": hash_of(token), **({"limits": least} if limits == "token" else {})}
    settings = {"tokens": {"alice": table}, **({"limits": least} if limits == "principal" else {})}
    access = Access(HttpSettings(), AccessSettings.model_validate(settings))
    refused: list[str] = []
    access.on_refusal = lambda address, fault: refused.append(fault)
    told: list[tuple[str, str | None]] = []
    app = http_app(
        SampleService(),
        HttpSettings(),
        Identity("sample", "1.0"),
        access=access,
        on_too_many=lambda principal, token: told.append((principal, token)),
    )
    known = {"Authorization": f"Bearer {token}"}
    with TestClient(app, base_url="http://127.0.0.1:8484") as client:
        first, second = (client.get("/metrics", headers=known) for _ in range(2))
        assert first.status_code != 429
        assert second.status_code == 429
        assert 0 < int(second.headers["retry-after"]) <= 60
        assert second.json() == {"error": f"too many requests: try again in {second.headers['retry-after']} s"}
        assert client.get("/healthz", headers=known).status_code != 429
        assert client.get("/metrics", headers={"Authorization": "Bearer wrong"}).status_code == 401
        assert client.get("/metrics").status_code == 401
    assert refused == ["wrong"]
    assert told == [("alice", "alice")]
    access.reconfigure(AccessSettings.model_validate({"tokens": {"alice": {"hash": hash_of(token)}}}))
    assert access.rates.limit is None
