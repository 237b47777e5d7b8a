"""The contract of the state of the authorization server, for SQLite, a real Redis and a real Postgres alike."""

import socket
import sqlite3
import struct
import sys
import threading
from collections.abc import AsyncGenerator
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import anyio
import psycopg
import pytest
from mcp.server.auth.provider import RegistrationError

from gateway.errors import ConfigError, StateUnavailable
from gateway.serving.authorization import postgres_database
from gateway.serving.authorization.approvals import MOST_OF_ONE, Approval, Code, IssuedTokens, Replayed, Token
from gateway.serving.authorization.clients import Client
from gateway.serving.authorization.postgres_database import PostgresDatabase
from gateway.serving.authorization.redis_state import RedisState
from gateway.serving.authorization.sql_database import STEPS, Transaction
from gateway.serving.authorization.sql_state import SqlState
from gateway.serving.authorization.sqlite_database import SqliteDatabase
from gateway.serving.authorization.state import State
from tests.servers import postgres_server
from tests.servers.postgres_server import PostgresDatabaseOfTest
from tests.servers.redis_server import PASSWORD, RedisCluster, RedisServer

pytestmark = pytest.mark.anyio

PASSWORDS = (postgres_server.PASSWORD, postgres_server.PASSWORD.replace(" ", "%20"))
NOW = 1_800_000_000.0
DAY = 86_400.0
REDIRECT = "https://host.example/callback"


def client(name: str = "client", secret: str | None = None) -> Client:
    return Client(name, "Some Host", (REDIRECT, "http://127.0.0.1/x"), secret)


def approval(name: str = "one", **changed: Any) -> Approval:
    where = ("client", "Some Host", "host.example", "alice", "passphrase", "https://tools.example.com/mcp", "mcp more")
    return replace(Approval(name, *where, NOW, NOW, NOW + 90 * DAY), **changed)


@pytest.fixture(params=["sqlite", "redis", "postgres"])
async def states(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncGenerator[tuple[State, State]]:
    """The state, as two gateways have it open."""
    states: list[State]
    if request.param == "redis":
        server: RedisServer = request.getfixturevalue("redis")
        states = [RedisState(server.url) for _ in range(2)]
    elif request.param == "postgres":
        database: PostgresDatabaseOfTest = request.getfixturevalue("postgres")
        states = [SqlState(PostgresDatabase(database.url)) for _ in range(2)]
    else:
        states = [SqlState(SqliteDatabase(tmp_path / "state.sqlite3")) for _ in range(2)]
    for state in states:
        state.check()
    yield states[0], states[1]
    for state in states:
        await state.close()


@pytest.fixture
async def state(states: tuple[State, State]) -> State:
    return states[0]


async def approved(state: State, name: str = "one", **changed: Any) -> str:
    return await state.approve(approval(name, **changed), REDIRECT, "challenge")


async def issued(state: State, now: float = NOW, **changed: Any) -> IssuedTokens:
    tokens = await state.use_code(await approved(state, **changed), now, 3_600)
    assert isinstance(tokens, IssuedTokens)
    return tokens


async def ids(state: State, now: float = NOW) -> list[str]:
    return [one.id for one in await state.all_approvals(now)]


async def test_a_client_is_found_by_all(states: tuple[State, State]) -> None:
    one, other = states
    await one.keep_client(client(secret="hash"), NOW, 10)
    assert await other.find_client("client") == client(secret="hash")
    assert await other.find_client("nobody") is None


async def test_a_code_is_exchanged_for_what_was_approved(states: tuple[State, State]) -> None:
    one, other = states
    code = await approved(one)
    assert await other.find_code(code, "client") == Code(approval(), REDIRECT, "challenge", NOW + 60)
    assert await other.find_code(code, "another") is None
    assert await other.find_code("another", "client") is None
    tokens = await other.use_code(code, NOW, 3_600)
    assert isinstance(tokens, IssuedTokens)
    assert (tokens.seconds, tokens.scope) == (3_600, "mcp more")
    assert await one.find_access_token(tokens.access, NOW) == Token(approval(), "mcp more", NOW + 3_600)
    assert await one.find_refresh_token(tokens.refresh, "client") == Token(approval(), "mcp more", NOW + 90 * DAY)
    assert await one.find_access_token(tokens.refresh, NOW) is None
    assert await one.find_refresh_token(tokens.access, "client") is None
    assert await one.find_refresh_token(tokens.refresh, "another") is None


@pytest.mark.parametrize("how", ["find", "use"])
async def test_a_code_that_comes_again_ends_what_it_gave(states: tuple[State, State], how: str) -> None:
    one, other = states
    code = await approved(one)
    tokens = await one.use_code(code, NOW, 3_600)
    assert isinstance(tokens, IssuedTokens)
    again = await (other.find_code(code, "client") if how == "find" else other.use_code(code, NOW, 3_600))
    assert again == Replayed(approval())
    assert await one.find_access_token(tokens.access, NOW) is None
    assert await one.find_refresh_token(tokens.refresh, "client") is None
    assert await ids(one) == []


async def test_a_refresh_token_is_rotated(states: tuple[State, State]) -> None:
    one, other = states
    first = await issued(one)
    second = await other.use_refresh_token(first.refresh, "mcp", NOW + 60, 3_600)
    assert isinstance(second, IssuedTokens)
    assert second.scope == "mcp"
    found = await one.find_access_token(second.access, NOW)
    assert found is not None
    assert found.scope == "mcp"
    renewed = await one.find_refresh_token(second.refresh, "client")
    assert isinstance(renewed, Token)
    assert renewed.scope == "mcp more"  # what was approved


@pytest.mark.parametrize("how", ["find", "use"])
async def test_a_refresh_token_that_comes_again_ends_its_approval(states: tuple[State, State], how: str) -> None:
    one, other = states
    first = await issued(one)
    second = await one.use_refresh_token(first.refresh, "mcp", NOW, 3_600)
    assert isinstance(second, IssuedTokens)
    if how == "find":
        assert await other.find_refresh_token(first.refresh, "client") == Replayed(approval())
    else:
        assert await other.use_refresh_token(first.refresh, "mcp", NOW, 3_600) == Replayed(approval())
    assert await one.find_access_token(second.access, NOW) is None
    assert await other.use_refresh_token(second.refresh, "mcp", NOW, 3_600) is None


@pytest.mark.parametrize("kind", ["code", "refresh token"])
async def test_of_many_at_once_one_is_first(states: tuple[State, State], kind: str) -> None:
    one, other = states
    code = await approved(one)
    used = code
    if kind == "refresh token":
        tokens = await one.use_code(code, NOW, 3_600)
        assert isinstance(tokens, IssuedTokens)
        used = tokens.refresh
    outcomes: list[Any] = []

    async def use(state: State) -> None:
        if kind == "code":
            outcomes.append(await state.use_code(used, NOW, 3_600))
        else:
            outcomes.append(await state.use_refresh_token(used, "mcp", NOW, 3_600))

    async with anyio.create_task_group() as tasks:
        for place in range(10):
            tasks.start_soon(use, (one, other)[place % 2])
    [first] = [outcome for outcome in outcomes if isinstance(outcome, IssuedTokens)]
    assert any(isinstance(outcome, Replayed) for outcome in outcomes)
    assert await one.find_access_token(first.access, NOW) is None  # it may be the thief's


async def test_what_is_revoked_is_refused_by_all(states: tuple[State, State]) -> None:
    one, other = states
    kept, tokens = await issued(one, name="kept"), await issued(one, name="gone")
    await other.revoke("gone")
    assert await one.find_access_token(tokens.access, NOW) is None
    assert await one.use_refresh_token(tokens.refresh, "mcp", NOW, 60) is None
    assert await one.find_access_token(kept.access, NOW) is not None
    await other.revoke("never was")
    assert await ids(one) == ["kept"]


@pytest.mark.parametrize("kind", ["access", "refresh"])
async def test_a_host_revokes_its_own_tokens_only(states: tuple[State, State], kind: str) -> None:
    one, other = states
    tokens = await issued(one)
    token = tokens.access if kind == "access" else tokens.refresh
    assert await other.revoke_token(token, "another") is None
    assert await other.revoke_token("no token", "client") is None
    assert await one.find_access_token(tokens.access, NOW) is not None
    assert await other.revoke_token(token, "client") == approval()
    assert await other.revoke_token(token, "client") is None
    assert await one.find_access_token(tokens.access, NOW) is None


async def test_a_use_is_noted_and_brings_nothing_back(states: tuple[State, State]) -> None:
    one, other = states
    tokens = await issued(one)
    await one.find_access_token(tokens.access, NOW + 30)
    assert [found.used for found in await other.all_approvals(NOW)] == [NOW]
    await one.find_access_token(tokens.access, NOW + 90)
    assert [found.used for found in await other.all_approvals(NOW)] == [NOW + 90]
    await other.revoke("one")
    assert await one.find_access_token(tokens.access, NOW + 200) is None
    assert await ids(other) == []


async def test_approvals_end(state: State) -> None:
    tokens = await issued(state, name="short", expires=NOW + 100)
    assert tokens.seconds == 100
    await issued(state, name="long", created=NOW + 1)
    assert await ids(state) == ["long", "short"]
    found = await state.find_access_token(tokens.access, NOW + 50)
    assert found is not None
    assert found.expires == NOW + 100
    assert await state.is_approved("client", NOW + 50)
    assert not await state.is_approved("another", NOW)
    assert await ids(state, NOW + 100) == ["long"]
    assert await state.use_refresh_token(tokens.refresh, "mcp", NOW + 100, 60) is None


async def test_an_approval_whose_code_nobody_exchanges_ends(state: State) -> None:
    code = await approved(state)
    assert await ids(state, NOW + 59) == ["one"]
    assert await ids(state, NOW + 60) == []
    assert await state.use_code(code, NOW + 60, 60) is None


async def test_one_person_has_so_many_approvals(state: State) -> None:
    for place in range(MOST_OF_ONE + 2):
        moment = NOW + place / 100
        await issued(state, moment, name=f"a{place}", created=moment, used=moment)
    await issued(state, name="bobs", principal="bob")
    found = set(await ids(state, NOW + 10))
    assert len(found) == MOST_OF_ONE + 1
    assert {"bobs", "a2"} <= found
    assert not {"a0", "a1"} & found


async def test_clients_that_nobody_approves_make_way(state: State) -> None:
    for place, name in enumerate(("client", "second", "third")):
        await state.keep_client(client(name), NOW + place, 3)
    await issued(state)
    await state.keep_client(client("fourth"), NOW + 5, 3)
    assert await state.find_client("second") is None
    assert await state.find_client("client") is not None
    for name in ("third", "fourth"):
        assert await state.find_client(name) is not None


async def test_clients_in_use_make_no_way(state: State) -> None:
    await state.keep_client(client(), NOW, 1)
    await issued(state)
    with pytest.raises(RegistrationError):
        await state.keep_client(client("second"), NOW + 1, 1)
    assert await state.find_client("client") is not None
    await state.revoke("one")
    await state.keep_client(client("second"), NOW + 2, 1)
    assert await state.find_client("client") is None


async def test_clients_are_forgotten(state: State) -> None:
    await state.keep_client(client("nobodys"), NOW, 10)
    await state.keep_client(client(), NOW, 10)
    await issued(state)
    await state.keep_client(client("second"), NOW + DAY, 10)
    assert await state.find_client("nobodys") is None
    assert await state.find_client("client") is not None
    await state.revoke("one")
    await state.keep_client(client("third"), NOW + 91 * DAY, 10)
    assert await state.find_client("client") is None


async def test_many_that_register_at_once_stay_within_the_bound(states: tuple[State, State]) -> None:
    one, other = states
    async with anyio.create_task_group() as tasks:
        for place in range(12):
            tasks.start_soon((one, other)[place % 2].keep_client, client(f"c{place}"), NOW + place, 4)
    found = [await one.find_client(f"c{place}") for place in range(12)]
    assert len([one for one in found if one is not None]) == 4


async def test_a_pending_request_is_taken_once_wherever_it_was_kept(states: tuple[State, State]) -> None:
    one, other = states
    key = await one.keep_pending("login", "what was asked", NOW, 60, 10)
    assert await other.find_pending("login", key, NOW + 59) == "what was asked"
    assert await other.find_pending("login", key, NOW + 60) is None
    assert await other.take_pending("decision", key, NOW) is None
    assert await other.find_pending("login", f"{key}x", NOW) is None
    taken: list[str | None] = []

    async def take(state: State) -> None:
        taken.append(await state.take_pending("login", key, NOW))

    async with anyio.create_task_group() as tasks:
        for place in range(10):
            tasks.start_soon(take, states[place % 2])
    assert sorted(taken, key=str) == [None] * 9 + ["what was asked"]
    assert await one.find_pending("login", key, NOW) is None


async def test_pending_requests_are_bounded_and_expire(states: tuple[State, State]) -> None:
    one, other = states
    decision = await one.keep_pending("decision", "none of theirs", NOW - 1, 600, 3)
    keys = [await states[place % 2].keep_pending("login", str(place), NOW + place, 60, 3) for place in range(5)]
    assert [await one.find_pending("login", key, NOW + 5) for key in keys] == [None, None, "2", "3", "4"]
    later = await other.keep_pending("login", "later", NOW + 63, 60, 3)
    assert [await one.find_pending("login", key, NOW + 5) for key in (*keys, later)] == [*[None] * 4, "4", "later"]
    assert await one.take_pending("login", keys[4], NOW + 64) is None
    assert await one.find_pending("decision", decision, NOW + 64) == "none of theirs"


@pytest.mark.parametrize("name", ["", "\0", "a\0b", "%s ? :x", "'; DROP TABLE clients; --", "é" * 50_000])
async def test_names_that_nobody_has_are_found_nowhere(state: State, name: str) -> None:
    await state.keep_client(client(), NOW, 10)
    await issued(state)
    assert await state.find_client(name) is None
    assert await state.find_client(f"{name}\ud800") is None
    assert await state.find_code(name, "client") is None
    assert await state.find_refresh_token(name, name) is None
    assert await state.find_access_token(name, NOW) is None
    assert await state.find_pending("login", name, NOW) is None
    assert await state.revoke_token(name, name) is None
    assert not await state.is_approved(name, NOW)
    await state.revoke(name)
    assert await ids(state) == ["one"]


async def test_what_people_and_hosts_are_called_is_kept_as_it_is(state: State) -> None:
    odd: dict[str, Any] = {
        "client_name": "Ünïcode ' \" ? %s 😀",
        "principal": "álice@example.com",
        "claims": '{"dept": "é"}',
    }
    tokens = await issued(state, NOW, **odd)
    found = await state.find_access_token(tokens.access, NOW)
    assert found is not None
    assert found.approval == approval(**odd)


# --------------------------------------------------------------------------------------------------------- Redis alone


async def test_nothing_secret_is_in_redis_and_everything_expires(redis: RedisServer) -> None:
    state = RedisState(redis.url)
    await state.keep_client(client(secret="hash"), NOW, 10)
    code = await approved(state)
    tokens = await state.use_code(code, NOW, 3_600)
    assert isinstance(tokens, IssuedTokens)
    key = await state.keep_pending("login", "asked", NOW, 60, 10)
    secrets, raw = (code, tokens.access, tokens.refresh, key), state._connection._redis.redis
    indexes = {
        f"mcp-gateway:authorization:{name}"
        for name in ("clients:new", "clients:approved", "approvals", "unused", "pending:login")
    }
    async for key in raw.scan_iter():
        assert key.startswith("mcp-gateway:authorization:")
        kind = await raw.type(key)
        held = (
            await raw.get(key)
            if kind == "string"
            else await (raw.smembers(key) if kind == "set" else raw.zrange(key, 0, -1))
        )
        assert not any(secret in f"{key} {held}" for secret in secrets)
        assert key in indexes or await raw.ttl(key) > 0
    await state.revoke("one")
    left = {key async for key in raw.scan_iter()} - indexes
    assert all(":client:" in key or ":pending:" in key for key in left)
    await state.close()


async def test_a_redis_that_is_gone_is_said_once_and_comes_back(
    redis: RedisServer, caplog: pytest.LogCaptureFixture
) -> None:
    state = RedisState(redis.url)
    state.check()
    await issued(state)
    redis.stop()
    for _ in range(3):
        with pytest.raises(StateUnavailable):
            await state.all_approvals(NOW)
        with pytest.raises(StateUnavailable):
            await state.keep_client(client(), NOW, 10)
    redis.start()
    assert await ids(state) == []  # this one keeps nothing
    assert await ids(state) == []
    assert caplog.text.count("cannot be used") == 1
    assert PASSWORD not in caplog.text
    await state.close()


async def test_a_redis_that_is_not_there_yet_does_not_keep_the_gateway_from_starting(
    redis: RedisServer, caplog: pytest.LogCaptureFixture
) -> None:
    redis.stop()
    state = RedisState(redis.url)
    state.check()
    assert "cannot be used" in caplog.text
    redis.start()
    assert await ids(state) == []
    await state.close()


async def test_many_at_once_wait_for_a_connection(redis: RedisServer) -> None:
    state = RedisState(redis.url)
    found: list[object] = []

    async def find(place: int) -> None:
        found.append(await state.find_access_token(f"token {place}", NOW))

    async with anyio.create_task_group() as tasks:
        for place in range(300):
            tasks.start_soon(find, place)
    assert found == [None] * 300
    assert int((await state._connection._redis.redis.info("clients"))["connected_clients"]) <= 40
    await state.close()


async def test_what_no_gateway_wrote_is_refused_and_told(redis: RedisServer, caplog: pytest.LogCaptureFixture) -> None:
    state = RedisState(redis.url)
    tokens = await issued(state)
    key = "mcp-gateway:authorization:approval:one"
    whole = await state._connection._redis.redis.get(key)
    for garbage in ("not JSON", "[]", "{}", '{"id": 1}', whole.replace('"id"', '"new"')):
        await state._connection._redis.redis.set(key, garbage)
        with pytest.raises(StateUnavailable):
            await state.find_access_token(tokens.access, NOW)
    await state._connection._redis.redis.set(key, whole)
    assert await state.find_access_token(tokens.access, NOW) is not None
    assert caplog.text.count("no gateway of this version has written") == 1
    await state.close()


async def test_a_wrong_password_is_said_without_it(redis: RedisServer, caplog: pytest.LogCaptureFixture) -> None:
    state = RedisState(redis.url.replace("redis://:", "redis://:another%20"))
    state.check()
    with pytest.raises(StateUnavailable):
        await ids(state)
    assert "password" in caplog.text
    assert PASSWORD not in caplog.text
    await state.close()


@pytest.mark.parametrize("url", ["redis://127.0.0.1:port", "redis://127.0.0.1:6379/0?socket_timeout=soon"])
async def test_what_is_no_url_of_redis_is_told(url: str) -> None:
    with pytest.raises(ConfigError, match=r"authorization_server\.state"):
        RedisState(url)


async def test_a_missing_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "redis.asyncio", None)
    with pytest.raises(ConfigError, match=r"install the extra redis: `.+\[redis\]'?`"):
        RedisState("redis://127.0.0.1")


async def test_a_cluster_does_all_that_one_redis_does(redis_cluster: RedisCluster) -> None:
    states = one, other = RedisState(redis_cluster.url), RedisState(redis_cluster.url)
    one.check()
    await test_many_that_register_at_once_stay_within_the_bound(states)
    await one.keep_client(client(secret="hash"), NOW, 10)
    assert await other.find_client("client") == client(secret="hash")
    await test_a_code_is_exchanged_for_what_was_approved(states)
    await other.revoke("one")
    await test_a_refresh_token_that_comes_again_ends_its_approval(states, "use")
    for kind in ("code", "refresh token"):
        await test_of_many_at_once_one_is_first(states, kind)
    await test_a_pending_request_is_taken_once_wherever_it_was_kept(states)
    await test_a_use_is_noted_and_brings_nothing_back(states)
    redis_cluster.stop()
    await other.close()
    for state in (one, RedisState(redis_cluster.url)):
        state.check()
        with pytest.raises(StateUnavailable):
            await ids(state)
        with pytest.raises(StateUnavailable):
            await ids(state)
        await state.close()
    for state in states:
        await state.close()


# ------------------------------------------------------------------------------------------------------ Postgres alone


async def test_nothing_secret_is_in_postgres(postgres: PostgresDatabaseOfTest) -> None:
    state = SqlState(PostgresDatabase(postgres.url))
    code = await approved(state)
    tokens = await state.use_code(code, NOW, 3_600)
    assert isinstance(tokens, IssuedTokens)
    key = await state.keep_pending("login", "asked", NOW, 60, 10)
    await state.close()
    tables = ("clients", "approvals", "codes", "tokens", "pending")
    rows = [postgres.server.rows(f"SELECT * FROM mcp_gateway_authorization.{one}", postgres.name) for one in tables]
    assert [len(one) for one in rows] == [0, 1, 1, 2, 1]
    assert not any(secret in str(rows) for secret in (code, tokens.access, tokens.refresh, key))


async def test_a_postgres_that_is_gone_is_said_once_and_comes_back_with_everything(
    postgres: PostgresDatabaseOfTest, caplog: pytest.LogCaptureFixture
) -> None:
    state = SqlState(PostgresDatabase(postgres.url))
    state.check()
    tokens = await issued(state)
    postgres.server.stop()
    for _ in range(3):
        with pytest.raises(StateUnavailable):
            await state.find_access_token(tokens.access, NOW)
        with pytest.raises(StateUnavailable):
            await state.keep_client(client(), NOW, 10)
    postgres.server.start()
    assert await state.find_access_token(tokens.access, NOW) is not None
    assert await ids(state) == ["one"]
    assert caplog.text.count("cannot be used") == 1
    assert not any(password in caplog.text for password in PASSWORDS)
    await state.close()


async def test_a_restart_of_postgres_between_two_calls_is_not_noticed(
    postgres: PostgresDatabaseOfTest, caplog: pytest.LogCaptureFixture
) -> None:
    state = SqlState(PostgresDatabase(postgres.url))
    tokens = await issued(state)
    postgres.server.stop()
    postgres.server.start()
    renewed = await state.use_refresh_token(tokens.refresh, "mcp", NOW, 60)
    assert isinstance(renewed, IssuedTokens)
    assert caplog.text == ""
    await state.close()


async def test_a_postgres_that_is_not_there_yet_does_not_keep_the_gateway_from_starting(
    postgres: PostgresDatabaseOfTest, caplog: pytest.LogCaptureFixture
) -> None:
    postgres.server.stop()
    state = SqlState(PostgresDatabase(postgres.url))
    state.check()
    assert "cannot be used" in caplog.text
    postgres.server.start()
    assert await ids(state) == []
    await state.close()


async def test_a_postgres_that_answers_nothing_is_given_up(
    postgres: PostgresDatabaseOfTest, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(postgres_database, "_TRANSACTION_SECONDS", 0.3)
    state = SqlState(PostgresDatabase(postgres.url))
    tokens = await issued(state)

    def hang(sql: Transaction) -> None:
        sql.execute("SELECT pg_sleep(30)")

    with anyio.fail_after(20), pytest.raises(StateUnavailable):
        await state.database.run(hang)
    assert await state.find_access_token(tokens.access, NOW) is not None
    await state.close()


async def test_who_holds_the_lock_for_long_is_waited_for_and_then_given_up(
    postgres: PostgresDatabaseOfTest, monkeypatch: pytest.MonkeyPatch
) -> None:
    state = SqlState(PostgresDatabase(postgres.url))
    tokens = await issued(state)
    with psycopg.connect(postgres.url) as other:
        other.execute(f"SELECT pg_advisory_xact_lock({postgres_database._LOCK})".encode())
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(state.revoke, "one")
            await anyio.sleep(0.2)
            assert await state.find_access_token(tokens.access, NOW) is not None  # lookups do not wait
            other.rollback()
        assert await ids(state) == []
        other.execute(f"SELECT pg_advisory_xact_lock({postgres_database._LOCK})".encode())
        with anyio.fail_after(20), pytest.raises(StateUnavailable):
            await state.revoke("one")
    await state.close()


async def test_many_at_once_wait_for_a_connection_to_postgres(postgres: PostgresDatabaseOfTest) -> None:
    state = SqlState(PostgresDatabase(postgres.url))
    found: list[object] = []

    async def find(place: int) -> None:
        found.append(await state.find_access_token(f"token {place}", NOW))

    async with anyio.create_task_group() as tasks:
        for place in range(300):
            tasks.start_soon(find, place)
    assert found == [None] * 300
    [(count,)] = postgres.server.rows(
        f"SELECT count(*) FROM pg_stat_activity WHERE datname = '{postgres.name}' AND usename = 'gateway'", "postgres"
    )
    assert 1 <= count <= 8
    await state.close()


async def test_many_gateways_that_start_at_once_make_the_tables_once(postgres: PostgresDatabaseOfTest) -> None:
    states = [SqlState(PostgresDatabase(postgres.url)) for _ in range(6)]
    async with anyio.create_task_group() as tasks:
        for state in states:
            tasks.start_soon(state.all_approvals, NOW)
    assert await issued(states[0])
    assert [await ids(state) for state in states] == [["one"]] * 6
    for state in states:
        await state.close()


async def test_tables_that_are_gone_are_made_again(postgres: PostgresDatabaseOfTest) -> None:
    state = SqlState(PostgresDatabase(postgres.url))
    await issued(state)
    postgres.server.execute("DROP SCHEMA mcp_gateway_authorization CASCADE", postgres.name)
    assert await ids(state) == []
    await issued(state)
    assert await ids(state) == ["one"]
    await state.close()


async def test_a_postgres_of_a_newer_gateway_is_refused(postgres: PostgresDatabaseOfTest) -> None:
    state = SqlState(PostgresDatabase(postgres.url))
    await issued(state)
    await state.close()
    postgres.server.execute("UPDATE mcp_gateway_authorization.version SET number = 99", postgres.name)
    with pytest.raises(ConfigError, match="newer version"):
        SqlState(PostgresDatabase(postgres.url)).check()


async def test_a_user_who_may_make_no_tables_is_told_what_to_do(postgres: PostgresDatabaseOfTest) -> None:
    postgres.server.execute(f"ALTER DATABASE {postgres.name} OWNER TO owner")
    with pytest.raises(ConfigError, match="permission denied") as refused:
        SqlState(PostgresDatabase(postgres.url)).check()
    assert "GRANT CREATE ON DATABASE" in (refused.value.remedy or "")
    postgres.server.execute("CREATE SCHEMA mcp_gateway_authorization AUTHORIZATION gateway", postgres.name)
    state = SqlState(PostgresDatabase(postgres.url))
    state.check()
    assert await ids(state) == []
    await state.close()


async def test_a_wrong_password_of_postgres_is_said_without_it(
    postgres: PostgresDatabaseOfTest, caplog: pytest.LogCaptureFixture
) -> None:
    state = SqlState(PostgresDatabase(postgres.url.replace(":a%20password", ":another%20password")))
    state.check()
    with pytest.raises(StateUnavailable):
        await ids(state)
    assert "password authentication failed" in caplog.text
    assert "another password" not in caplog.text
    assert "another%20password" not in caplog.text


@pytest.mark.parametrize(
    "url", ["postgresql://u:secret@127.0.0.1/x?nonsense=1", "postgresql://[::1", "postgresql://u:sec%ret@h/x"]
)
async def test_what_is_no_url_of_postgres_is_told_without_its_password(url: str) -> None:
    with pytest.raises(ConfigError, match=r"authorization_server\.state") as refused:
        PostgresDatabase(url)
    assert "sec" not in str(refused.value)


async def test_a_missing_extra_for_postgres_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "psycopg", None)
    with pytest.raises(ConfigError, match=r"install the extra postgres: `.+\[postgres\]'?`"):
        PostgresDatabase("postgresql://127.0.0.1/x")


# -------------------------------------------------------------------------------------------------------- SQLite alone


async def test_a_file_of_the_first_version_is_brought_up_to_date(tmp_path: Path) -> None:
    path = tmp_path / "state.sqlite3"
    with closing(sqlite3.connect(path)) as old:
        for statement in STEPS[0].split(";"):
            old.execute(statement)
        kept = {name: value for name, value in vars(approval()).items() if name != "claims"}
        marks = ", ".join("?" * len(kept))
        old.execute(f"INSERT INTO approvals ({', '.join(kept)}) VALUES ({marks})", tuple(kept.values()))
        old.execute("PRAGMA user_version = 1")
        old.commit()
    state = SqlState(SqliteDatabase(path))
    state.check()
    assert await state.all_approvals(NOW) == [approval()]
    assert await state.find_pending("login", await state.keep_pending("login", "asked", NOW, 60, 10), NOW) == "asked"
    await state.close()


async def test_what_a_server_says_is_logged_without_the_password_and_within_bounds(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """A server may ask for the password as it is, and repeat it."""
    listener = socket.create_server(("127.0.0.1", 0))
    said = b"SFATAL\0VFATAL\0C28P01\0Mno\x1b[2J 'the secret word' " + b"x" * 100_000 + b"\0\0"

    def serve() -> None:
        connection, _ = listener.accept()
        with connection:
            while connection.recv(1_000)[4:8] in (b"\x04\xd2\x16\x2f", b"\x04\xd2\x16\x30"):  # TLS, or GSSAPI
                connection.sendall(b"N")
            connection.sendall(b"R" + struct.pack(">ii", 8, 3))
            assert b"the secret word" in connection.recv(1_000)
            connection.sendall(b"E" + struct.pack(">i", 4 + len(said)) + said)

    thread = threading.Thread(target=serve, daemon=True)
    thread.start()
    url = f"postgresql://gateway:the%20secret%20word@127.0.0.1:{listener.getsockname()[1]}/x"
    with listener, pytest.raises(StateUnavailable):
        await SqlState(PostgresDatabase(url)).find_access_token("token", NOW)
    thread.join(10)
    assert "cannot be used" in caplog.text
    assert "secret word" not in caplog.text
    assert "\x1b" not in caplog.text
    assert len(caplog.text) < 2_000
