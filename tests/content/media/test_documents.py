"""PDF read and drawn, in this process: the files of these tests are the tests' own."""

from io import BytesIO

import pytest
from PIL import Image, ImageStat

from gateway.content.media.documents import PageError, read_document, render, visible_text
from gateway.core.model.effects import ImageTarget
from gateway.errors import MediaError
from tests.content.media.pdf_files import Page, pdf

LIMIT = 60_000_000
ALL = 1_000_000
ANY = ImageTarget()


def drawn(content: bytes, page: int = 1, target: ImageTarget = ANY, max_pixels: int = LIMIT) -> Image.Image:
    picture = render(content, page, target, max_pixels)
    image = Image.open(BytesIO(picture.content))
    image.load()
    assert (image.size, image.get_format_mimetype()) == (picture.pixels, picture.media_type)
    assert target.max_edge is None or max(image.size) <= target.max_edge
    assert target.max_bytes is None or len(picture.content) <= target.max_bytes
    return image


def scanned(encode, photo) -> bytes:
    return encode(photo(800, 1_000), "PDF")


# -------------------------------------------------------------------------------------------------------------- text


def test_text_is_read_page_by_page_with_the_title():
    content = pdf(
        [Page(["First page", "second line"]), Page(), Page(["Third (page) \u2019"])], title="A Title \U0001f600"
    )
    assert read_document(content, 10, ALL) == (
        3,
        ("First page\nsecond line", "", "Third page \u2019"),
        "A Title \U0001f600",
    )


def test_only_the_first_pages_are_read_and_all_are_counted():
    content = pdf([Page([f"page {number}"]) for number in range(1, 8)])
    assert read_document(content, 2, ALL) == (7, ("page 1", "page 2"), None)
    assert read_document(content, 0, ALL) == (7, (), None)


def test_text_beyond_the_limit_is_cut_and_later_pages_are_left_out():
    content = pdf([Page(["12345"]), Page(["67890"]), Page(["more"])])
    assert read_document(content, 9, 8).texts == ("12345", "678")
    assert read_document(content, 9, 10).texts == ("12345", "67890")
    assert read_document(content, 9, 0).texts == ()


def test_a_scanned_document_has_no_text(encode, photo):
    assert read_document(scanned(encode, photo), 9, ALL)[:2] == (1, ("",))


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("a\r\nb\rc", "a\nb\nc"),
        ("a\0b\x07c\x1b[31m\x7f\x9b", "abc[31m"),
        ("lone \ud800 and \udfff", "lone  and"),
        ("infor\ufffemation \x02", "infor-mation -"),
        ("\ufeffa\uffffb", "ab"),
        ("a   \n\n\n\n\n\nb\f", "a\n\n\nb"),
        ("tab\tstays \u00e9 \u4e2d \U0001f600", "tab\tstays \u00e9 \u4e2d \U0001f600"),
    ],
)
def test_text_has_no_control_characters_and_no_half_characters(text, wanted):
    assert visible_text(text) == wanted
    visible_text(text).encode()


def test_a_title_of_half_characters_is_none_and_a_long_one_is_cut():
    assert read_document(pdf([Page()], title="x\ud800"), 1, 1).title is None
    assert read_document(pdf([Page()], title="  "), 1, 1).title is None
    assert read_document(pdf([Page()], title="word\n" * 100), 1, 1).title == ("word " * 40)[:200]


# ----------------------------------------------------------------------------------------------------------- drawing


@pytest.mark.parametrize("edge", [1, 100, 800, 1_568])
def test_a_page_is_drawn_as_large_as_the_target_takes(edge):
    image = drawn(pdf([Page(["hello"])]), 1, ImageTarget(max_edge=edge))
    assert max(image.size) == edge
    assert image.width == pytest.approx(edge * 595 / 842, abs=1)


def test_a_page_is_drawn_no_finer_than_anyone_prints():
    assert drawn(pdf([Page(["hello"])]), 1, ImageTarget(max_edge=8_000)).size == (1_653, 2_339)


def test_a_page_of_text_is_a_png_in_grey_and_a_scanned_one_a_jpeg(encode, photo):
    page = drawn(pdf([Page([f"line {line} of a page of text" for line in range(40)])]), 1, ImageTarget(max_edge=1_000))
    assert (page.format, page.mode) == ("PNG", "L")
    assert drawn(scanned(encode, photo), 1, ImageTarget(max_edge=800)).format == "JPEG"


def test_a_page_is_white_where_nothing_is_drawn_and_dark_where_text_is():
    image = drawn(pdf([Page(["MMMM"], font_size=100)]), 1, ImageTarget(max_edge=800)).convert("L")
    assert image.getpixel((image.width - 5, image.height - 5)) == 255
    darkest, _ = image.getextrema()
    assert isinstance(darkest, float | int)
    assert darkest < 50


@pytest.mark.parametrize("limit", [60_000, 20_000, 5_000])
@pytest.mark.parametrize("types", [("image/png",), ("image/jpeg",), ("image/png", "image/jpeg", "image/webp")])
def test_a_page_is_made_to_fit_the_bytes(limit, types):
    content = pdf([Page([f"line {line} of a page with a number {line * 7919}" for line in range(50)])])
    drawn(content, 1, ImageTarget(types, max_edge=1_200, max_bytes=limit))


@pytest.mark.parametrize(
    ("width", "height"),
    [(1e9, 1e9), (14_400, 14_400), (1e9, 1), (1, 20_000), (10, 10), (0.001, 0.001), (0, 100), (-5, 7)],
)
def test_a_page_of_any_size_stays_within_the_limits(width, height):
    content = pdf([Page(["x"], width, height)])
    for target in (ImageTarget(), ImageTarget(max_edge=300)):
        # Of a size that makes no sense pdfium makes letter.
        image = drawn(content, 1, target, max_pixels=1_000_000)
        assert image.width * image.height <= 1_000_000


def test_a_page_that_is_not_there_is_an_error_of_that_page():
    for number in (0, 2, -1, 10**9):
        with pytest.raises(PageError) as caught:
            render(pdf([Page()]), number, ImageTarget(), LIMIT)
        assert "1 pages" in str(caught.value)


def test_types_that_cannot_be_made_are_an_error_that_names_them():
    with pytest.raises(MediaError) as caught:
        render(pdf([Page()]), 1, ImageTarget(("image/heic",)), LIMIT)
    assert "image/heic" in str(caught.value)


# ------------------------------------------------------------------------------------------------- encrypted, broken


def test_a_document_that_is_encrypted_for_everybody_is_read():
    content = pdf([Page(["in the clear"])], title="Title", password="")
    assert read_document(content, 1, ALL) == (1, ("in the clear",), "Title")
    assert ImageStat.Stat(drawn(content).convert("L")).extrema[0][0] < 100


def test_a_document_that_wants_a_password_is_an_error_that_says_so():
    content = pdf([Page(["secret"])], password="hunter2")
    for attempt in (lambda: read_document(content, 1, ALL), lambda: render(content, 1, ImageTarget(), LIMIT)):
        with pytest.raises(MediaError) as caught:
            attempt()
        assert not isinstance(caught.value, PageError)
        assert "password" in str(caught.value)


def test_broken_documents_are_errors_of_the_document():
    whole = pdf([Page(["hello"])])
    # Half of a file is often enough for pdfium, which looks for the objects itself.
    for content in (b"%PDF-1.7\n", b"%PDF-1.4\n" + b"garbage " * 99, whole[:60], pdf([])):
        with pytest.raises(MediaError):
            read_document(content, 1, ALL)
        with pytest.raises(MediaError) as caught:
            render(content, 1, ImageTarget(), LIMIT)
        assert not isinstance(caught.value, PageError)


def test_a_page_whose_content_is_broken_is_drawn_as_far_as_it_goes():
    content = pdf([Page(content=b"q 1 0 0 1 0 0 cm BT /Nope 1e99 Tf (x) Tj ET 0 0 9999 re f [ << ( \xff")])
    assert drawn(content, 1, ImageTarget(max_edge=100)).size == (71, 100)
    assert read_document(content, 1, ALL).pages == 1
