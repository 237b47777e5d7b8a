"""Signed links: whom they let in, and for how long."""

import logging
import os
import stat
from urllib.parse import parse_qs, urlsplit

import pytest

from gateway.content.links.base_url import answering_under
from gateway.content.links.links import Links, link_key
from gateway.content.store import Stored
from gateway.errors import BadLink, ExpiredLink
from gateway.telemetry.content import shorten_json

HANDLE = "img_7h3k2m9q4w8x"
STORED = Stored(HANDLE, "image/png", None, 3, "0" * 64, "image", 0)
KEY = b"a key of at least 16 characters"


def parts(link: str) -> tuple[str, str, str]:
    """Handle, expires and signature of a link."""
    url = urlsplit(link)
    query = parse_qs(url.query)
    assert url.path.startswith("/content/")
    return url.path.rpartition("/")[2], query["expires"][0], query["signature"][0]


@pytest.mark.parametrize("owner", ["local", "token", "ann@example.com", "", "ö" * 200, "\udcff"])
def test_a_link_tells_whose_content_it_opens_to_the_gateway_alone(links, owner):
    link = links.link(STORED, owner)
    assert links.owner(*parts(link)) == owner
    if owner:
        assert owner not in link


def test_a_link_that_was_changed_anywhere_is_refused(links):
    handle, expires, signature = parts(links.link(STORED, "ann"))
    other = parts(links.link(STORED, "bob"))[2]
    changed = [
        ("img_000000000000", expires, signature),
        ("../img_7h3k2m9q4w8x", expires, signature),
        (handle, str(int(expires) + 1), signature),
        (handle, expires, other[:43] + signature[43:]),
        (handle, expires, signature[:43] + other[43:]),
        (handle, expires, signature + "A"),
        (handle, expires, signature[:-4]),
        (handle, expires, ""),
        (handle, expires, "é"),
        (handle, expires, "x" * 100_000),
        (handle, "", signature),
        (handle, "-1", signature),
        (handle, "1e9", signature),
        (handle, "٣" * 10, signature),
        (handle, "9" * 400, signature),
        ("", "", ""),
    ]
    changed += [(handle, expires, signature[:at] + ("A" if signature[at] != "A" else "B") + signature[at + 1 :])
                for at in range(42)]  # fmt: skip
    for link in changed:
        with pytest.raises(BadLink):
            links.owner(*link)


def test_a_link_lives_as_long_as_it_should_and_is_the_same_for_a_while(links, clock):
    link = links.link(STORED, "ann")
    expires = int(parts(link)[1])
    assert 1_000 <= expires - clock.now <= 1_250
    clock.now += 1
    assert links.link(STORED, "ann") == link
    clock.now += 250
    assert links.link(STORED, "ann") != link
    clock.now = expires - 1
    assert links.owner(*parts(link)) == "ann"
    clock.now = expires
    with pytest.raises(ExpiredLink):
        links.owner(*parts(link))
    with pytest.raises(BadLink):  # of a forged one it is not told that it would have expired
        links.owner(HANDLE, str(expires), "A" * 50)


def test_another_key_opens_nothing(links, clock):
    link = parts(links.link(STORED, "ann"))
    others = Links(1_000, clock=clock)
    with pytest.raises(BadLink):
        others.owner(*link)
    others.serve_at("http://127.0.0.1:1", KEY)
    assert others.owner(*link) == "ann"
    for key in (b"another key", KEY + b"x" * 100):
        others.serve_at("http://127.0.0.1:1", key)
        with pytest.raises(BadLink):
            others.owner(*link)


def test_links_begin_with_the_public_url_else_the_requests_address_else_the_one_that_is_listened_on(clock):
    links = Links(1_000, clock=clock)
    public = Links(1_000, "https://gateway.example.com/gw/", clock=clock)
    assert links.link(STORED, "ann") is None
    with answering_under("https://proxy.example"):
        assert public.link(STORED, "ann") is None  # no HTTP side: nobody would answer there
        for one in (links, public):
            one.serve_at("http://127.0.0.1:8484", KEY)
        assert links.link(STORED, "ann").startswith(f"https://proxy.example/content/{HANDLE}?expires=")
        assert public.link(STORED, "ann").startswith(f"https://gateway.example.com/gw/content/{HANDLE}?expires=")
    assert links.link(STORED, "ann").startswith(f"http://127.0.0.1:8484/content/{HANDLE}?")


def test_the_key_is_made_once_and_kept_for_its_owner_alone(tmp_path):
    folder = tmp_path / "state"
    key = link_key(None, folder)
    assert (len(key), link_key(None, folder)) == (32, key)
    assert [path.name for path in folder.iterdir()] == ["content.key"]
    if os.name == "posix":
        assert stat.S_IMODE((folder / "content.key").stat().st_mode) == 0o600
    assert link_key("sixteen characters", folder) == b"sixteen characters"


def test_where_no_key_can_be_kept_one_is_made_for_now(tmp_path, caplog):
    (tmp_path / "file").write_text("in the way")
    (tmp_path / "content.key").write_bytes(b"short")
    with caplog.at_level(logging.WARNING, "gateway.serving.content"):
        keys = {link_key(None, None), link_key(None, tmp_path / "file"), link_key(None, tmp_path)}
    assert {len(key) for key in keys} == {32}
    assert len(keys) == 3
    assert len(caplog.records) == 2


def test_the_signature_of_a_link_stays_out_of_logs(links):
    signature = parts(links.link(STORED, "ann"))[2]
    logged = shorten_json({"content": [{"type": "text", "text": f"[image 1: {links.link(STORED, 'ann')}]"}]})
    assert "signature=***" in logged
    assert signature not in logged
