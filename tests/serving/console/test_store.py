"""The store in the console: whose content is kept, how it looks, saved and removed."""

import base64
import re
from collections.abc import Generator
from pathlib import Path

import pytest

from tests.serving.console.browser import Browser, opened

TOKEN = "the-token-of-hosts-1"
CONFIG = f'[http]\ntoken = "{TOKEN}"\n[store]\nmax_bytes_per_owner = 1_000_000\n'
PNG = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
)
SVG = b'<svg xmlns="http://www.w3.org/2000/svg" width="9" height="9"><script>alert(1)</script></svg>'


@pytest.fixture
def console(tmp_path: Path) -> Generator[Browser]:
    with opened(tmp_path / "gateway.toml", CONFIG) as browser:
        yield browser


def put(browser: Browser, content: bytes, name: str, media_type: str = "application/octet-stream") -> str:
    address = browser.base.removesuffix("/console") + "/content"
    headers = {"Content-Type": media_type, "Authorization": f"Bearer {TOKEN}"}
    answer = browser.client.post(address, params={"name": name}, content=content, headers=headers)
    assert answer.status_code in (200, 201), answer.text
    return answer.json()["handle"]


def test_what_is_kept_is_listed_drawn_saved_and_removed(console: Browser) -> None:
    assert "Nothing is kept" in console.page("/store")
    picture, text = put(console, PNG, "dot.png"), put(console, b"a <b>text</b>", "a.txt", "text/plain")
    listed = console.json("/store")
    assert [one["handle"] for one in listed["kept"]] == [text, picture]
    assert (listed["owner"], listed["owner_bytes"], listed["pieces"]) == ("token", len(PNG) + 13, 2)
    assert listed["max_bytes_per_owner"] == 1_000_000
    shown = console.json(f"/store/{picture}")
    assert shown["parts"][0]["kind"] == "image"
    assert shown["parts"][0]["pixels"] == [1, 1]
    assert shown["since"] < shown["expires"]
    assert "a &lt;b&gt;text" in console.page(f"/store/{text}")
    saved = console.client.get(f"{console.base}/api/store/{picture}/content")
    assert saved.content == PNG
    assert saved.headers["content-disposition"] == 'attachment; filename="dot.png"'
    assert saved.headers["content-type"] == "application/octet-stream"
    assert "removed" in console.part(f"/store/{picture}/remove")
    console.json(f"/store/{picture}", 404)
    console.post(f"/store/{picture}/remove", status=400)
    assert console.client.get(f"{console.base}/api/store/{picture}/content").status_code == 404
    assert console.json("/store")["count"] == 1


def test_content_of_others_is_shown_only_for_them(console: Browser) -> None:
    handle = put(console, b"mine", "mine.txt", "text/plain")
    assert console.json("/store?owner=alice")["kept"] == []
    console.json(f"/store/{handle}?owner=alice", 404)
    assert console.json("/store?owner=%ff%00<script>")["count"] == 0
    assert "<script>alert" not in console.page("/store?owner=<script>alert(1)</script>")
    assert len(console.json("/store?owner=" + "x" * 5_000)["owner"]) == 200


def test_long_lists_are_paged(console: Browser) -> None:
    handles = [put(console, f"text {number}".encode(), f"{number}.txt", "text/plain") for number in range(61)]
    first = console.json("/store")
    assert [one["handle"] for one in first["kept"]] == handles[:10:-1]
    second = console.json(f"/store?from={first['next']}")
    assert [one["handle"] for one in second["kept"]] == handles[10::-1]
    assert second["next"] is None
    assert "Older ones (11)" in console.page("/store")


def test_hostile_content_and_names_do_nothing(console: Browser) -> None:
    name = '"><script>alert(1)</script>\u202e\x1b[31m.svg'
    handle = put(console, SVG, name, "image/svg+xml")
    for page in (console.page("/store"), console.page(f"/store/{handle}")):
        assert "<script>alert" not in page
        assert "\x1b" not in page
        assert "\u202e" not in page
    saved = console.client.get(f"{console.base}/api/store/{handle}/content")
    assert saved.headers["content-security-policy"].startswith("sandbox")
    assert saved.headers["content-disposition"].startswith("attachment;")
    assert not re.search(r"[\x00-\x1f]", saved.headers["content-disposition"])
    html = put(console, b"<html><script>alert(1)</script></html>", "x.html", "text/html")
    assert "<script>alert" not in console.page(f"/store/{html}")


def test_only_its_own_pages_may_remove(console: Browser) -> None:
    handle = put(console, b"mine", "mine.txt", "text/plain")
    assert console.client.post(f"{console.base}/api/store/{handle}/remove").status_code == 403
    console.client.cookies.clear()
    assert console.client.get(f"{console.base}/api/store").status_code == 401
    assert console.client.get(f"{console.base}/api/store/{handle}/content").status_code == 401
