"""The vault of tokens: sealed, bound to its owner, shared by processes, and never lost to an error."""

import json
import stat
import sys
import threading
from pathlib import Path

import anyio
import anyio.to_thread
import keyring
import pytest

from gateway.config.expansion import NoValue
from gateway.config.login_settings import LoginSettings
from gateway.errors import VaultLocked
from gateway.upstream.authorization import vault as vault_module
from gateway.upstream.authorization.ports import ClientIdentification, LoginKey, Tokens
from gateway.upstream.authorization.vault import FILE_NAME, MemoryVault, SealedVault, SealingKey, open_vault
from tests.keyring_file import FileKeyring

pytestmark = pytest.mark.anyio

ALICE = LoginKey("alice", "github", "https://issuer.example")
BOB = LoginKey("bob", "github", "https://issuer.example")
ANOTHER = ALICE._replace(upstream="notion")
SECRET = "a key of the configuration"


def tokens(word: str) -> Tokens:
    return Tokens(
        access_token=f"access-{word}",
        refresh_token=f"refresh-{word}",
        expires=1_800_000_000.0,
        url="https://mcp.example/mcp",
        token_endpoint="https://issuer.example/token",
        client=ClientIdentification(client_id="gateway", client_secret=f"client-{word}"),
    )


def vault(folder: Path, key: str | None = SECRET) -> SealedVault:
    return SealedVault(folder / FILE_NAME, SealingKey(key))


@pytest.fixture
def ring(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The file of a keyring of its own."""
    monkeypatch.setenv("KEYRING_FILE", str(tmp_path / "ring.json"))
    monkeypatch.setattr(keyring, "get_keyring", FileKeyring)
    return tmp_path / "ring.json"


async def test_tokens_are_kept_for_other_processes(tmp_path: Path) -> None:
    first, second = vault(tmp_path), vault(tmp_path)
    assert await second.get(ALICE) is None
    await first.put(ALICE, tokens("a"))
    await second.put(BOB, tokens("b"))
    assert await first.get(BOB) == tokens("b")
    assert await second.get(ALICE) == tokens("a")
    assert set(await first.keys()) == {ALICE, BOB}
    assert await first.keys("bob") == (BOB,)
    await first.put(ALICE, tokens("newer"))
    assert await second.get(ALICE) == tokens("newer")
    await second.delete(ALICE)
    await second.delete(ALICE)
    assert await first.keys() == (BOB,)


async def test_the_file_has_no_token_and_is_for_its_user_only(tmp_path: Path) -> None:
    await vault(tmp_path).put(ALICE, tokens("a"))
    file = tmp_path / FILE_NAME
    assert not any(word in file.read_text("utf-8") for word in ("access-a", "refresh-a", "client-a", SECRET))
    if sys.platform != "win32":
        assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert "access-a" not in repr(tokens("a"))


@pytest.mark.parametrize("key", [BOB, ANOTHER, ALICE._replace(issuer="https://attacker.example")])
async def test_an_entry_that_was_moved_to_another_name_does_not_open(tmp_path: Path, key: LoginKey) -> None:
    await vault(tmp_path).put(ALICE, tokens("a"))
    file = tmp_path / FILE_NAME
    document = json.loads(file.read_text("utf-8"))
    document["logins"][0] |= key._asdict()
    file.write_text(json.dumps(document), "utf-8")
    with pytest.raises(VaultLocked, match="cannot be opened"):
        await vault(tmp_path).get(key)


async def test_another_key_opens_nothing_and_loses_nothing(tmp_path: Path) -> None:
    await vault(tmp_path).put(ALICE, tokens("a"))
    other = vault(tmp_path, "another key, of the same length")
    with pytest.raises(VaultLocked, match=r"sealed with another key.*mcp-gateway login github"):
        await other.get(ALICE)
    await other.put(BOB, tokens("b"))
    assert await vault(tmp_path).get(ALICE) == tokens("a")


@pytest.mark.parametrize("content", ["", "{", "[]", '{"version": 2, "logins": []}', '{"version": 1, "logins": [{}]}'])
async def test_a_damaged_file_is_an_error_and_stays_as_it_is(tmp_path: Path, content: str) -> None:
    file = tmp_path / FILE_NAME
    file.write_text(content, "utf-8")
    for attempt in (vault(tmp_path).keys(), vault(tmp_path).get(ALICE), vault(tmp_path).put(ALICE, tokens("a"))):
        with pytest.raises(VaultLocked, match="damaged"):
            await attempt
    assert file.read_text("utf-8") == content


async def test_without_a_configured_key_one_is_created_in_the_keyring(tmp_path: Path, ring: Path) -> None:
    await vault(tmp_path, None).put(ALICE, tokens("a"))
    assert await vault(tmp_path, None).get(ALICE) == tokens("a")
    assert list(json.loads(ring.read_text("utf-8"))) == ["mcp-gateway/logins key"]


async def test_a_locked_keyring_is_an_error_and_loses_nothing(tmp_path: Path, ring: Path) -> None:
    await vault(tmp_path, None).put(ALICE, tokens("a"))
    unlocked = ring.read_text("utf-8")
    ring.write_text("locked", "utf-8")
    now = [0.0]
    locked = SealedVault(tmp_path / FILE_NAME, SealingKey(None, clock=lambda: now[0]))
    assert await locked.keys() == (ALICE,)
    for attempt in (locked.get(ALICE), locked.put(BOB, tokens("b"))):
        with pytest.raises(VaultLocked, match=r"the collection is locked.*logins\.key"):
            await attempt
    ring.write_text(unlocked, "utf-8")
    with pytest.raises(VaultLocked):  # a keyring that asks its user does not do so for each request
        await locked.get(ALICE)
    now[0] = 5.0
    assert await locked.get(ALICE) == tokens("a")


async def test_a_keyring_that_waits_for_its_user_holds_up_nothing_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    await vault(tmp_path).put(ALICE, tokens("a"))
    answered, asked = threading.Event(), list[str]()

    def find(entry: str) -> str | None:
        asked.append(entry)
        answered.wait()
        raise NoValue("the collection is locked", "")

    monkeypatch.setattr("gateway.upstream.authorization.vault.find_in_keyring", find)
    locked = vault(tmp_path, None)

    async def fails() -> None:
        with pytest.raises(VaultLocked):
            await locked.get(ALICE)

    async with anyio.create_task_group() as tasks:
        try:
            for _ in range(60):  # more than there are threads
                tasks.start_soon(fails)
            await anyio.wait_all_tasks_blocked()
            with anyio.move_on_after(20) as unrelated:
                await anyio.to_thread.run_sync(lambda: None)
        finally:
            answered.set()
    assert not unrelated.cancelled_caught
    assert len(asked) == 1


async def test_many_writers_at_once_lose_nothing(tmp_path: Path) -> None:
    keys = [ALICE._replace(upstream=f"u{number}") for number in range(12)]
    async with anyio.create_task_group() as tasks:
        for key in keys:
            tasks.start_soon(vault(tmp_path).put, key, tokens(key.upstream))
    assert set(await vault(tmp_path).keys()) == set(keys)


async def test_without_a_folder_tokens_are_kept_in_memory(tmp_path: Path) -> None:
    kept = open_vault(LoginSettings(), None)
    assert isinstance(kept, MemoryVault)
    await kept.put(ALICE, tokens("a"))
    assert await kept.get(ALICE) == tokens("a")
    assert await kept.keys("bob") == ()
    await kept.delete(ALICE)
    assert await kept.get(ALICE) is None
    assert isinstance(open_vault(LoginSettings(), tmp_path), SealedVault)


async def test_the_logins_to_one_upstream_leave_room_for_those_to_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A file that is too large to be read would lose the logins to all upstreams, for good."""
    monkeypatch.setattr(vault_module, "MOST_KEPT", 20_000)
    logins = vault(tmp_path)
    await logins.put(BOB, tokens("b"))
    large = tokens("a").model_copy(update={"access_token": "a" * 1_500})
    evil = [LoginKey(f"p{place}", "evil", "https://evil.example") for place in range(4)]
    for key in evil[:-1]:
        await logins.put(key, large)
    with pytest.raises(VaultLocked, match="there are too many"):
        await logins.put(evil[-1], large)
    await logins.put(evil[0], large)  # in place of the one that is there
    await logins.put(ALICE, tokens("a"))
    for again in (logins, vault(tmp_path)):
        assert await again.get(BOB) == tokens("b")
        assert await again.get(ALICE) == tokens("a")
