import re

import pytest

from gateway.content.store import handle_from
from gateway.content.store.handles import content_id, new_handle

KEY = b"k" * 32
SHA256 = bytes(range(32))


def test_a_handle_is_short_and_has_no_letters_that_look_alike():
    for owner in map(str, range(200)):
        assert re.fullmatch(r"img_[0-9a-hjkmnp-tv-z]{12}", new_handle("image/png", content_id(KEY, owner, SHA256)))


@pytest.mark.parametrize(
    ("media_type", "prefix"),
    [
        ("image/svg+xml", "img"),
        ("audio/wav", "aud"),
        ("video/mp4", "vid"),
        ("text/csv", "txt"),
        ("application/pdf", "doc"),
        ("application/zip", "bin"),
    ],
)
def test_a_handle_tells_the_kind(media_type, prefix):
    assert new_handle(media_type, "0" * 12) == f"{prefix}_000000000000"


def test_an_id_depends_on_key_owner_and_content_and_nothing_else():
    ids = {
        content_id(KEY, "one", SHA256),
        content_id(KEY, "two", SHA256),
        content_id(KEY, "", SHA256),
        content_id(KEY, "\udcff", SHA256),
        content_id(b"other", "one", SHA256),
        content_id(KEY, "one", SHA256[::-1]),
    }
    assert len(ids) == 6
    assert content_id(KEY, "one", SHA256) in ids


@pytest.mark.parametrize(
    "spelled",
    [
        "img_7h3k2m9q0110",
        "content://img_7h3k2m9q0110",
        "  `img_7h3k2m9q0110`\n",
        '"IMG_7H3K2M9Q0110"',
        "'img_7h3k2m9qoilo'",
        "<Content://img_7h3k2m9qOlIO>",
    ],
)
def test_a_handle_is_read_however_a_model_spells_it(spelled):
    assert handle_from(spelled) == "img_7h3k2m9q0110"


@pytest.mark.parametrize(
    "text", ["", "content://", "lol", "file:///etc/passwd", "img_7h3k2m9q011", "café_000000000000"]
)
def test_text_that_is_no_handle_is_left_as_it_is(text):
    assert handle_from(text) == text.removeprefix("content://")
