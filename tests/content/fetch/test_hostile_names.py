"""Addresses, names and encodings that are made to pass, to be slow, or to break who reads them."""

import pytest

from gateway.config.content_settings import FetchSettings
from gateway.content.fetch import name_in_disposition, percent_decoded
from gateway.content.fetch.allowlist import Address
from gateway.errors import FetchRefused


def allowed(pattern: str, url: str) -> bool:
    try:
        Address(url, FetchSettings(allow=(pattern,)))
    except FetchRefused:
        return False
    return True


@pytest.mark.parametrize(
    ("pattern", "path", "fits"),
    [
        ("/a/*", "/a/", True),
        ("/a/*", "/a/b/c", True),
        ("/a/*", "/b/a/", False),
        ("/*/b/*.png", "/a/b/c.png", True),
        ("/*/b/*.png", "/a/b/c.jpg", False),
        ("/*b*b", "/ab", False),
        ("/*b*b", "/abab", True),
        ("/exact", "/exact", True),
        ("/exact", "/exactly", False),
    ],
)
def test_a_star_stands_for_anything(pattern: str, path: str, fits: bool) -> None:
    assert allowed(f"https://h.example{pattern}", f"https://h.example{path}") is fits


def test_a_pattern_of_many_stars_does_not_backtrack() -> None:
    # With a backtracking pattern this takes hours: the limit of the test run ends it.
    assert not allowed("https://h.example/*/*/*/*/*/*.png", "https://h.example" + "/" * 8_000)


@pytest.mark.parametrize("up", ["..", "..;", "..;x=1", "%2e%2e", "%252e%252e", "%2e%2e%3b", "..%5c", "%255c.."])
def test_no_path_leads_upwards_however_it_is_written(up: str) -> None:
    assert not allowed("https://h.example/public/*", f"https://h.example/public/{up}/admin")
    assert allowed("https://h.example/public/*", "https://h.example/public/..hidden/a..b")


@pytest.mark.parametrize("charset", ["idna", "undefined", "punycode", "no-such", "utf-8"])
def test_a_name_in_any_encoding_breaks_nothing(charset: str) -> None:
    name = name_in_disposition(f"attachment; filename*={charset}''%41; filename=plain.png")
    assert name in ("A", "plain.png")


@pytest.mark.parametrize(
    "text", ["", "plain", "%41%zz%4", "%41" * 100_000, "é%C3%A9", "x" * 65_535 + "%41", "x" * 65_534 + "%41%42"]
)
def test_percent_encoding_is_read_as_the_standard_library_reads_it(text: str) -> None:
    from urllib.parse import unquote_to_bytes

    assert percent_decoded(text) == unquote_to_bytes(text)
