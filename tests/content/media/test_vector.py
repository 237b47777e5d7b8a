import base64
import gzip
from io import BytesIO
from pathlib import Path
from typing import Any

import pytest
from PIL import Image, ImageChops, ImageStat

from gateway.content.media import fonts, vector
from gateway.content.media.images import DecodedImage, fit_image
from gateway.content.media.svg import MOST_DEPTH
from gateway.core.model.effects import Crop, ImageTarget
from gateway.errors import MediaError
from tests.content.media.points import colour_at

LIMIT = 60_000_000
ANY = ImageTarget()
NAMESPACES = 'xmlns="http://www.w3.org/2000/svg" xmlns:xlink="http://www.w3.org/1999/xlink"'


def svg(body: str, width=200, height=100) -> bytes:
    return f'<svg {NAMESPACES} width="{width}" height="{height}">{body}</svg>'.encode()


def fitted(content: bytes, target=ANY, crop=None) -> DecodedImage:
    return fit_image(content, "image/svg+xml", target, crop, LIMIT)


def shown(picture: DecodedImage) -> Image.Image:
    image = Image.open(BytesIO(picture.content))
    image.load()
    assert image.size == picture.pixels
    return image.convert("RGB")


def colours(image: Image.Image) -> set[Any]:
    return {colour for _, colour in image.getcolors(100_000)}


RED, LIME, WHITE = (255, 0, 0), (0, 255, 0), (255, 255, 255)


def test_a_drawing_is_drawn_on_white_at_a_size_that_can_be_seen():
    picture = fitted(svg('<rect width="100" height="100" fill="lime"/>'))
    assert (picture.media_type, picture.pixels, picture.original) == ("image/png", (512, 256), (200, 100))
    image = shown(picture)
    assert (colour_at(image, 100, 100), colour_at(image, 400, 100)) == (LIME, WHITE)


@pytest.mark.parametrize(
    ("width", "height", "max_edge", "pixels"),
    [
        (30_000, 15_000, 1_000, (1_000, 500)),
        (30_000, 15_000, None, (2_000, 1_000)),
        (1_000_000, 1, 500, (500, 1)),
        (1_600, 800, None, (1_600, 800)),
        (16, 16, 100, (100, 100)),
    ],
)
def test_a_drawing_of_any_size_is_drawn_within_the_target(width, height, max_edge, pixels):
    assert fitted(svg("<rect/>", width, height), ImageTarget(max_edge=max_edge)).pixels == pixels


def test_a_drawing_without_any_size_is_drawn_as_large_as_what_is_in_it():
    picture = fitted(f'<svg {NAMESPACES}><rect width="300" height="150" fill="lime"/></svg>'.encode())
    assert picture.pixels == picture.original == (1_024, 512)


@pytest.mark.parametrize("types", [("image/jpeg",), ("image/webp",)])
def test_a_drawing_becomes_the_type_that_the_target_takes(types):
    picture = fitted(svg('<rect width="200" height="100" fill="lime"/>'), ImageTarget(types=types))
    assert picture.media_type == types[0]
    assert all(abs(a - b) < 8 for a, b in zip(colour_at(shown(picture), 100, 50), LIME, strict=True))


def test_a_drawing_is_scaled_down_until_it_fits_the_bytes():
    body = "".join(
        f'<circle cx="{i * 7 % 200}" cy="{i * 13 % 100}" r="3" fill="#{i:06x}"/>' for i in range(0, 9**7, 999)
    )
    assert len(fitted(svg(body), ImageTarget(max_bytes=9_000)).content) <= 9_000


def test_a_part_of_a_drawing_is_drawn_sharper_than_the_whole():
    picture = fitted(
        svg('<rect x="100" width="50" height="50" fill="lime"/>', 1_000, 500),
        ImageTarget(max_edge=800),
        Crop(100, 0, 100, 100),
    )
    assert (picture.pixels, picture.original) == ((512, 512), (1_000, 500))
    image = shown(picture)
    assert (colour_at(image, 200, 200), colour_at(image, 300, 200), colour_at(image, 200, 300)) == (LIME, WHITE, WHITE)


def test_a_part_of_a_vast_drawing_is_as_sharp():
    content = svg('<rect x="500000" y="500000" width="50" height="100" fill="lime"/>', 1_000_000, 1_000_000)
    picture = fitted(content, ImageTarget(max_edge=1_000), Crop(500_000, 500_000, 100, 100))
    assert picture.pixels == (512, 512)
    image = shown(picture)
    assert [colour_at(image, x, 200) for x in (5, 250, 262, 500)] == [LIME, LIME, WHITE, WHITE]


@pytest.mark.parametrize(
    "root",
    [
        'x="500" width="200" height="100"',
        'viewBox="0 0 20 10"',
        'width="100%" height="100%" viewBox="-10 -5 20 10"',
        'width="200pt" viewBox="0 0 20 10" preserveAspectRatio="none"',
    ],
)
def test_parts_make_up_the_whole(root):
    body = '<rect x="1" y="1" width="7" height="3" fill="lime"/><circle r="4" fill="red"/>'
    content = f"<svg {NAMESPACES} {root}>{body}</svg>".encode()
    whole = fitted(content, ImageTarget(max_edge=512))
    width, height = whole.original
    for left, top in ((0, 0), (width // 2, 0), (0, height // 2), (width // 2, height // 2)):
        crop = Crop(left, top, width // 2, height // 2)
        part = shown(fitted(content, ImageTarget(max_edge=256), crop)).resize((64, 32))
        scale = 512 / width
        left, top, right, bottom = (round(side * scale) for side in (left, top, left + width // 2, top + height // 2))
        reference = shown(whole).crop((left, top, right, bottom)).resize((64, 32))
        assert max(ImageStat.Stat(ImageChops.difference(part, reference)).mean) < 6


def test_a_part_of_a_drawing_without_any_size_is_one_of_what_is_drawn():
    content = (
        f'<svg {NAMESPACES}><rect width="150" height="150" fill="lime"/><rect x="150" width="150" height="150"/></svg>'
    )
    picture = fitted(content.encode(), crop=Crop(0, 0, 512, 512))
    assert (picture.pixels, picture.original) == ((512, 512), (1_024, 512))
    assert near_all(shown(picture).crop((0, 0, 500, 512)), LIME)


def near_all(image: Image.Image, colour: tuple[int, ...]) -> bool:
    return image.getextrema() == tuple((value, value) for value in colour)


def test_a_part_outside_of_the_drawing_is_an_error():
    with pytest.raises(MediaError):
        fitted(svg("<rect/>"), crop=Crop(200, 0, 10, 10))


@pytest.mark.parametrize("family", ["sans-serif", "serif", "monospace", "No Such Font", "Arial", ""])
def test_text_is_drawn_whatever_fonts_there_are(family):
    attribute = f'font-family="{family}"' if family else ""
    image = shown(fitted(svg(f'<text x="10" y="60" font-size="40" {attribute}>Total</text>')))
    assert len(colours(image)) > 2


def test_text_is_drawn_where_there_is_no_font_at_all(monkeypatch):
    fonts.fonts.cache_clear()
    monkeypatch.setattr(fonts, "_FOLDERS", ())
    monkeypatch.setattr(vector.resvg_py, "svg_to_bytes", without_system_fonts(vector.resvg_py.svg_to_bytes))
    try:
        image = shown(fitted(svg('<text x="10" y="60" font-size="40" font-family="Arial">Total</text>')))
    finally:
        fonts.fonts.cache_clear()
    assert len(colours(image)) > 2


def without_system_fonts(draw):
    return lambda **options: draw(**{**options, "skip_system_fonts": True})


# ------------------------------------------------------------------------------------------------------ hostile input


@pytest.fixture
def secret(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A red picture beside the working folder, and an SVG that shows a red rectangle; neither may ever be drawn."""
    Image.new("RGB", (50, 50), "red").save(tmp_path / "secret.png")
    (tmp_path / "secret.svg").write_bytes(svg('<rect id="all" width="200" height="100" fill="red"/>'))
    (tmp_path / "below").mkdir()
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize("name", ["secret.png", "secret.svg"])
@pytest.mark.parametrize(
    "spelling", ["{folder}/{name}", "{name}", "./{name}", "below/../{name}", "file://{folder}/{name}"]
)
@pytest.mark.parametrize("attribute", ["href", "xlink:href"])
def test_a_local_file_is_never_drawn(secret, name, spelling, attribute):
    reference = spelling.format(folder=secret, name=name)
    body = (
        f'<image {attribute}="{reference}" width="200" height="100"/><rect x="150" width="50" height="50" fill="lime"/>'
    )
    assert colours(shown(fitted(svg(body)))) == {WHITE, LIME}


def test_the_renderer_would_have_drawn_the_local_file(secret):
    """What the test above guards against is real."""
    import resvg_py

    body = f'<image href="{secret}/secret.png" width="200" height="100"/>'
    png = resvg_py.svg_to_bytes(svg_string=svg(body).decode(), width=200, height=100)
    assert RED in colours(Image.open(BytesIO(png)).convert("RGB"))


@pytest.mark.parametrize(
    "body",
    [
        '<style>image {{ href: url({file}) }}</style><image width="200" height="100"/>',
        '<image style="href: url({file})" width="200" height="100"/>',
        '<rect width="200" height="100" style="fill: url({file})"/>',
        '<filter id="f"><feImage href="{file}"/></filter><rect width="200" height="100" filter="url(#f)" fill="none"/>',
        '<use href="{folder}/secret.svg#all"/>',
        '<pattern id="p" width="1" height="1"><image href="{file}" width="200" height="100"/></pattern>'
        '<rect width="200" height="100" fill="url(#p)"/>',
    ],
)
def test_no_other_way_leads_to_a_local_file(secret, body):
    text = body.format(file=secret / "secret.png", folder=secret)
    assert RED not in colours(shown(fitted(svg(text))))


def test_a_local_file_is_not_drawn_from_an_svg_within(secret):
    inner = svg(f'<image href="{secret}/secret.png" width="200" height="100"/>')
    uri = "data:image/svg+xml;base64," + base64.b64encode(inner).decode()
    assert colours(shown(fitted(svg(f'<image href="{uri}" width="200" height="100"/>')))) == {WHITE}


@pytest.mark.parametrize("name", ["PNG", "JPEG", "GIF", "WEBP"])
def test_an_image_in_a_data_uri_is_drawn(encode, name):
    content = base64.b64encode(encode(Image.new("RGB", (20, 10), "lime"), name)).decode()
    image = shown(fitted(svg(f'<image href="data:image/x;base64,{content}" width="200" height="100"/>')))
    assert all(abs(a - b) < 8 for a, b in zip(colour_at(image, 200, 100), LIME, strict=True))


def test_a_gzipped_drawing_is_drawn():
    assert LIME in colours(shown(fitted(gzip.compress(svg('<rect width="9" height="9" fill="lime"/>')))))


def test_a_gzipped_drawing_may_not_unpack_without_end():
    with pytest.raises(MediaError) as caught:
        fitted(gzip.compress(bytes(vector.MOST_UNPACKED + 1)))
    assert "unpacks" in str(caught.value)


@pytest.mark.parametrize("content", [b"\x1f\x8bgarbage", svg("<g>").replace(b"</svg>", b""), svg("<un:known/>")])
def test_what_cannot_be_drawn_is_an_error(content):
    with pytest.raises(MediaError):
        fitted(content)


@pytest.mark.parametrize("group", ["g", 'g opacity=".9"', 'g transform="scale(1.001)"', 'svg width="9"', "a"])
def test_what_nests_as_deep_as_it_may_is_drawn(group):
    inside = (
        f"<{group}>" * (MOST_DEPTH - 2) + '<rect width="9" height="9"/>' + f"</{group.split()[0]}>" * (MOST_DEPTH - 2)
    )
    svg = f'<svg xmlns="http://www.w3.org/2000/svg" width="9" height="9">{inside}</svg>'
    assert vector.draw(svg.encode(), None, None, 1_000_000).natural == (9, 9)


def test_what_nests_deeper_is_refused():
    inside = "<g>" * 990 + '<rect width="9" height="9"/>' + "</g>" * 990
    with pytest.raises(MediaError, match="nest deeper"):
        vector.draw(f'<svg xmlns="http://www.w3.org/2000/svg">{inside}</svg>'.encode(), None, None, 1_000_000)
