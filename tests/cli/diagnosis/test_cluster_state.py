"""What `doctor` says of what replicas share, on a real Redis."""

from collections.abc import Mapping
from typing import Any

import pytest

from gateway.cli.diagnosis.check_context import CheckContext
from gateway.cli.diagnosis.cluster_state import check_cluster
from gateway.config.schema import Settings
from tests.servers import redis_server
from tests.servers.redis_server import RedisServer

pytestmark = pytest.mark.anyio

SHARED = {"url": "s3://bucket/content?region=eu-central-1", "key": "k" * 32}


async def found(url: str | None, store: Mapping[str, Any] = SHARED) -> list[tuple[str, str]]:
    settings = Settings.model_validate({"cluster": {"url": url}, "store": store})
    findings = await check_cluster(CheckContext(settings, None, {}, {}))
    for finding in findings:
        assert redis_server.PASSWORD.replace(" ", "%20") not in str(finding)
    return [(finding.level, finding.text) for finding in findings]


async def test_without_a_cluster_there_is_nothing_to_say() -> None:
    assert await found(None) == []


async def test_a_redis_that_answers_and_a_shared_store_are_all_that_is_needed(redis: RedisServer) -> None:
    ((level, text),) = await found(redis.url)
    assert level == "ok"
    assert "replicas share Redis" in text


async def test_a_redis_that_does_not_answer_is_a_problem(redis: RedisServer) -> None:
    redis.stop()
    ((level, text),) = await found(redis.url)
    assert level == "problem"
    assert "cannot be reached" in text


@pytest.mark.parametrize("store", [{}, {"url": SHARED["url"]}])
async def test_a_store_that_is_not_shared_is_a_warning(redis: RedisServer, store: Mapping[str, Any]) -> None:
    levels = [level for level, _ in await found(redis.url, store)]
    assert levels == ["ok", "warning"]
