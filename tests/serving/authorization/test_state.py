"""The contract of the state of the authorization server, for SQLite and for a real Redis alike."""

from collections.abc import AsyncGenerator
from dataclasses import replace
from pathlib import Path
from typing import Any

import anyio
import pytest
from mcp.server.auth.provider import RegistrationError

from gateway.errors import ConfigError, StateUnavailable
from gateway.serving.authorization.approvals import MOST_OF_ONE, Approval, Code, IssuedTokens, Replayed, Token
from gateway.serving.authorization.clients import Client
from gateway.serving.authorization.database import Database
from gateway.serving.authorization.redis_state import RedisState
from gateway.serving.authorization.sqlite_state import SqliteState
from gateway.serving.authorization.state import State
from tests.servers.redis_server import PASSWORD, RedisServer

pytestmark = pytest.mark.anyio

NOW = 1_800_000_000.0
DAY = 86_400.0
REDIRECT = "https://host.example/callback"


def client(name: str = "client", secret: str | None = None) -> Client:
    return Client(name, "Some Host", (REDIRECT, "http://127.0.0.1/x"), secret)


def approval(name: str = "one", **changed: Any) -> Approval:
    where = ("client", "Some Host", "host.example", "alice", "passphrase", "https://tools.example.com/mcp", "mcp more")
    return replace(Approval(name, *where, NOW, NOW, NOW + 90 * DAY), **changed)


@pytest.fixture(params=["sqlite", "redis"])
async def states(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncGenerator[tuple[State, State]]:
    """The state, as two gateways have it open."""
    states: list[State]
    if request.param == "redis":
        server: RedisServer = request.getfixturevalue("redis")
        states = [RedisState(server.url) for _ in range(2)]
    else:
        states = [SqliteState(Database(tmp_path / "state.sqlite3")) for _ in range(2)]
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


# --------------------------------------------------------------------------------------------------------- Redis alone


async def test_nothing_secret_is_in_redis_and_everything_expires(redis: RedisServer) -> None:
    state = RedisState(redis.url)
    await state.keep_client(client(secret="hash"), NOW, 10)
    code = await approved(state)
    tokens = await state.use_code(code, NOW, 3_600)
    assert isinstance(tokens, IssuedTokens)
    secrets, raw = (code, tokens.access, tokens.refresh), state._redis
    indexes = {
        f"mcp-gateway:authorization:{name}" for name in ("clients:new", "clients:approved", "approvals", "unused")
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
    assert all(":client:" in key for key in left)
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
    assert int((await state._redis.info("clients"))["connected_clients"]) <= 40
    await state.close()


async def test_what_no_gateway_wrote_is_refused_and_told(redis: RedisServer, caplog: pytest.LogCaptureFixture) -> None:
    state = RedisState(redis.url)
    tokens = await issued(state)
    key = "mcp-gateway:authorization:approval:one"
    whole = await state._redis.get(key)
    for garbage in ("not JSON", "[]", "{}", '{"id": 1}', whole.replace('"id"', '"new"')):
        await state._redis.set(key, garbage)
        with pytest.raises(StateUnavailable):
            await state.find_access_token(tokens.access, NOW)
    await state._redis.set(key, whole)
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
    monkeypatch.setitem(__import__("sys").modules, "redis.asyncio", None)
    with pytest.raises(ConfigError, match=r"mcp-multimodal-gateway\[redis\]"):
        RedisState("redis://127.0.0.1")
