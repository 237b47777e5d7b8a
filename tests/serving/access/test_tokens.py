"""Bearer tokens: whose each is, until when, and what a changed configuration means for them."""

from datetime import UTC, date, datetime
from typing import Any

import anyio
import pytest
from pydantic import ValidationError

from gateway.config.access_settings import AccessSettings, TokenSettings
from gateway.config.http_settings import HttpSettings
from gateway.config.token_hashes import hash_of
from gateway.core.model.grant import EVERYTHING, Grant
from gateway.serving.access import Access, Fault, Identified
from gateway.serving.access.tokens import new_token

ALICE, BOB, CAROL = "alice-alice-alice", "bob-bob-bob-bob-bob", "carol-carol-carol"


def access(http: str | None = None, clock: Any = None, **tokens: dict[str, Any]) -> Access:
    made = {name: TokenSettings(**token) for name, token in tokens.items()}
    options = {} if clock is None else {"clock": clock}
    return Access(HttpSettings(token=http), AccessSettings(tokens=made), **options)


@pytest.mark.anyio
async def test_without_any_token_everybody_is_local():
    open_to_all = access()
    assert not open_to_all.needs_token
    assert (
        await open_to_all.identify("")
        == await open_to_all.identify("Bearer x")
        == Identified("local", EVERYTHING, is_admin=True)
    )


@pytest.mark.anyio
async def test_each_token_has_its_principal_and_reach():
    known = access(
        "http-token",
        alice={"hash": hash_of(ALICE), "upstreams": ["docs"], "profile": "codex", "calls_per_minute": 3},
        bob={"token": BOB, "principal": "team", "tools": ["docs__*"]},
    )
    assert known.needs_token
    assert await known.identify(f"Bearer {ALICE}") == Identified("alice", Grant(("docs",), ("*",), 3), "codex")
    assert [getattr(await known.identify(f"Bearer {each}"), "token", "") for each in (ALICE, BOB)] == ["alice", "bob"]
    assert await known.identify(f"bearer  {BOB} ") == Identified("team", Grant(("*",), ("docs__*",)))
    assert await known.identify("Bearer http-token") == Identified("token", EVERYTHING, is_admin=True)
    assert await known.identify("") == await known.identify("Basic x") == await known.identify("Bearer ") == "missing"
    assert await known.identify("Bearer x") == await known.identify(f"Bearer {hash_of(ALICE)}") == "wrong"
    assert await known.identify("Bearer \udce9\xff") == "wrong"


@pytest.mark.anyio
async def test_a_token_with_a_table_has_no_more_than_the_table_says():
    known = access(ALICE, alice={"token": ALICE, "upstreams": ["docs"]})
    assert await known.identify(f"Bearer {ALICE}") == Identified("alice", Grant(("docs",)))


@pytest.mark.anyio
@pytest.mark.parametrize("odd", ["\xa0", "\x85"])
async def test_only_spaces_and_tabs_around_a_token_do_not_count(odd):
    known = access(a={"hash": hash_of(ALICE)})
    assert await known.identify(f"Bearer {ALICE}{odd}") == "wrong"
    assert isinstance(await known.identify(f"Bearer \t{ALICE} "), Identified)
    assert await known.identify(f"Bearer {odd}") == "wrong"


@pytest.mark.anyio
@pytest.mark.parametrize(
    ("expires", "last"),
    [(date(2027, 1, 1), 1_798_761_600.0), (datetime(2027, 1, 1, 6, tzinfo=UTC), 1_798_783_200.0)],
)
async def test_a_token_is_valid_until_it_expires(expires, last):
    now = last - 1
    known = access(clock=lambda: now, alice={"hash": hash_of(ALICE), "expires": expires})
    assert isinstance(await known.identify(f"Bearer {ALICE}"), Identified)
    now = last
    assert await known.identify(f"Bearer {ALICE}") == "expired"


@pytest.mark.anyio
async def test_a_changed_configuration_counts_from_the_next_request_on():
    known = access(alice={"token": ALICE})
    known.reconfigure(AccessSettings(tokens={"bob": TokenSettings(token=BOB)}))
    assert await known.identify(f"Bearer {ALICE}") == "wrong"
    assert await known.identify(f"Bearer {BOB}") == Identified("bob")
    known.reconfigure(AccessSettings())
    assert known.needs_token
    assert await known.identify(f"Bearer {BOB}") == "wrong"
    assert await known.identify("") == "missing"


@pytest.mark.anyio
async def test_the_end_of_a_token_is_noticed():
    now = 0.0
    tokens: dict[str, Any] = {
        "alice": {"token": ALICE},
        "bob": {"token": BOB, "expires": datetime(2027, 1, 1, tzinfo=UTC)},
    }
    known = access(clock=lambda: now, **tokens)
    alice, bob = [await known.identify(f"Bearer {token}") for token in (ALICE, BOB)]
    assert isinstance(alice, Identified)
    assert isinstance(bob, Identified)
    ended = []

    async def wait(who: Identified):
        await known.ended(who, f"Bearer {BOB if who.principal == 'bob' else ALICE}")
        ended.append(who.principal)

    with anyio.fail_after(30):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(wait, alice)
            tasks.start_soon(wait, bob)
            await anyio.wait_all_tasks_blocked()
            known.reconfigure(AccessSettings(tokens={name: TokenSettings(**one) for name, one in tokens.items()}))
            await anyio.wait_all_tasks_blocked()
            assert ended == []
            changed = {"alice": TokenSettings(token=ALICE, upstreams=("docs",)), "bob": TokenSettings(**tokens["bob"])}
            known.reconfigure(AccessSettings(tokens=changed))
            await anyio.wait_all_tasks_blocked()
            assert ended == ["alice"]
            now = 2e9
            known.reconfigure(AccessSettings(tokens=changed))
    assert ended == ["alice", "bob"]


@pytest.mark.anyio
async def test_new_tokens_differ_and_are_recognised_by_their_hash():
    one, other = new_token(), new_token()
    assert one != other
    assert len(one) >= 40
    assert await access(a={"hash": hash_of(one)}).identify(f"Bearer {one}") == Identified("a")


@pytest.mark.parametrize(
    "token",
    [
        {},
        {"hash": hash_of(ALICE), "token": ALICE},
        {"hash": "sha256:abc"},
        {"hash": ALICE},
        {"token": "short"},
        {"token": ALICE, "principal": "local"},
        {"token": ALICE, "principal": "a b"},
        {"token": ALICE, "expires": "2027-01-01T06:00:00"},
        {"token": ALICE, "calls_per_minute": 0},
        {"token": ALICE, "unknown": 1},
    ],
)
def test_what_is_no_token_is_refused(token):
    with pytest.raises(ValidationError):
        TokenSettings(**token)


@pytest.mark.parametrize("name", ["local", "token", "", "a b", "-a"])
def test_some_names_are_not_free(name):
    with pytest.raises(ValidationError):
        AccessSettings(tokens={name: TokenSettings(token=ALICE)})


@pytest.mark.anyio
async def test_who_was_removed_stays_out_though_the_rest_of_the_configuration_is_wrong():
    known = access("http-token", alice={"hash": hash_of(ALICE)}, bob={"token": BOB}, carol={"hash": hash_of("carol")})
    tables = {"bob": {"token": "${keyring:bob}"}, "carol": {"hash": hash_of("another")}, "dave": {"hash": "x"}}
    known.narrow({"tokens": tables})
    assert await known.identify(f"Bearer {ALICE}") == await known.identify("Bearer carol") == "wrong"
    assert isinstance(await known.identify(f"Bearer {BOB}"), Identified)
    assert isinstance(await known.identify("Bearer http-token"), Identified)
    assert known.needs_token


@pytest.mark.anyio
async def test_a_hash_that_makes_way_for_a_secret_ends_the_token_though_the_rest_is_wrong():
    known = access(alice={"hash": hash_of(ALICE)}, bob={"token": BOB})
    known.narrow({"tokens": {"alice": {"token": "${keyring:alice}"}, "bob": {"hash": hash_of(BOB)}}})
    assert await known.identify(f"Bearer {ALICE}") == "wrong"
    assert isinstance(await known.identify(f"Bearer {BOB}"), Identified)


@pytest.mark.anyio
async def test_another_literal_token_ends_the_one_before_though_the_rest_is_wrong():
    known = access(alice={"token": ALICE}, bob={"token": BOB}, carol={"hash": hash_of(CAROL)})
    tables = {"alice": {"token": "mcpg_another-literal"}, "bob": {"token": BOB}, "carol": {"token": CAROL}}
    known.narrow({"tokens": tables})
    assert await known.identify(f"Bearer {ALICE}") == "wrong"
    assert isinstance(await known.identify(f"Bearer {BOB}"), Identified)
    assert isinstance(await known.identify(f"Bearer {CAROL}"), Identified)  # the same one, no longer as a hash
    known.narrow({"tokens": {**tables, "bob": {"token": "${file:bob}"}}})
    assert isinstance(await known.identify(f"Bearer {BOB}"), Identified)  # a secret is not read for this


class Known:
    """A verifier that knows a few tokens."""

    def __init__(self, **known: Identified | Fault) -> None:
        self.known = known

    async def verify(self, token: str) -> Identified | Fault | None:
        return self.known.get(token)


@pytest.mark.anyio
async def test_verifiers_are_asked_in_order_about_tokens_that_the_configuration_does_not_have():
    known = access()
    known.add(Known(carol=Identified("carol"), dave="unavailable"))
    known.add(Known(dave=Identified("dave"), erin=Identified("erin", scopes=frozenset({"mail"}))))
    assert known.needs_token
    assert await known.identify("") == "missing"
    assert await known.identify("Bearer carol") == Identified("carol")
    assert await known.identify("Bearer dave") == "unavailable"
    assert await known.identify("Bearer erin") == Identified("erin", scopes=frozenset({"mail"}))
    assert await known.identify("Bearer frank") == "wrong"


@pytest.mark.anyio
async def test_what_a_verifier_no_longer_knows_has_ended():
    verifier = Known(carol=Identified("carol"))
    known = access()
    known.add(verifier)
    with anyio.fail_after(30):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(known.ended, Identified("carol"), "Bearer carol")
            verifier.known["carol"] = "unavailable"
            known.reconfigure(AccessSettings())
            await anyio.wait_all_tasks_blocked()
            assert tasks.cancel_scope.cancel_called is False
            del verifier.known["carol"]
            known.reconfigure(AccessSettings())
