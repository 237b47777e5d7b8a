"""Content that is made to be slow to look at, or to break who looks at it."""

import pytest

from gateway.core.model.media_types import PixelSize, inspect

MANY = 2_000_000


@pytest.mark.parametrize(
    "content",
    [b"<svg " * (MANY // 5), b"<!DOCTYPE>" * (MANY // 10), b"<!DOCTYPE svg [" + b"<!ENTITY a '>'>" * (MANY // 15)],
    ids=["a tag without an end", "one document type after another", "a subset without an end"],
)
def test_only_the_beginning_is_looked_at(content: bytes) -> None:
    # With the whole looked at, each of these takes minutes: the limit of the test run ends it.
    assert inspect(content).size is None


def test_a_number_with_hundreds_of_digits_is_no_size() -> None:
    nines = b"9" * 400
    found = inspect(b'<svg width="' + nines + b'" height="1">')
    assert (found.media_type, found.size) == ("image/svg+xml", None)


def test_a_size_is_that_of_the_first_element() -> None:
    content = (
        b'<?xml version="1.0"?><!-- <svg width="1" height="1"> --><svg width="30px" height="20"><svg width="5"/></svg>'
    )
    assert inspect(content).size == PixelSize(30, 20)
