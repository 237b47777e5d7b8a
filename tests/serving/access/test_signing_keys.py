"""The keys of an issuer: how long they count, and when they are asked for again."""

from collections.abc import Mapping
from typing import Any

import anyio
import anyio.lowlevel
import pytest

from gateway.errors import FetchFailed
from gateway.serving.access.signing_keys import SigningKeys
from tests.servers.identity_provider import IdentityProvider

pytestmark = pytest.mark.anyio


class Issuer:
    """Gives the keys of a provider that is not running, and counts."""

    def __init__(self) -> None:
        self.now = 1_000.0
        self.provider = IdentityProvider()
        self.asked = 0
        self.is_down = self.never_answers = False
        self.extra: list[Any] = []

    async def read(self) -> Mapping[str, Any]:
        self.asked += 1
        await anyio.lowlevel.checkpoint()
        if self.never_answers:
            await anyio.sleep_forever()
        if self.is_down:
            raise FetchFailed("nobody is there")
        return {"keys": [*self.extra, *self.provider.key_set()["keys"]]}

    def keys(self) -> SigningKeys:
        return SigningKeys(self.read, lambda: self.now)


async def test_keys_that_the_issuer_withdraws_are_forgotten_after_a_while():
    issuer = Issuer()
    keys = issuer.keys()
    assert await keys.find("first", "ES256") is not None
    del issuer.provider.keys["first"]
    issuer.provider.add_key("second", "RS256")
    issuer.now += 599
    assert await keys.find("first", "ES256") is not None
    assert issuer.asked == 1
    issuer.now += 2
    assert await keys.find("first", "ES256") is None
    assert await keys.find("second", "RS256") is not None
    assert issuer.asked == 2


async def test_a_new_key_is_found_but_unknown_ones_are_asked_for_once_a_minute():
    issuer = Issuer()
    keys = issuer.keys()
    await keys.find("first", "ES256")
    issuer.provider.add_key("second", "EdDSA")
    issuer.now += 61
    async with anyio.create_task_group() as tasks:
        for _ in range(50):
            tasks.start_soon(keys.find, "second", "EdDSA")
    assert issuer.asked == 2
    for number in range(100):
        assert await keys.find(f"unknown{number}", "EdDSA") is None
    assert issuer.asked == 2
    issuer.now += 61
    assert await keys.find("unknown", "EdDSA") is None
    assert issuer.asked == 3


async def test_while_the_issuer_is_down_its_last_keys_count_for_a_day():
    issuer = Issuer()
    keys = issuer.keys()
    issuer.is_down = True
    for _ in range(3):
        with pytest.raises(FetchFailed):
            await keys.find("first", "ES256")
    assert issuer.asked == 1
    issuer.is_down = False
    issuer.now += 11
    assert await keys.find("first", "ES256") is not None
    issuer.is_down = True
    issuer.now += 86_000
    assert await keys.find("first", "ES256") is not None
    issuer.now += 500
    with pytest.raises(FetchFailed):
        await keys.find("first", "ES256")


@pytest.mark.parametrize("first_to_wait", ["first", "unknown"])
async def test_while_a_slow_issuer_is_waited_for_tokens_whose_key_is_known_are_not_kept_waiting(first_to_wait: str):
    issuer = Issuer()
    keys = issuer.keys()
    assert await keys.find("first", "ES256") is not None
    issuer.never_answers = True
    issuer.now += 601
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(keys.find, first_to_wait, "ES256")
        await anyio.wait_all_tasks_blocked()
        with anyio.fail_after(5):
            assert await keys.find("first", "ES256") is not None
        tasks.cancel_scope.cancel()
    assert issuer.asked == 2
    issuer.never_answers = False
    assert await keys.find("first", "ES256") is not None
    assert issuer.asked == 3  # whoever gave up has not put it off


async def test_whoever_gives_up_waiting_spoils_nothing_for_others():
    issuer = Issuer()
    keys = issuer.keys()
    with anyio.CancelScope() as scope:
        scope.cancel()
        await keys.find("first", "ES256")
    assert await keys.find("first", "ES256") is not None


async def test_a_token_that_names_no_key_means_the_only_one_of_its_kind():
    issuer = Issuer()
    issuer.provider.add_key("second", "RS256")
    assert await issuer.keys().find(None, "RS256") is not None
    issuer.provider.add_key("third", "RS256")
    assert await issuer.keys().find(None, "RS256") is None
    assert await issuer.keys().find("third", "RS256") is not None


async def test_keys_for_anything_else_do_not_count():
    issuer = Issuer()
    own = issuer.provider.key_set()["keys"][0]
    issuer.provider.keys.clear()
    issuer.extra = [
        {**own, "kid": "encryption", "use": "enc"},
        {**own, "kid": "other algorithm", "alg": "ES384"},
        {**own, "kid": "private", "d": own["x"]},
        {**own, "kid": "curve", "crv": "P-384"},
        {**own, "kid": "point", "x": "AAAA"},
        {**own, "kid": 7},
        {"kty": "oct", "kid": "secret", "k": "c2VjcmV0", "alg": "HS256"},
        {"kty": "RSA", "kid": "small", "n": "AQAB" * 20, "e": "AQAB"},
        "key",
        None,
    ]
    keys = issuer.keys()
    for entry in issuer.extra:
        for algorithm in ("ES256", "RS256", "EdDSA"):
            key_id = entry["kid"] if isinstance(entry, dict) else None
            assert await keys.find(key_id, algorithm) is None
