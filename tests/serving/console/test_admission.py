"""Who may see the console."""

import anyio
import httpx2
import pytest
from starlette.applications import Starlette
from starlette.routing import Mount

from gateway.serving.access.identified import Fault, Identified
from gateway.serving.console.admission import COOKIE, FORM_TOKEN
from gateway.serving.console.routes import console_mounts
from gateway.serving.console.sessions import ConsoleSessions, form_token
from tests.serving.console.conftest import Shown, shown

pytestmark = pytest.mark.anyio

PATHS = ("/", "/calls", "/calls/1", "/events", "/api", "/api/calls", "/api/media/x", "/nowhere")


async def identify(authorization: str) -> Identified | Fault:
    return {
        "Bearer admin": Identified("ann", is_admin=True),
        "Bearer plain": Identified("bob"),
    }.get(authorization, "wrong")


@pytest.mark.parametrize("path", PATHS)
async def test_nobody_sees_anything_without_a_key(path: str) -> None:
    async with shown({}) as one:
        for headers in ({}, {"Authorization": "Bearer x"}, {"Cookie": f"{COOKIE}=guess"}):
            answer = await one.get(path, **headers)
            assert answer.status_code == 401
            assert "default-src 'none'" in answer.headers["content-security-policy"]


async def test_a_key_lets_one_browser_in_once(caplog: pytest.LogCaptureFixture) -> None:
    async with shown({}) as one:
        key = one.console.sessions.new_key()
        answer = await one.get(f"/enter?key={key}")
        assert (answer.status_code, answer.headers["location"]) == (303, "/console/")
        cookie = answer.headers["set-cookie"]
        assert "HttpOnly" in cookie
        assert "SameSite=lax" in cookie
        assert "Path=/console" in cookie
        assert (await one.get("/")).status_code == 200
        one.browser.cookies.clear()
        again = await one.get(f"/enter?key={key}")
        assert (again.status_code, "was used before" in again.text) == (401, True)
        assert "mcp-gateway console" in again.text
        (said,) = [record.getMessage() for record in caplog.records if "address of the console" in record.getMessage()]
        assert "a one-time address of the console that was used before (`mcp-gateway console` makes" in said
        assert key not in said


async def test_consoles_of_several_gateways_stay_open_beside_each_other() -> None:
    async with shown({}) as one, shown({}) as other:
        other.browser.cookies = one.browser.cookies  # a browser sends them to all ports
        for shows, port in ((one, 7001), (other, 7002)):
            key = shows.console.sessions.new_key()
            answer = await shows.browser.get(f"http://127.0.0.1:{port}/console/enter?key={key}")
            assert answer.status_code == 303
        for shows, port in ((one, 7001), (other, 7002)):
            assert (await shows.browser.get(f"http://127.0.0.1:{port}/console/calls")).status_code == 200


async def test_the_token_of_an_admin_opens_it_and_no_other() -> None:
    async with shown({}, identify) as one:
        assert (await one.get("/api/calls", Authorization="Bearer admin")).status_code == 200
        assert (await one.get("/api/calls", Authorization="Bearer plain")).status_code == 401
        for token, status in (("plain", 403), ("", 403), ("é", 403), ("admin", 303)):
            answer = await one.browser.post("/console/enter", data={"token": token})
            assert answer.status_code == status
        assert (await one.get("/calls")).status_code == 200
        assert (await one.browser.post("/console/enter", content=b"token=" + b"x" * 10_000)).status_code == 413


async def test_an_admin_looks_and_does_nothing() -> None:
    async with shown({}, identify) as one:
        by_header = await one.browser.post("/console/api/changes/show", headers={"Authorization": "Bearer admin"})
        assert (by_header.status_code, "only looks" in by_header.json()["error"]) == (403, True)
        assert (await one.browser.post("/console/enter", data={"token": "admin"})).status_code == 303
        token = form_token(one.browser.cookies[COOKIE])
        for path in ("/changes/write", "/try/tools/x", "/calibration/begin", "/save/codex", "/servers/x/restart"):
            answer = await one.browser.post(f"/console{path}", headers={FORM_TOKEN: token})
            assert answer.status_code == 403
            part = await one.browser.post(f"/console{path}", headers={FORM_TOKEN: token, "HX-Request": "true"})
            assert (part.status_code, 'role="alert"' in part.text) == (200, True)
        await one.enter()
        answer = await one.browser.post("/console/api/servers/x/restart")
        assert answer.status_code == 400  # there is no such server


async def test_a_token_that_is_withdrawn_ends_its_session() -> None:
    known = {"Bearer admin": Identified("ann", is_admin=True)}

    async def asked(authorization: str) -> Identified | Fault:
        return known.get(authorization, "wrong")

    async with shown({}, asked) as one:
        assert (await one.browser.post("/console/enter", data={"token": "admin"})).status_code == 303
        assert (await one.get("/calls")).status_code == 200
        known.clear()
        assert (await one.get("/calls")).status_code == 401


async def test_forms_come_from_its_own_pages(media: Shown) -> None:
    assert (await media.browser.post("/console/calls")).status_code == 405
    del media.browser.headers[FORM_TOKEN]
    for given in ("", "0" * 64, b"\xe9"):
        answer = await media.browser.post("/console/calls", headers={FORM_TOKEN: given} if given else {})  # type: ignore[dict-item]
        assert (answer.status_code, "error" in answer.json()) == (403, True)


async def test_what_is_asked_for_is_read_from_the_path_alone() -> None:
    async with shown({}) as one:
        for host in ("127.0.0.1:/console/static/?", "127.0.0.1/console/static/?", "127.0.0.1:80/console/enter?"):
            answer = await one.browser.post("/console/api/changes/write", headers={"Host": host})
            assert answer.status_code == 401


async def test_guesses_of_tokens_are_slowed_down() -> None:
    async with shown({}, identify) as one:
        began = anyio.current_time()
        for number in range(5):
            assert (await one.get("/api/calls", Authorization=f"Bearer guess-{number}")).status_code == 401
        assert anyio.current_time() - began > 0.2


async def test_what_it_looks_like_needs_no_key() -> None:
    async with shown({}) as one:
        for name in ("console.css", "console.js", "htmx.min.js", "icon.svg"):
            assert (await one.get(f"/static/{name}")).status_code == 200
        assert (await one.get("/static/../sessions.py")).status_code in (401, 404)
        assert (await one.get("/static/%2e%2e/sessions.py")).status_code == 404


def test_keys_and_sessions_end() -> None:
    now = 0.0
    sessions = ConsoleSessions(lambda: now)
    late, key = sessions.new_key(), sessions.new_key()
    session = sessions.redeem(key)
    assert session is not None
    assert sessions.redeem(key) is None
    assert sessions.authorization_of(session) == ""
    now = 601.0
    assert sessions.redeem(late) is None
    now = 12 * 3_600.0
    assert sessions.authorization_of(session) is not None
    now += 12 * 3_600 + 1
    assert sessions.authorization_of(session) is None
    assert sessions.authorization_of("") is None


def test_there_are_not_any_number_of_keys_and_sessions() -> None:
    sessions = ConsoleSessions()
    first = sessions.new_key()
    opened = sessions.open()
    for _ in range(64):
        sessions.new_key()
        sessions.open()
    assert sessions.redeem(first) is None
    assert sessions.authorization_of(opened) is None


@pytest.mark.parametrize("front", ["", "/base/path"])
async def test_the_address_without_its_slash_leads_to_the_one_with_it(front: str) -> None:
    async with shown({}) as one:
        app = Starlette(routes=[Mount(front, routes=console_mounts("/console-a_-B", one.console))])
        app.router.redirect_slashes = False  # as the gateway's HTTP app has it
        transport = httpx2.ASGITransport(app)
        async with httpx2.AsyncClient(transport=transport, base_url="http://127.0.0.1") as browser:
            answer = await browser.get(f"{front}/console-a_-B?a=1&b=%2F%2Felsewhere", headers={"Host": "elsewhere"})
            assert answer.status_code == 307
            assert answer.headers["location"] == "console-a_-B/?a=1&b=%2F%2Felsewhere"  # wherever a proxy has put it
            to = answer.url.join(answer.headers["location"])
            assert to.path == f"{front}/console-a_-B/"
            assert (await browser.get(to)).status_code == 401  # which is there, and asks who it is
