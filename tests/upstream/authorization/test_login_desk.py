"""Offers of logins: who may use a link, how often, and for how long."""

from collections.abc import Callable, Collection, Mapping, Sequence

import pytest

from gateway.errors import ConfigError, InvalidRequest, LoginFailed
from gateway.upstream.authorization.login_desk import LIFETIME, LoginDesk
from gateway.upstream.authorization.ports import Credentials, LoginKey, PendingLogin

pytestmark = pytest.mark.anyio

SECRET = "the secret of a browser"


class Logins:
    """Begins and completes whatever is asked."""

    def __init__(self) -> None:
        self.named: Callable[[str], str] = str
        self.begun: dict[str, LoginKey] = {}

    async def begin(
        self, upstream: str, principal: str, redirect_uri: str, *, scopes: Sequence[str] = ()
    ) -> PendingLogin:
        state = f"state-{len(self.begun)}"
        self.begun[state] = LoginKey(principal, upstream, redirect_uri)
        return PendingLogin(f"https://login.example/?state={state}", state)

    async def complete(self, state: str, query: Mapping[str, str], *, principal: str | None = None) -> LoginKey:
        if "error" in query:
            raise LoginFailed("notes", "was refused")
        key = self.begun.pop(state)
        assert key.principal == principal
        return key

    async def token(self, upstream: str, principal: str, url: str | None = None) -> Credentials | None:
        raise NotImplementedError

    async def challenged(
        self,
        upstream: str,
        principal: str,
        sent: Credentials | None,
        status: int,
        www_authenticate: Sequence[str],
        url: str | None = None,
    ) -> Credentials | None:
        raise NotImplementedError

    async def principals(self, upstream: str) -> Collection[str]:
        raise NotImplementedError

    async def reread(self, upstream: str, principal: str) -> None:
        raise NotImplementedError

    async def forget(self, upstream: str, principal: str) -> None:
        raise NotImplementedError


class Clock:
    """A clock that a test sets."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


async def place(_: str) -> str:
    return "https://gateway.example/base"


Ended = tuple[str, str, str | None]


def made(clock: Clock | None = None) -> tuple[LoginDesk, list[Ended]]:
    ended: list[Ended] = []
    desk = LoginDesk(Logins(), lambda *login: ended.append(login), clock=clock or Clock())
    desk.serve_at(place)
    return desk, ended


async def test_a_login_is_offered_begun_and_completed_once() -> None:
    desk, ended = made()
    offer = await desk.offer("notes", "alice")
    assert offer is not None
    assert offer.url == f"https://gateway.example/base/oauth/login/{offer.ticket}"
    assert not await offer.wait(0)
    assert (await desk.begin(offer.ticket, SECRET)).startswith("https://login.example/")
    completed = await desk.complete({"state": "state-0", "code": "x"}, SECRET)
    assert completed is offer
    assert await offer.wait(0)
    assert ended == [("notes", "alice", "https://gateway.example/base/oauth/callback")]
    with pytest.raises(InvalidRequest, match="completed already"):
        await desk.complete({"state": "state-0", "code": "x"}, SECRET)
    with pytest.raises(InvalidRequest, match="used already"):
        await desk.begin(offer.ticket, SECRET)


async def test_without_a_place_nothing_is_offered() -> None:
    assert await LoginDesk(Logins(), lambda *_: None).offer("notes", "alice") is None


async def test_a_place_that_cannot_be_opened_is_the_upstreams_failure() -> None:
    async def busy(_: str) -> str:
        raise ConfigError("cannot listen", remedy="choose another port")

    desk, _ = made()
    desk.serve_at(busy)
    with pytest.raises(LoginFailed, match=r"upstream 'notes': cannot listen \(choose another port\)"):
        await desk.offer("notes", "alice")


async def test_hosts_of_one_principal_share_a_link_and_principals_do_not() -> None:
    desk, _ = made()
    mine = await desk.offer("notes", "alice")
    assert await desk.offer("notes", "alice") is mine
    assert await desk.offer("notes", "bob") is not mine
    assert await desk.offer("other", "alice") is not mine


async def test_a_link_expires() -> None:
    clock = Clock()
    desk, ended = made(clock)
    offer = await desk.offer("notes", "alice")
    assert offer is not None
    await desk.begin(offer.ticket, SECRET)
    clock.now = LIFETIME
    with pytest.raises(InvalidRequest, match="has expired"):
        desk.find(offer.ticket)
    with pytest.raises(InvalidRequest, match="has expired"):
        await desk.complete({"state": "state-0", "code": "x"}, SECRET)
    assert ended == []
    assert await desk.offer("notes", "alice") is not offer


@pytest.mark.parametrize("secret", ["", "the secret of another browser"])
async def test_only_the_browser_that_began_it_completes_it(secret: str) -> None:
    desk, ended = made()
    offer = await desk.offer("notes", "alice")
    assert offer is not None
    await desk.begin(offer.ticket, SECRET)
    with pytest.raises(LoginFailed, match="begun in another browser"):
        await desk.complete({"state": "state-0", "code": "x"}, secret)
    with pytest.raises(InvalidRequest):  # its state works once, whoever used it
        await desk.complete({"state": "state-0", "code": "x"}, SECRET)
    assert ended == [("notes", "alice", None)]


async def test_a_refused_or_abandoned_login_can_be_begun_again_with_the_same_link() -> None:
    desk, ended = made()
    offer = await desk.offer("notes", "alice")
    assert offer is not None
    await desk.begin(offer.ticket, SECRET)
    await desk.begin(offer.ticket, SECRET)
    with pytest.raises(LoginFailed, match="was refused"):
        await desk.complete({"state": "state-0", "error": "access_denied"}, SECRET)
    await desk.complete({"state": "state-1", "code": "x"}, SECRET)
    assert [issuer is not None for _, _, issuer in ended] == [False, True]


async def test_links_and_attempts_are_bounded() -> None:
    desk, _ = made()
    first = await desk.offer("notes", "alice")
    bobs = await desk.offer("notes", "bob")
    assert first is not None
    assert bobs is not None
    for number in range(20):
        await desk.begin(first.ticket, SECRET)
        assert await desk.offer(f"u{number}", "alice") is not None
    with pytest.raises(InvalidRequest):
        await desk.complete({"state": "state-0", "code": "x"}, SECRET)
    assert desk.find(first.ticket) is first
    for number in range(40):
        await desk.offer(f"v{number}", "alice")
    with pytest.raises(InvalidRequest):
        desk.find(first.ticket)
    assert desk.find(bobs.ticket) is bobs


async def test_a_login_that_was_given_in_another_way_ends_the_wait() -> None:
    desk, _ = made()
    offer = await desk.offer("notes", "alice")
    other = await desk.offer("notes", "bob")
    assert offer is not None
    assert other is not None
    desk.logged_in("notes", "alice")
    assert await offer.wait(0)
    assert not await other.wait(0)


async def test_no_secret_is_in_what_may_be_logged() -> None:
    desk, _ = made()
    offer = await desk.offer("notes", "alice")
    assert offer is not None
    assert offer.ticket not in repr(offer)
