"""What must not work: stolen and replayed codes and tokens, forged forms, open redirects, floods."""

import re
import sqlite3
import threading
from typing import Any

import anyio
import pytest

from gateway.serving.access import Identified, tokens
from gateway.serving.authorization.sql_approvals import all_approvals, revoke
from tests.serving.authorization.conftest import BASE, CHALLENGE, PASSPHRASE, REDIRECT, Gateway, parameters_in

LOOPBACK = "http://127.0.0.1:{}/callback"


def error_of(answer: Any) -> str:
    assert answer.headers["content-type"] == "application/json"
    assert answer.headers["cache-control"] == "no-store"
    return answer.json()["error"]


# ------------------------------------------------------------------------------------------------------------- codes


def test_a_code_that_comes_again_ends_what_it_gave(gateway: Gateway) -> None:
    client_id = gateway.register()["client_id"]
    code = gateway.browser().approved(client_id)["code"]
    tokens = gateway.exchange(client_id, code).json()
    assert gateway.status_of(tokens["access_token"]) == 200
    again = gateway.exchange(client_id, code)
    assert (again.status_code, error_of(again)) == (400, "invalid_grant")
    assert gateway.status_of(tokens["access_token"]) == 401
    assert gateway.refresh(client_id, tokens["refresh_token"]).status_code == 400


def test_a_stolen_code_is_of_no_use(gateway: Gateway) -> None:
    mine = gateway.register()["client_id"]
    theirs = gateway.register("https://thief.example/callback")["client_id"]
    code = gateway.browser().approved(mine)["code"]
    assert error_of(gateway.exchange(theirs, code)) == "invalid_grant"
    assert error_of(gateway.exchange(mine, code, code_verifier="x" * 64)) == "invalid_grant"
    assert gateway.exchange(mine, code, code_verifier=CHALLENGE).status_code == 400
    assert gateway.exchange(mine, code, redirect_uri="https://thief.example/callback").status_code == 400
    assert gateway.exchange(mine, code, code_verifier="").status_code == 400
    assert gateway.exchange(mine, code, resource="https://other.example/mcp").json()["error"] == "invalid_target"
    assert gateway.exchange(mine, code).status_code == 200


def test_a_code_is_soon_too_old(gateway: Gateway) -> None:
    client_id = gateway.register()["client_id"]
    code = gateway.browser().approved(client_id)["code"]
    gateway.clock.now += 61
    assert gateway.exchange(client_id, code).status_code == 400


@pytest.mark.parametrize(
    "changed",
    [
        {"code_challenge": None},
        {"code_challenge": "short"},
        {"code_challenge_method": None},
        {"code_challenge_method": "plain"},
        {"response_type": "token"},
        {"resource": "https://other.example/mcp"},
        {"resource": f"{BASE}.evil.example/mcp"},
        {"resource": f"{BASE}/mcp/../other"},
    ],
)
def test_a_request_that_is_not_valid_gets_a_page_and_goes_nowhere_unasked(gateway: Gateway, changed: Any) -> None:
    browser = gateway.browser()
    answer = browser.open(gateway.register()["client_id"], **changed)
    assert answer.status_code == 400
    assert "location" not in answer.headers
    [back] = re.findall(r'href="([^"]*)"', answer.text)
    assert back.startswith(f"{REDIRECT}?error=")
    assert "iss=https" in back
    assert 'name="csrf"' not in answer.text


@pytest.mark.parametrize(
    "redirect_uri",
    [
        None,
        "https://thief.example/callback",
        f"{REDIRECT}/",
        f"{REDIRECT}?more=1",
        f"{REDIRECT}#fragment",
        "https://HOST.example/callback",
        "https://host.example:443/callback",
        "https://host.example/x/../callback",
        "https://host.example@thief.example/callback",
        "http://[::1",
    ],
)
def test_a_redirect_uri_is_compared_exactly(gateway: Gateway, redirect_uri: str | None) -> None:
    answer = gateway.browser().open(gateway.register()["client_id"], redirect_uri=redirect_uri)
    assert answer.status_code == 400
    assert "href" not in answer.text


def test_only_the_port_of_a_loopback_address_may_differ(gateway: Gateway) -> None:
    client_id = gateway.register(LOOPBACK.format(3000))["client_id"]
    browser = gateway.browser()
    assert browser.open(client_id, redirect_uri=LOOPBACK.format(41_234)).status_code == 200
    assert "Any program on your device" in browser.text
    for other in ("http://localhost:3000/callback", "http://127.0.0.1:3000/other", "https://127.0.0.1:3000/callback"):
        assert browser.open(client_id, redirect_uri=other).status_code == 400
    assert browser.open(client_id, redirect_uri="http://127.0.0.1:3000@thief.example/callback").status_code == 400


@pytest.mark.parametrize(
    "redirect_uri",
    [
        "javascript:alert(1)",
        "data:text/html,x",
        "http://host.example/callback",
        "https://host.example/#x",
        "https://user:word@host.example/",
        "https://host.example/\\evil",
        "file:///etc/passwd",
        "relative",
        "https://Host.example/callback",
    ],
)
def test_a_redirect_uri_that_is_no_place_for_a_code_is_not_registered(gateway: Gateway, redirect_uri: str) -> None:
    answer = gateway.http.post("/register", json={"redirect_uris": [redirect_uri]})
    assert answer.status_code == 400
    assert answer.json()["error"] in ("invalid_redirect_uri", "invalid_client_metadata")


def test_parameters_that_come_twice_are_refused(gateway: Gateway) -> None:
    client_id = gateway.register()["client_id"]
    browser = gateway.browser()
    query = browser.query(client_id)
    assert browser.http.get(f"/authorize?{query}&redirect_uri=https://thief.example/").status_code == 400
    form = "grant_type=authorization_code&code=a&code=b&client_id=c"
    answer = gateway.http.post("/token", content=form, headers={"Content-Type": "application/x-www-form-urlencoded"})
    assert error_of(answer) == "invalid_request"


# ------------------------------------------------------------------------------------------------------------ tokens


def test_refresh_tokens_are_rotated_and_one_that_comes_again_ends_all(gateway: Gateway) -> None:
    first = gateway.tokens()
    client_id = first["client_id"]
    second = gateway.refresh(client_id, first["refresh_token"]).json()
    third = gateway.refresh(client_id, second["refresh_token"]).json()
    assert len({one["refresh_token"] for one in (first, second, third)}) == 3
    assert gateway.status_of(third["access_token"]) == 200
    assert error_of(gateway.refresh(client_id, first["refresh_token"])) == "invalid_grant"
    assert gateway.status_of(third["access_token"]) == 401
    assert gateway.refresh(client_id, third["refresh_token"]).status_code == 400


def test_a_refresh_token_is_the_clients_own(gateway: Gateway) -> None:
    mine = gateway.tokens()
    other = gateway.register()["client_id"]
    assert gateway.refresh(other, mine["refresh_token"]).status_code == 400
    assert gateway.refresh(mine["client_id"], mine["access_token"]).status_code == 400
    assert gateway.refresh(mine["client_id"], mine["refresh_token"], scope="mcp admin").status_code == 400
    assert gateway.refresh(mine["client_id"], mine["refresh_token"]).status_code == 200


def test_of_two_uses_at_once_one_wins_at_most(gateway: Gateway) -> None:
    tokens = gateway.tokens()
    statuses: list[int] = []

    def use() -> None:
        statuses.append(gateway.refresh(tokens["client_id"], tokens["refresh_token"]).status_code)

    threads = [threading.Thread(target=use) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert statuses.count(200) <= 1
    assert statuses.count(400) >= 3


def test_a_token_is_not_accepted_once_it_expires(gateway: Gateway) -> None:
    tokens = gateway.tokens()
    gateway.clock.now += 3_599
    assert gateway.status_of(tokens["access_token"]) == 200
    gateway.clock.now += 2
    assert gateway.status_of(tokens["access_token"]) == 401
    assert gateway.refresh(tokens["client_id"], tokens["refresh_token"]).status_code == 200


def test_an_approval_ends_however_often_it_is_renewed(opened: Any) -> None:
    with opened({"approval_lifetime": "2h"}) as gateway:
        tokens = gateway.tokens()
        gateway.clock.now += 5_400
        renewed = gateway.refresh(tokens["client_id"], tokens["refresh_token"]).json()
        assert renewed["expires_in"] == 1_800
        gateway.clock.now += 1_801
        assert gateway.status_of(renewed["access_token"]) == 401
        assert gateway.refresh(tokens["client_id"], renewed["refresh_token"]).status_code == 400


@pytest.mark.parametrize("token", ["", "mcpa_", "mcpa_" + "x" * 43, "mcpa_é", "x"])
def test_what_is_no_token_opens_nothing(gateway: Gateway, token: str) -> None:
    headers = {b"Authorization": f"Bearer {token}".encode()}
    assert gateway.http.post("/mcp", json={}, headers=headers).status_code == 401


def test_a_token_in_a_query_is_refused(gateway: Gateway) -> None:
    token = gateway.tokens()["access_token"]
    assert gateway.http.post(f"/mcp?access_token={token}", json={}).status_code == 400


def test_a_revoked_token_is_refused_and_so_is_its_family(gateway: Gateway) -> None:
    tokens = gateway.tokens()
    other = gateway.tokens()
    client_id = tokens["client_id"]

    def revoked(token: str, client: str) -> int:
        return gateway.http.post("/revoke", data={"token": token, "client_id": client}).status_code

    assert revoked(tokens["refresh_token"], other["client_id"]) == 200
    assert gateway.status_of(tokens["access_token"]) == 200
    assert revoked("unknown", client_id) == 200
    assert revoked(tokens["refresh_token"], client_id) == 200
    assert gateway.status_of(tokens["access_token"]) == 401
    assert gateway.refresh(client_id, tokens["refresh_token"]).status_code == 400
    assert gateway.status_of(other["access_token"]) == 200
    assert revoked(other["access_token"], "nobody") == 401


def test_what_a_revoked_host_has_opened_ends(gateway: Gateway, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tokens, "_VERIFY_SECONDS", 0.02)
    given = gateway.tokens()
    access, header = gateway.access, f"Bearer {given['access_token']}"

    async def stream() -> None:
        found = await access.identify(header)
        assert isinstance(found, Identified)
        with anyio.move_on_after(0.1) as still_open:
            await access.ended(found, header)
        assert still_open.cancelled_caught
        [approval] = gateway.database.run_now(lambda connection: all_approvals(connection, gateway.clock.now))
        gateway.database.run_now(lambda connection: revoke(connection, approval.id))
        gateway.clock.now += 5
        with anyio.fail_after(60):
            await access.ended(found, header)

    anyio.run(stream)


def test_nothing_secret_is_in_the_database(gateway: Gateway) -> None:
    client = gateway.register(token_endpoint_auth_method="client_secret_post")
    code = gateway.browser().approved(client["client_id"])["code"]
    tokens = gateway.exchange(client["client_id"], code, client_secret=client["client_secret"]).json()
    gateway.database.close()
    [path, *others] = sorted(gateway.state.parent.iterdir())
    written = b"".join(one.read_bytes() for one in (path, *others))
    for secret in (code, tokens["access_token"], tokens["refresh_token"], client["client_secret"], PASSPHRASE):
        assert secret.encode() not in written
    assert path.stat().st_mode & 0o777 == 0o600
    assert path.parent.stat().st_mode & 0o777 == 0o700


# ------------------------------------------------------------------------------------------------------------- pages


def test_a_page_cannot_be_framed_and_has_no_script(gateway: Gateway) -> None:
    browser = gateway.browser()
    browser.open(gateway.register()["client_id"])
    for page in (browser.page, browser.log_in()):
        policy = page.headers["content-security-policy"]
        assert "frame-ancestors 'none'" in policy
        assert "default-src 'none'" in policy
        assert "script" not in policy
        assert page.headers["x-frame-options"] == "DENY"
        assert page.headers["cache-control"] == "no-store"
        assert "<script" not in page.text


def test_what_a_host_calls_itself_is_only_text(gateway: Gateway) -> None:
    name = '</h1><script>alert("x")</script>\u202e<b>'
    browser = gateway.browser()
    browser.open(gateway.register(client_name=name)["client_id"])
    browser.log_in()
    assert "<script" not in browser.page.text
    assert "\u202e" not in browser.page.text


def test_a_form_from_elsewhere_is_refused(gateway: Gateway) -> None:
    client_id = gateway.register()["client_id"]
    victim, thief = gateway.browser(), gateway.browser()
    victim.open(client_id)
    thief.open(client_id)
    [csrf] = re.findall(r'name="csrf" value="([^"]*)"', thief.page.text)[:1]
    form = {"name": "alice", "passphrase": PASSPHRASE, "action": "login"}
    address = str(victim.page.url)
    assert victim.http.post(address, data=form).status_code == 400
    assert victim.http.post(address, data={**form, "csrf": csrf}).status_code == 400
    foreign = {"Origin": "https://evil.example"}
    assert victim.http.post(address, data={**form, "csrf": csrf}, headers=foreign).status_code == 403
    [own] = set(re.findall(r'name="csrf" value="([^"]*)"', victim.page.text))
    same = {"Origin": BASE}
    assert victim.http.post(address, data={**form, "csrf": own}, headers=same).status_code == 303


def test_the_approval_page_belongs_to_one_browser_and_is_used_once(gateway: Gateway) -> None:
    client_id = gateway.register()["client_id"]
    victim, thief = gateway.browser(), gateway.browser()
    victim.open(client_id)
    victim.log_in()
    thief.open(client_id)
    address = str(victim.page.url)
    assert thief.http.get(address).status_code == 400
    [csrf] = re.findall(r'name="csrf" value="([^"]*)"', thief.page.text)[:1]
    assert thief.http.post(address, data={"csrf": csrf, "action": "approve"}).status_code == 400
    [own] = re.findall(r'name="csrf" value="([^"]*)"', victim.page.text)[:1]
    assert "code" in parameters_in(victim.http.post(address, data={"csrf": own, "action": "approve"}))
    assert victim.http.post(address, data={"csrf": own, "action": "approve"}).status_code == 400


def test_nobody_is_approved_by_denying_or_cancelling(gateway: Gateway) -> None:
    client_id = gateway.register()["client_id"]
    browser = gateway.browser()
    browser.open(client_id)
    assert parameters_in(browser.send("deny")) == {"error": "access_denied", "state": "a state", "iss": BASE}
    browser.open(client_id)
    browser.log_in()
    assert parameters_in(browser.send("deny"))["error"] == "access_denied"


def test_who_has_not_logged_in_sees_no_upstream(gateway: Gateway) -> None:
    browser = gateway.browser()
    browser.open(gateway.register()["client_id"])
    assert "Some Host" in browser.text
    assert "host.example" in browser.text
    assert "github" not in browser.page.text
    assert "alice" not in browser.page.text
    browser.log_in("bob")
    assert "docs: all tools" in browser.text
    assert "github" not in browser.page.text


def test_guessing_passphrases_gets_slower_for_everybody(gateway: Gateway, caplog: pytest.LogCaptureFixture) -> None:
    gateway.server._persons._attempts._clock = lambda: 0.0  # the pause is a second, and six attempts may take longer
    client_id = gateway.register()["client_id"]
    statuses: list[int] = []
    for _ in range(6):
        browser = gateway.browser()
        browser.open(client_id)
        statuses.append(browser.log_in("alice", "not the passphrase").status_code)
    assert statuses == [403] * 5 + [429]
    browser = gateway.browser()
    browser.open(client_id)
    answer = browser.log_in("alice")
    assert answer.status_code == 429
    assert int(answer.headers["retry-after"]) >= 1
    browser.open(client_id)
    assert browser.log_in("bob").status_code == 200
    assert "a wrong passphrase for alice" in caplog.text
    assert "not the passphrase" not in caplog.text


def test_names_are_not_given_away(gateway: Gateway, caplog: pytest.LogCaptureFixture) -> None:
    client_id = gateway.register()["client_id"]
    answers = []
    for name in ("alice", "a name that nobody has"):
        browser = gateway.browser()
        browser.open(client_id)
        browser.log_in(name, "not the passphrase")
        answers.append((browser.page.status_code, browser.text))
    assert answers[0] == answers[1]
    assert "a name that nobody has" not in caplog.text


def test_names_that_nobody_has_are_one_line_in_the_log(gateway: Gateway, caplog: pytest.LogCaptureFixture) -> None:
    gateway.server._persons._lines._clock = lambda: 0.0
    browser = gateway.browser()
    browser.open(gateway.register()["client_id"])
    for number in range(5):
        browser.log_in(f"nobody{number}", "not the passphrase")
    assert caplog.text.count("a wrong passphrase for somebody unknown") == 1


# ---------------------------------------------------------------------------------------------------- the audit trail


def test_who_listens_is_told_of_wrong_passphrases_and_only_of_names_that_somebody_has(gateway: Gateway) -> None:
    told: list[tuple[str, str, str]] = []
    gateway.server.listeners.login_refused = lambda *about: told.append(about)
    client_id = gateway.register()["client_id"]
    for name in ("alice", "not the passphrase"):
        browser = gateway.browser()
        browser.open(client_id)
        browser.log_in(name, "not the passphrase")
    assert told == [("alice", "testclient", "a wrong passphrase"), ("", "testclient", "a wrong passphrase")]


@pytest.mark.parametrize("comes_again", ["code", "refresh token"])
def test_who_listens_is_told_of_approvals_and_of_those_that_end(gateway: Gateway, comes_again: str) -> None:
    told: list[tuple[str, ...]] = []
    gateway.server.listeners.host_approval = lambda *about: told.append(about)
    client_id = gateway.register()["client_id"]
    code = gateway.browser().approved(client_id)["code"]
    tokens = gateway.exchange(client_id, code).json()
    if comes_again == "code":
        gateway.exchange(client_id, code)
    else:
        gateway.refresh(client_id, tokens["refresh_token"])
        gateway.refresh(client_id, tokens["refresh_token"])
    approved, ended = told
    assert (approved[0], approved[1], approved[3:]) == ("alice", "approved", ("Some Host", "host.example"))
    assert ended == ("alice", "ended, because a code or refresh token came again", *approved[2:])


def test_who_listens_is_told_once_when_a_host_gives_its_approval_up(gateway: Gateway) -> None:
    told: list[tuple[str, ...]] = []
    tokens, other = gateway.tokens(), gateway.tokens()
    gateway.server.listeners.host_approval = lambda *about: told.append(about)
    for client_id in (other["client_id"], tokens["client_id"], tokens["client_id"]):
        form = {"token": tokens["access_token"], "client_id": client_id}
        assert gateway.http.post("/revoke", data=form).status_code == 200
    [(person, outcome, _, *host)] = told
    assert (person, outcome, host) == ("alice", "revoked by its host", ["Some Host", "host.example"])


def test_behind_a_trusted_proxy_the_address_is_the_clients(opened: Any) -> None:
    told: list[str] = []
    with opened(proxies=("10.0.0.0/8",), peer="10.0.0.1") as gateway:
        gateway.access.on_refusal = lambda address, fault: told.append(address)
        for headers in (
            {},
            {"X-Forwarded-For": "203.0.113.9"},
            {"X-Forwarded-For": "198.51.100.1, 203.0.113.9, 10.0.0.2"},
            {"Forwarded": 'for=198.51.100.1, for="[2001:db8::9]:4711";proto=https, for=10.0.0.2'},
            {"X-Forwarded-For": "203.0.113.9:4711", "Forwarded": "for=203.0.113.9"},
            {"X-Forwarded-For": "203.0.113.9", "Forwarded": "for=198.51.100.1"},
            {"X-Forwarded-For": "203.0.113.9, unknown, 10.0.0.3"},
            {"X-Forwarded-For": "nonsense"},
            {"X-Forwarded-For": ", " * 5_000},
            {"X-Forwarded-For": "::ffff:203.0.113.9"},
        ):
            gateway.http.get("/mcp", headers={"Authorization": "Bearer mcpg_wrong", **headers})
    mine = "203.0.113.9"
    assert told == ["10.0.0.1", mine, mine, "2001:db8::9", mine, "10.0.0.1", "10.0.0.3", "10.0.0.1", "10.0.0.1", mine]


def test_a_peer_that_is_no_trusted_proxy_cannot_name_an_address(opened: Any) -> None:
    told: list[str] = []
    with opened(proxies=("10.0.0.0/8",), peer="192.0.2.1") as gateway:
        gateway.server.listeners.login_refused = lambda principal, address, why: told.append(address)
        browser = gateway.browser(**{"X-Forwarded-For": "203.0.113.9"})
        browser.open(gateway.register()["client_id"])
        browser.send("login", name="alice", passphrase="wrong")
    assert told == ["192.0.2.1"]


# ------------------------------------------------------------------------------------------------------------ floods


def test_a_flood_of_registrations_is_slowed(gateway: Gateway) -> None:
    statuses = [gateway.http.post("/register", json={"redirect_uris": [REDIRECT]}).status_code for _ in range(25)]
    assert statuses[:20] == [201] * 20
    assert statuses[-1] == 429


def test_registered_hosts_are_bounded_and_those_in_use_stay(opened: Any) -> None:
    with opened({"max_clients": 3}) as gateway:
        tokens = gateway.tokens()
        ids = [gateway.register()["client_id"] for _ in range(4)]
        assert gateway.browser().open(ids[0]).status_code == 400
        assert gateway.browser().open(ids[-1]).status_code == 200
        assert gateway.refresh(tokens["client_id"], tokens["refresh_token"]).status_code == 200
        for client_id in ids[-2:]:
            gateway.tokens(client_id)
        refused = gateway.http.post("/register", json={"redirect_uris": [REDIRECT]})
        assert "too many" in refused.json()["error_description"]


def test_a_host_that_nobody_approves_is_forgotten(gateway: Gateway) -> None:
    old = gateway.register()["client_id"]
    gateway.clock.now += 86_401
    gateway.register()
    assert gateway.browser().open(old).status_code == 400


@pytest.mark.parametrize(
    "body", [b"", b"[]", b"{", b"[" * 9_000, b'{"redirect_uris": []}', b"{}", b'{"redirect_uris": ["x"]}', b"\xff"]
)
def test_a_registration_that_is_none_is_refused(gateway: Gateway, body: bytes) -> None:
    answer = gateway.http.post("/register", content=body)
    assert answer.status_code == 400
    assert answer.json()["error"] in ("invalid_client_metadata", "invalid_redirect_uri")


@pytest.mark.parametrize("path", ["/register", "/token", "/revoke"])
def test_a_large_body_is_not_read(gateway: Gateway, path: str) -> None:
    headers = {"Content-Type": "application/x-www-form-urlencoded"}
    answer = gateway.http.post(path, content=b"x" * 100_000, headers=headers)
    assert (answer.status_code, error_of(answer)) == (400, "invalid_request")


@pytest.mark.parametrize("path", ["/token", "/revoke"])
def test_a_form_of_another_kind_is_refused(gateway: Gateway, path: str) -> None:
    answer = gateway.http.post(path, json={"grant_type": "authorization_code"})
    assert error_of(answer) == "invalid_request"


def test_grants_that_are_not_offered_are_refused(gateway: Gateway) -> None:
    for grant in ("password", "client_credentials", "implicit", ""):
        assert error_of(gateway.token(grant_type=grant, client_id="x")) == "unsupported_grant_type"


# ---------------------------------------------------------------------------------------------------- clients' secrets


@pytest.mark.parametrize("method", ["client_secret_post", "client_secret_basic", "private_key_jwt"])
def test_a_client_with_a_secret_has_to_send_it(gateway: Gateway, method: str) -> None:
    client = gateway.register(token_endpoint_auth_method=method)
    client_id, secret = client["client_id"], client["client_secret"]
    code = gateway.browser().approved(client_id)["code"]
    assert error_of(gateway.exchange(client_id, code)) == "invalid_client"
    assert gateway.exchange(client_id, code, client_secret="wrong").status_code == 401
    form = {"grant_type": "authorization_code", "code": code, "redirect_uri": REDIRECT, "code_verifier": "v" * 64}
    answer = gateway.http.post("/token", data=form, auth=(client_id, secret))
    assert answer.status_code == 200
    both = {**form, "client_id": client_id, "client_secret": secret}
    assert gateway.http.post("/token", data=both, auth=(client_id, secret)).status_code == 400


# -------------------------------------------------------------------------------------------------- people and state


def test_who_is_removed_is_refused_at_once(gateway: Gateway) -> None:
    alice, bob = gateway.tokens(name="alice"), gateway.tokens(name="bob")
    gateway.server.narrow({"bob": {"hash": "scrypt:something else"}})
    assert gateway.status_of(alice["access_token"]) == 401
    assert gateway.status_of(bob["access_token"]) == 401
    assert gateway.refresh(alice["client_id"], alice["refresh_token"]).status_code == 400


def test_a_database_that_is_gone_is_begun_again(gateway: Gateway) -> None:
    tokens = gateway.tokens()
    for path in gateway.state.parent.iterdir():
        path.unlink()
    gateway.server._forget()
    assert gateway.status_of(tokens["access_token"]) == 401
    assert gateway.status_of(gateway.tokens()["access_token"]) == 200


def test_a_database_that_cannot_be_used_is_said_and_refuses_no_token_for_good(gateway: Gateway) -> None:
    tokens = gateway.tokens()
    client_id = gateway.register()["client_id"]
    gateway.database.run_now(lambda connection: connection.execute("ALTER TABLE approvals RENAME TO gone"))
    gateway.server._forget()
    assert gateway.status_of(tokens["access_token"]) == 503
    answer = gateway.refresh(tokens["client_id"], tokens["refresh_token"])
    assert (answer.status_code, error_of(answer)) == (503, "temporarily_unavailable")
    browser = gateway.browser()
    browser.open(client_id)
    browser.log_in()
    assert browser.send("approve").status_code == 503
    assert "Try again later" in browser.text
    gateway.database.run_now(lambda connection: connection.execute("ALTER TABLE gone RENAME TO approvals"))
    assert gateway.status_of(tokens["access_token"]) == 200


def test_a_database_that_others_hold_is_waited_for(gateway: Gateway) -> None:
    gateway.register()
    other = sqlite3.connect(gateway.state, check_same_thread=False)
    other.execute("BEGIN IMMEDIATE")
    timer = threading.Timer(0.2, other.rollback)
    timer.start()
    assert gateway.register()["client_id"]
    timer.join()
    other.close()
