"""What `doctor` says of the state that gateways share: on a real Redis, a cluster of them, and a real Postgres."""

from collections.abc import Mapping

import psycopg
import pytest
import redis as client_of_redis

from gateway.cli.diagnosis import authorization_state
from gateway.cli.diagnosis.authorization_state import check_state
from gateway.cli.diagnosis.check_context import CheckContext
from gateway.config.schema import Settings
from tests.servers import postgres_server, redis_server
from tests.servers.postgres_server import PostgresDatabaseOfTest
from tests.servers.redis_server import RedisCluster, RedisServer

pytestmark = pytest.mark.anyio

PEOPLE = {"alice": {"hash": f"scrypt:32768:{'s' * 22}:{'h' * 43}"}}


async def found(state: str | None) -> Mapping[str, tuple[str, str | None]]:
    """The findings: level and remedy by text."""
    settings = Settings.model_validate({"access": {"people": PEOPLE, "authorization_server": {"state": state}}})
    findings = await check_state(CheckContext(settings, None, {}, {}))
    for finding in findings:
        for password in (redis_server.PASSWORD, postgres_server.PASSWORD):
            assert password not in str(finding)
            assert password.replace(" ", "%20") not in str(finding)
    return {finding.text: (finding.level, finding.remedy) for finding in findings}


def texts(findings: Mapping[str, tuple[str, str | None]], level: str) -> list[str]:
    return [text for text, (each, _) in findings.items() if each == level]


async def test_without_a_shared_state_there_is_nothing_to_say() -> None:
    assert await found(None) == {}
    assert await check_state(CheckContext(Settings(), None, {}, {})) == []


async def test_a_redis_that_loses_things_is_told_with_remedies(redis: RedisServer) -> None:
    with client_of_redis.Redis.from_url(redis.url) as client:
        client.config_set("appendonly", "yes")
        findings = await found(redis.url)
        [fine] = texts(findings, "ok")
        assert fine.startswith("its state is kept in Redis ")
        assert texts(findings, "warning") == texts(findings, "problem") == []
        client.config_set("appendonly", "no")
        client.config_set("maxmemory-policy", "allkeys-lru")
    findings = await found(redis.url)
    evicts, forgets = texts(findings, "warning")
    assert "allkeys-lru" in evicts
    assert "noeviction" in (findings[evicts][1] or "")
    assert "appendonly yes" in (findings[forgets][1] or "")


async def test_a_redis_that_is_away_is_a_problem(redis: RedisServer) -> None:
    wrong = await found(redis.url.replace("redis://:", "redis://:wrong"))
    redis.stop()
    away = await found(redis.url)
    for findings in (wrong, away):
        [problem] = texts(findings, "problem")
        assert "cannot be reached in Redis" in problem


async def test_a_cluster_is_looked_at_where_the_keys_are(redis_cluster: RedisCluster) -> None:
    findings = await found(redis_cluster.url)
    assert len(texts(findings, "ok")) == 1
    assert texts(findings, "problem") == []
    redis_cluster.stop()
    assert len(texts(await found(redis_cluster.url), "problem")) == 1


async def test_a_network_without_tls_is_told(
    redis: RedisServer, postgres: PostgresDatabaseOfTest, monkeypatch: pytest.MonkeyPatch
) -> None:
    def is_elsewhere(host: str) -> bool:
        return False

    monkeypatch.setattr(authorization_state, "is_loopback", is_elsewhere)
    for url, remedy in ((redis.url, "rediss://"), (postgres.url, "sslmode=verify-full")):
        findings = await found(url)
        [warning] = [text for text in texts(findings, "warning") if "without TLS" in text]
        assert remedy in (findings[warning][1] or "")


async def test_a_postgres_is_examined(postgres: PostgresDatabaseOfTest) -> None:
    findings = await found(postgres.url)
    [fine] = texts(findings, "ok")
    assert fine.startswith("its state is kept in Postgres ")
    [careless] = texts(findings, "warning")  # as the tests' server is
    assert "fsync" in careless
    with psycopg.connect(postgres.url) as connection:  # looked at, and left as it was
        assert connection.execute("SELECT to_regnamespace('mcp_gateway_authorization')").fetchone() == (None,)
    postgres.server.execute(f"ALTER DATABASE {postgres.name} OWNER TO owner")
    findings = await found(postgres.url)
    [problem] = texts(findings, "problem")
    assert "may not create the schema" in problem
    assert "GRANT CREATE" in (findings[problem][1] or "")


async def test_a_postgres_that_is_away_is_a_problem(postgres: PostgresDatabaseOfTest) -> None:
    wrong = await found(postgres.url.replace(":a%20password", ":wrong"))
    postgres.server.stop()
    away = await found(postgres.url)
    for findings in (wrong, away):
        [problem] = texts(findings, "problem")
        assert "cannot be reached in Postgres" in problem


@pytest.mark.parametrize("url", ["postgresql://u:secret@h/x?nonsense=1", "redis://:secret@127.0.0.1:port"])
async def test_what_is_no_url_is_a_problem_that_names_no_password(url: str) -> None:
    findings = await found(url)
    [problem] = texts(findings, "problem")
    assert "is not the URL" in problem
    assert "secret" not in str(findings)
