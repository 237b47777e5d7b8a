"""Where the script that tells what was blocked stands in a page."""

import pytest

from gateway.serving.console.watch_policy import watching


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (b"<!DOCTYPE html>", b"<html lang=en><head><title>x</title></head></html>"),
        (b"\xef\xbb\xbf<!-- a note -->\n<!doctype html>", b"<p>x"),
        (b"", b"<p>without a doctype"),
        (b"", b""),
        (b"", b"<!doctype without an end"),
        (b"", b"<p>" + b" " * 5_000 + b"<!doctype html>"),
    ],
)
def test_the_script_is_the_first_element_and_nothing_is_lost(before: bytes, after: bytes) -> None:
    page = watching(before + after)
    assert page.startswith(before + b"<script>")
    assert page.endswith(b"</script>" + after)
    assert page.count(b"securitypolicyviolation") == 1
