"""Which values stand for content, and what is put in their places: never anything else."""

import string
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.core.tools.arguments import (
    EVERYTHING,
    Content,
    DataUri,
    Handle,
    Parameter,
    Url,
    built,
    find_parameters,
    place_content,
    unmarked_handles,
    wanted_contents,
)
from gateway.core.tools.arguments.parameters import Form
from gateway.core.tools.arguments.values import MOST_VALUES

HANDLE = "img_7h3k2m9q4w8x"
CONTENT = Content("image", "image/png", 3, HANDLE, "a b/é.png", data="QUJD", path="/t/x.png", link="https://g/c")


def one(value: Any, form: Form = "base64", *, fetched: bool = True, **more: Any) -> Any:
    """What a value stands for."""
    found = wanted_contents({"x": value}, [Parameter(("x",), form, **more)], fetched=fetched)
    return found[0].reference if found else None


@pytest.mark.parametrize(
    "text",
    [
        HANDLE,
        HANDLE.upper(),
        f" `{HANDLE}` ",
        f"content://{HANDLE}",
        f'"{HANDLE}"',
        "content://anything",
        "mod_7h3k2m9q4w8x",
    ],
)
def test_handles_are_known_in_every_spelling(text: str):
    for form in ("base64", "path", "url", "object"):
        assert isinstance(one(text, form), Handle)


def test_a_line_that_names_one_handle_will_do_where_no_text_is_wanted():
    line = f"[image 1: 40x30; its handle for tools is {HANDLE}]"
    assert one(line) == Handle(HANDLE)
    assert one(line, "path") is None
    assert one(f"{line} {line.replace('7h3k', '8h3k')}") is None


def test_what_was_meant_as_a_handle_is_taken_for_one_where_it_can_be_nothing_else():
    assert one("img_1234567") == Handle("img_1234567")
    assert one("img_1234567", "path") is None
    assert one("img_1234.png") is None


@pytest.mark.parametrize(
    "value", ["aGVsbG8=", "", "photo.png", "/tmp/img_1", "hello img", 3, None, True, ["x"], {}, 1.5]
)
def test_other_values_are_the_tools_own(value: Any):
    for form in ("base64", "data-uri", "named-data-uri", "path", "url", "object", "openai-file"):
        assert one(value, form) is None


def test_data_uris_fit_where_they_are_asked_for():
    uri = "DATA:image/png;base64,QUJD"
    assert one(uri) == DataUri(uri)
    assert one(uri, "data-uri") == DataUri(uri, fits=True)
    assert one(uri, "named-data-uri") == DataUri(uri, fits=True)


def test_urls_are_fetched_unless_the_tool_takes_them_or_nothing_is_fetched():
    url = "https://example.com/a.png"
    assert one(url) == Url(url)
    assert one(url, fetched=False) is None
    assert one(url, "url") is None
    assert one(url, takes_urls=True) is None


def test_a_typed_object_without_its_content_is_a_handle_and_one_with_it_fits():
    assert one({"handle_id": HANDLE, "kind": "image"}, "object") == Handle(HANDLE)
    assert one({"handle_id": HANDLE, "source": {"type": "base64", "data": "QUJD"}}, "object") is None
    assert one({"download_url": "https://x", "file_id": "f"}, "openai-file") is None


@pytest.mark.parametrize(
    ("form", "expected"),
    [
        ("base64", "QUJD"),
        ("data-uri", "data:image/png;base64,QUJD"),
        ("named-data-uri", "data:image/png;name=a%20b%2F%C3%A9.png;base64,QUJD"),
        ("path", "/t/x.png"),
        ("url", "https://g/c"),
        (
            "openai-file",
            {"download_url": "https://g/c", "file_id": HANDLE, "mime_type": "image/png", "file_name": "a b/é.png"},
        ),
        (
            "object",
            {
                "kind": "image",
                "handle_id": HANDLE,
                "mime_type": "image/png",
                "byte_size": 3,
                "display_name": "a b/é.png",
                "source": {"type": "base64", "data": "QUJD"},
            },
        ),
    ],
)
def test_content_is_built_in_the_form_that_was_asked_for(form: Form, expected: Any):
    assert built(form, CONTENT) == expected


def test_the_media_type_is_filled_in_beside_the_content():
    pair = Parameter(("photos", None, "data"), "base64", beside="mimeType")
    arguments = {
        "photos": [{"data": HANDLE}, {"data": "aGk=", "mimeType": "text/plain"}, {"data": HANDLE, "mimeType": "x"}]
    }
    found = wanted_contents(arguments, [pair], fetched=False)
    assert place_content(arguments, {each.place: (pair, CONTENT) for each in found}) == {
        "photos": [
            {"data": "QUJD", "mimeType": "image/png"},
            {"data": "aGk=", "mimeType": "text/plain"},
            {"data": "QUJD", "mimeType": "image/png"},
        ]
    }


@pytest.mark.parametrize(
    ("kind", "accepts", "actual", "media_type", "expected"),
    [
        ("audio", (), "image", "image/png", False),
        ("image", (), "image", "image/png", True),
        ("image", (), "other", "application/octet-stream", True),
        (None, (), "cad", "model/step", True),
        ("image", ("image/png",), "image", "image/jpeg", False),
        ("image", ("image/*",), "image", "image/jpeg", True),
        (None, ("image/*", "application/pdf"), "document", "application/pdf", True),
        (None, ("image/*",), "other", "application/octet-stream", True),
    ],
)
def test_kinds_and_types_are_judged(kind: Any, accepts: tuple[str, ...], actual: Any, media_type: str, expected: bool):
    assert Parameter(("x",), "base64", kind, accepts).takes(actual, media_type) is expected


def test_what_lies_within_a_value_that_is_replaced_goes_with_it():
    inner, outer = Parameter(("x", "data"), "base64", beside="type"), Parameter(("x",), "object")
    found = wanted_contents({"x": {"handle_id": HANDLE, "data": HANDLE}}, [inner, outer], fetched=False)
    assert [each.place for each in found] == [("x",)]


LEAVES = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.text(max_size=30),
    st.sampled_from([HANDLE, "data:,x", "https://x/y", "content://x", "img_12345"]),
)
NAMES = st.sampled_from(["a", "b", "c", "mimeType"])
VALUES = st.recursive(
    LEAVES, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(NAMES, inner, max_size=3), max_leaves=12
)
PATHS = st.lists(st.one_of(NAMES, st.none()), min_size=1, max_size=3).map(tuple)
PARAMETERS = st.lists(
    st.builds(
        Parameter,
        PATHS,
        st.sampled_from(["base64", "data-uri", "path", "url", "object"]),
        beside=st.one_of(st.none(), st.just("mimeType")),
    ),
    max_size=3,
)


def differences(before: Any, after: Any, place: tuple[Any, ...] = ()) -> set[tuple[Any, ...]]:
    """The places at which two JSON values differ, the outermost where their shape does."""
    if before is after:
        return set()
    if isinstance(before, dict) and isinstance(after, dict):
        keys = {*before, *after}
        missing = object()
        return {
            found
            for key in keys
            for found in differences(before.get(key, missing), after.get(key, missing), (*place, key))
        }
    if isinstance(before, list) and isinstance(after, list) and len(before) == len(after):
        return {
            found
            for position, (old, new) in enumerate(zip(before, after, strict=True))
            for found in differences(old, new, (*place, position))
        }
    return {place} if before != after or type(before) is not type(after) else set()


@given(st.dictionaries(NAMES, VALUES, max_size=4), PARAMETERS, st.booleans())
def test_nothing_changes_but_the_values_that_stand_for_content_and_the_types_beside_them(
    arguments: dict[str, Any], parameters: list[Parameter], fetched: bool
):
    found = wanted_contents(arguments, parameters, fetched=fetched)
    beside = {(*each.place[:-1], each.parameter.beside) for each in found if each.parameter.beside}
    # A list has no member beside its items.
    found = tuple(each for each in found if not (each.parameter.beside and isinstance(each.place[-1], int)))
    result = place_content(arguments, {each.place: (each.parameter, CONTENT) for each in found})
    allowed = {each.place for each in found} | beside
    for place in differences(arguments, result):
        assert any(place[: len(one)] == one for one in allowed), (place, allowed)
    if not found:
        assert result is arguments


@given(st.text(alphabet=string.printable, max_size=60))
def test_no_text_breaks_the_reading(text: str):
    one(text)
    one(text, "path", fetched=False)


def test_handles_are_found_where_no_parameter_takes_content_and_nowhere_else():
    handle, other = "img_7h3k2m9q4w8x", "doc_7h3k2m9q4w8x"
    arguments = {"a": handle, "b": ["x", f'"content://{other}"'], "c": {"d": f"see {handle}"}, "e": {"f": handle}}
    assert unmarked_handles(arguments, ()) == ((("a",), handle), (("b", 1), other), (("e", "f"), handle))
    marked = Parameter(("a",), "base64"), Parameter(("b", None), "base64"), Parameter(("e",), "object")
    assert unmarked_handles(arguments, marked) == ()
    assert unmarked_handles("img_7h3k2m9q4w8x" * 100, ()) == ()
    assert len(unmarked_handles({str(number): handle for number in range(5_000)}, ())) < MOST_VALUES


def test_the_annotation_that_the_page_shows_marks_an_argument():
    schema = {"type": "string", "contentEncoding": "base64", "contentMediaType": "image/*"}
    page = (Path(__file__).parents[4] / "docs" / "arguments.md").read_text("utf-8")
    assert '{"contentEncoding": "base64", "contentMediaType": "image/*"}' in page
    tool = {"name": "size_of", "inputSchema": {"type": "object", "properties": {"picture": schema}}}
    (found,) = find_parameters(tool, {}, EVERYTHING).parameters
    assert (found.path, found.form) == (("picture",), "base64")
