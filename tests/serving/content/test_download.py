"""`GET /content/<handle>`: under a signed link, whole or in parts, and harmless in a browser."""

import logging
from contextlib import asynccontextmanager
from functools import partial
from typing import Any

import anyio
import httpx2
import pytest

from gateway.config.http_settings import HttpSettings
from gateway.content.store import Opened, Stored
from gateway.errors import StoreUnavailable
from gateway.serving.content.content_headers import headers_of
from tests.servers.downstream_service import SampleService

pytestmark = pytest.mark.anyio

TEXT = b"0123456789" * 10


@pytest.fixture
def stored(store) -> Stored:
    return anyio.run(partial(store.put, TEXT, owner="ann", media_type="text/plain", name="zahlen größe.txt"))


def test_content_is_had_under_its_link_without_a_token(client, links, stored):
    with client() as asked:
        response = asked.get(links.link(stored, "ann"))
        head = asked.head(links.link(stored, "ann"))
    assert (response.status_code, response.content) == (200, TEXT)
    assert (head.status_code, head.content) == (200, b"")
    for one in (response, head):
        assert one.headers["content-length"] == "100"
        assert one.headers["content-type"] == "text/plain; charset=utf-8"
        assert one.headers["etag"] == f'"{stored.sha256}"'
        assert one.headers["accept-ranges"] == "bytes"
        assert one.headers["content-disposition"] == (
            "attachment; filename=\"zahlen gr__e.txt\"; filename*=UTF-8''zahlen%20gr%C3%B6%C3%9Fe.txt"
        )
        assert one.headers["x-content-type-options"] == "nosniff"
        assert one.headers["content-security-policy"].startswith("sandbox")
        assert one.headers["cache-control"].startswith("private")


@pytest.mark.parametrize(
    ("wanted", "status", "content", "said"),
    [
        ("bytes=0-9", 206, TEXT[:10], "bytes 0-9/100"),
        ("bytes=95-", 206, TEXT[95:], "bytes 95-99/100"),
        ("bytes=-3", 206, TEXT[-3:], "bytes 97-99/100"),
        ("bytes=-300", 206, TEXT, "bytes 0-99/100"),
        ("bytes=90-1000", 206, TEXT[90:], "bytes 90-99/100"),
        ("BYTES = 5-5", 206, b"5", "bytes 5-5/100"),
        ("bytes=100-", 416, b"", "bytes */100"),
        ("bytes=1000-2000", 416, b"", "bytes */100"),
        ("bytes=-0", 416, b"", "bytes */100"),
        ("bytes=9-5", 200, TEXT, None),
        ("bytes=0-1,5-6", 200, TEXT, None),
        ("bytes=", 200, TEXT, None),
        ("bytes=a-b", 200, TEXT, None),
        ("items=0-9", 200, TEXT, None),
        ("bytes=0-" + "9" * 5_000, 200, TEXT, None),
    ],
)
def test_a_part_is_sent_where_one_is_asked_for(client, links, stored, wanted, status, content, said):
    with client() as asked:
        response = asked.get(links.link(stored, "ann"), headers={"Range": wanted})
        head = asked.head(links.link(stored, "ann"), headers={"Range": wanted})
    assert (response.status_code, response.content) == (status, content)
    assert response.headers.get("content-range") == said
    assert response.headers["content-length"] == str(len(content))
    assert (head.status_code, head.headers["content-length"]) == (200, "100")  # RFC 9110, 14.2: GET alone has ranges


def test_what_a_client_has_already_is_not_sent_again(client, links, stored):
    with client() as asked:
        url, etag = links.link(stored, "ann"), stored.etag

        def status(**headers):
            named = {name.replace("_", "-"): value for name, value in headers.items()}
            return asked.get(url, headers=named).status_code

        assert status(If_None_Match=etag) == 304
        assert status(If_None_Match=f'"other", W/{etag}') == 304
        assert status(If_None_Match="*") == 304
        assert status(If_None_Match='"other"') == 200
        assert status(If_Match=etag) == 200
        assert status(If_Match='"other"') == 412
        assert status(Range="bytes=0-9", If_Range=etag) == 206
        assert status(Range="bytes=0-9", If_Range='"other"') == 200
        assert status(Range="bytes=0-9", If_Range="Wed, 21 Oct 2026 07:28:00 GMT") == 200
        assert status(Range="bytes=0-9", If_None_Match=etag) == 304
        unchanged = asked.get(url, headers={"If-None-Match": etag})
    assert (unchanged.content, unchanged.headers["etag"]) == (b"", etag)


async def test_empty_content_is_content(client, links, store):
    stored = await store.put(b"", owner="ann", media_type="text/plain")
    with client() as asked:
        response = asked.get(links.link(stored, "ann"))
        part = asked.get(links.link(stored, "ann"), headers={"Range": "bytes=0-"})
    assert (response.status_code, response.content, part.status_code) == (200, b"", 416)


async def test_links_that_are_no_good_are_refused_in_a_line(client, links, store, stored, clock):
    good = links.link(stored, "ann")
    gone = await store.put(b"gone", owner="ann", media_type="text/plain")
    of_gone = links.link(gone, "ann")
    await store.delete(gone.handle, owner="ann")
    with client() as asked:
        for url, status in (
            (f"/content/{stored.handle}", 403),
            (good + "A", 403),
            (good.replace("expires=", "expires=1"), 403),
            (good.replace(stored.handle, gone.handle), 403),
            (good.replace(stored.handle, "%2e%2e%2fetc%2fpasswd"), 404),
            (links.link(stored, "bob"), 404),  # there is no such content of his
            (of_gone, 404),
            (good.replace("/content/", "/content/x/"), 404),
            ("/content/", 404),
            ("/content", 401),
        ):
            response = asked.get(url)
            assert response.status_code == status, url
            assert len(response.content) < 300
            assert response.headers["content-type"].partition(";")[0] in ("text/plain", "application/json")
            assert "signature" not in response.text
        assert asked.get(good).status_code == 200
        assert asked.post(good).status_code == 401
        assert asked.delete(good).status_code == 401
        clock.now += 2_000
        assert asked.get(good).status_code == 410


async def test_content_that_has_expired_is_said_to_be_gone(client, links):
    from gateway.config.store_settings import StoreSettings
    from gateway.content.store import MemoryStore

    now = [0.0]
    store = MemoryStore(StoreSettings(expires=10), clock=lambda: now[0])
    stored = await store.put(TEXT, owner="ann", media_type="text/plain")
    now[0] = 11
    with client(store=store) as asked:
        response = asked.get(links.link(stored, "ann"))
    assert response.status_code == 410
    assert "it was kept for 10 s" in response.text


def test_host_and_origin_are_checked_for_links_too(client, links, stored):
    with client() as asked:
        url = links.link(stored, "ann")
        assert asked.get(url, headers={"Host": "evil.example"}).status_code == 421
        assert asked.get(url, headers={"Origin": "https://evil.example"}).status_code == 403


@pytest.mark.parametrize(
    ("media_type", "shown", "said"),
    [
        ("image/png", "inline", "image/png"),
        ("image/webp", "inline", "image/webp"),
        ("image/svg+xml", "attachment", "image/svg+xml"),
        ("text/html", "attachment", "text/html; charset=utf-8"),
        ("application/pdf", "attachment", "application/pdf"),
        ("application/xhtml+xml", "attachment", "application/xhtml+xml"),
        ("text/html\r\nX: y", "attachment", "application/octet-stream"),
        ("nonsense", "attachment", "application/octet-stream"),
    ],
)
def test_only_raster_images_are_shown_in_place_and_everything_else_is_sandboxed(media_type, shown, said):
    headers = headers_of(Stored("img_7h3k2m9q4w8x", media_type, None, 3, "0" * 64, "image", 0))
    assert headers["Content-Disposition"].startswith(shown)
    assert headers["Content-Type"] == said
    assert ("Content-Security-Policy" in headers) == (shown == "attachment")
    assert headers["X-Content-Type-Options"] == "nosniff"


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("a.png", 'inline; filename="a.png"'),
        (None, 'inline; filename="img_7h3k2m9q4w8x.png"'),
        ('a"; evil="b.png', "inline; filename=\"a__ evil=_b.png\"; filename*=UTF-8''a%22%3B%20evil%3D%22b.png"),
        ("a\r\nSet-Cookie: b", "inline; filename=\"a__Set-Cookie_ b\"; filename*=UTF-8''a%0D%0ASet-Cookie%3A%20b"),
        ("../../x/y.png", 'inline; filename="y.png"'),
    ],
)
def test_no_name_can_break_out_of_its_header(name, said):
    stored = Stored("img_7h3k2m9q4w8x", "image/png", name, 3, "0" * 64, "image", 0)
    assert headers_of(stored)["Content-Disposition"] == said


class Breaking:
    """A store that fails: when it is asked, or after its first piece."""

    def __init__(self, store, at_once: bool) -> None:
        self._store = store
        self._at_once = at_once

    async def metadata(self, handle, *, owner):
        if self._at_once:
            raise StoreUnavailable("the store cannot be reached")
        return await self._store.metadata(handle, owner=owner)

    @asynccontextmanager
    async def open(self, handle, *, owner, start=0, end=None):
        async def chunks():
            yield TEXT[:50]
            raise StoreUnavailable("the store cannot be reached")

        yield Opened(await self._store.metadata(handle, owner=owner), chunks())


def test_a_store_that_is_down_is_an_answer(client, links, store, stored):
    with client(store=Breaking(store, at_once=True)) as asked:
        response = asked.get(links.link(stored, "ann"))
    assert (response.status_code, "cannot be reached" in response.text) == (503, True)


async def test_content_that_breaks_off_is_seen_to_be_cut_and_nothing_of_the_link_is_logged(
    links, store, stored, caplog
):
    from gateway.config.content_settings import ContentSettings
    from gateway.serving.content.routes import content_routes
    from gateway.serving.mcp.handshake import Identity
    from gateway.serving.mcp.http import http_app, serve_http

    settings = HttpSettings(port=0)
    failing: Any = Breaking(store, at_once=False)
    routes = content_routes(failing, links, ContentSettings())
    app = http_app(SampleService(), settings, Identity("sample", "1.0"), content=routes)
    bound = anyio.Event()
    ports = []

    def on_bound(port):
        ports.append(port)
        bound.set()

    with caplog.at_level(logging.DEBUG), anyio.fail_after(20):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(lambda: serve_http(app, settings, on_bound=on_bound))
            await bound.wait()
            links.serve_at(f"http://127.0.0.1:{ports[0]}", b"another key of 16 characters")
            url = links.link(stored, "ann")
            async with httpx2.AsyncClient(trust_env=False) as asked:
                with pytest.raises(httpx2.RemoteProtocolError):
                    await asked.get(url)
            tasks.cancel_scope.cancel()
    assert "content broke off while it was sent" in caplog.text
    ours = [record.getMessage() for record in caplog.records if not record.name.startswith(("httpx2", "httpcore2"))]
    assert not any("signature" in message or stored.handle in message for message in ours)
