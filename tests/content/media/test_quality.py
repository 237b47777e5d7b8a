"""How good fitted images are: limits kept over a corpus, likeness to a Lanczos resize, legible text, laws."""

from io import BytesIO
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from PIL import Image, ImageDraw, ImageFont

from gateway.content.media.images import DecodedImage, fit_image
from gateway.core.model.effects import Crop, ImageTarget
from gateway.core.model.media_types import inspect
from gateway.errors import MediaError

EVERY_CHECK: Any = list(HealthCheck)

LIMIT = 60_000_000
ALL = ("image/png", "image/jpeg", "image/webp")
TEN_POINTS = 13
"""10 points at 96 dots an inch, in pixels."""


def ssim(one: Image.Image, other: Image.Image, window: int = 8) -> float:
    """Structural similarity of two images in grey, 1 for equal ones (Wang et al., 2004, with a square window)."""
    assert one.size == other.size
    x, y = (np.asarray(on_white(image).convert("L"), dtype=float) for image in (one, other))

    def mean(values: np.ndarray) -> np.ndarray:
        sums = np.cumsum(np.cumsum(np.pad(values, ((1, 0), (1, 0))), 0), 1)
        return (
            sums[window:, window:] - sums[:-window, window:] - sums[window:, :-window] + sums[:-window, :-window]
        ) / window**2

    mean_x, mean_y = mean(x), mean(y)
    variance_x, variance_y = mean(x * x) - mean_x**2, mean(y * y) - mean_y**2
    covariance = mean(x * y) - mean_x * mean_y
    steady, steadier = (0.01 * 255) ** 2, (0.03 * 255) ** 2
    likeness = (2 * mean_x * mean_y + steady) * (2 * covariance + steadier)
    return float((likeness / ((mean_x**2 + mean_y**2 + steady) * (variance_x + variance_y + steadier))).mean())


def on_white(image: Image.Image) -> Image.Image:
    rgba = image.convert("RGBA")
    return Image.alpha_composite(Image.new("RGBA", image.size, "white"), rgba).convert("RGB")


def desktop(width: int, height: int) -> Image.Image:
    """A screenshot with text of 10 points: dark, coloured and on a coloured ground."""
    image = Image.new("RGB", (width, height), "white")
    draw = ImageDraw.Draw(image)
    font = ImageFont.load_default(size=TEN_POINTS)
    draw.rectangle((0, 0, width, 40), fill="#205080")
    draw.rectangle((0, 40, 200, height), fill="#f0f3f7")
    draw.text((10, 12), "File  Edit  View  Help - orders.example.org", "white", font)
    for line, top in enumerate(range(50, height - 20, 20)):
        draw.text((10, top), f"Folder {line * 31 % 97} / item", "#335", font)
        words = (
            f"{line:04} GET /api/v1/orders/{line * 7919 % 10007}?status=open&page={line % 9} 200 OK {line * 37 % 97} ms"
        )
        draw.text((220, top), words, ("#202020", "#b00020", "#006000")[line % 3], font)
    return image


def landscape(width: int, height: int, seed: int = 5) -> Image.Image:
    """Something like a photo: light that falls off, shapes of all sizes, and the grain of a sensor."""
    random = np.random.default_rng(seed)
    light = np.zeros((height, width, 3))
    for cells, strength in ((3, 90), (9, 50), (40, 20), (160, 8)):
        coarse = Image.fromarray(random.integers(0, 255, (cells, cells, 3), dtype=np.uint8))
        light += strength * (
            np.asarray(coarse.resize((width, height), Image.Resampling.BICUBIC), dtype=float) / 127 - 1
        )
    light += np.linspace(180, 90, height)[:, None, None] + random.normal(0, 4, light.shape)
    return Image.fromarray(light.clip(0, 255).astype(np.uint8))


def line_art(width: int, height: int) -> Image.Image:
    image = Image.new("L", (width, height), 255)
    draw = ImageDraw.Draw(image)
    for step in range(0, max(width, height), 24):
        draw.line((step, 0, width - step, height), 0, 2)
        draw.ellipse((step, step // 2, step + 90, step // 2 + 60), outline=0, width=2)
    return image


def with_alpha(image: Image.Image) -> Image.Image:
    image = image.convert("RGBA")
    image.putalpha(Image.radial_gradient("L").resize(image.size))
    return image


def deep(width: int, height: int) -> Image.Image:
    ramp = np.linspace(0, 65_535, width * height).reshape(height, width).astype(np.uint16)
    return Image.fromarray(ramp)


def located() -> Image.Exif:
    exif = Image.Exif()
    exif[0x0112] = 6
    exif[0x010F] = "SECRET camera"
    exif.get_ifd(0x8825)[2] = (52.0, 31.0, 12.0)
    return exif


@pytest.fixture(scope="module")
def corpus(encode) -> dict[str, tuple[Image.Image, bytes]]:
    """Name: an upright image, and a file of it."""
    picture, screen = landscape(900, 600), desktop(900, 600)
    palette = screen.quantize(64)
    frames = [landscape(300, 200, seed) for seed in range(3)]
    turned = encode(picture.transpose(Image.Transpose.ROTATE_90), "JPEG", quality=95, exif=located())
    return {
        "photo": (picture, encode(picture, "JPEG", quality=95)),
        "photo as png": (picture, encode(picture, "PNG")),
        "photo as webp": (picture, encode(picture, "WEBP", quality=95)),
        "photo as avif": (picture, encode(picture, "AVIF", quality=95)),
        "screenshot": (screen, encode(screen, "PNG")),
        "screenshot as bmp": (screen, encode(screen, "BMP")),
        "line art": (line_art(900, 600), encode(line_art(900, 600), "TIFF")),
        "palette": (palette.convert("RGB"), encode(palette, "GIF")),
        "alpha": (with_alpha(screen), encode(with_alpha(screen), "PNG")),
        "16 bit": (deep(600, 400).point(lambda value: value / 256).convert("L"), encode(deep(600, 400), "PNG")),
        "cmyk": (picture, encode(picture.convert("CMYK"), "JPEG", quality=95)),
        "turned": (picture, turned),
        "animated": (frames[0], encode(frames[0], "WEBP", save_all=True, append_images=frames[1:], lossless=True)),
    }


NAMES = (
    "photo",
    "photo as png",
    "photo as webp",
    "photo as avif",
    "screenshot",
    "screenshot as bmp",
    "line art",
    "palette",
    "alpha",
    "16 bit",
    "cmyk",
    "turned",
    "animated",
)


def fitted(content: bytes, target: ImageTarget, crop: Crop | None = None) -> tuple[DecodedImage, Image.Image]:
    picture = fit_image(content, inspect(content).media_type or "", target, crop, LIMIT)
    image = Image.open(BytesIO(picture.content))
    image.load()
    assert image.size == picture.pixels
    assert picture.media_type in target.types
    assert target.max_edge is None or max(image.size) <= target.max_edge
    assert target.max_bytes is None or len(picture.content) <= target.max_bytes
    return picture, image


def likeness(original: Image.Image, image: Image.Image) -> float:
    reference = on_white(original).resize(image.size, Image.Resampling.LANCZOS)
    return ssim(reference, image)


# ------------------------------------------------------------------------------------------------------------- bars


@pytest.mark.parametrize("types", [ALL, ("image/jpeg",)])
@pytest.mark.parametrize("name", NAMES)
def test_what_is_scaled_down_is_like_a_lanczos_resize(corpus, name, types):
    original, content = corpus[name]
    _, image = fitted(content, ImageTarget(types, max_edge=400))
    assert likeness(original, image) > 0.9


@pytest.mark.parametrize("types", [ALL, ("image/png", "image/jpeg")])
@pytest.mark.parametrize("name", NAMES)
def test_what_must_have_few_bytes_uses_them(corpus, name, types):
    original, content = corpus[name]
    picture, image = fitted(content, ImageTarget(types, max_bytes=24_000))
    assert likeness(original, image) > 0.85
    if image.size != original.size:
        # Made smaller because it had to be, and not by more than that.
        assert len(picture.content) > 24_000 / 3


@pytest.mark.parametrize("name", NAMES)
def test_no_private_metadata_survives_a_new_encoding(corpus, name):
    for types in (ALL, ("image/jpeg",), ("image/webp",)):
        picture, image = fitted(corpus[name][1], ImageTarget(types, max_edge=300, animation=False))
        assert b"SECRET" not in picture.content
        assert not image.getexif()
        assert not {"exif", "comment", "icc_profile", "xmp", "photoshop"} & set(image.info)


def test_a_photo_of_better_quality_is_what_more_bytes_are_for(corpus):
    original, content = corpus["photo as png"]
    found = []
    for limit in (50_000, 38_000, 28_000):
        picture, image = fitted(content, ImageTarget(("image/jpeg",), max_edge=600, max_bytes=limit))
        assert picture.pixels == (600, 400)
        assert len(picture.content) > limit * 0.6
        found.append(likeness(original, image))
    assert found == sorted(found, reverse=True)


def test_a_photo_becomes_webp_where_it_would_have_to_be_smaller_as_a_jpeg(corpus):
    original, content = corpus["photo as png"]
    best, image = fitted(content, ImageTarget(ALL, max_edge=600, max_bytes=17_000))
    jpeg, _ = fitted(content, ImageTarget(("image/jpeg",), max_edge=600, max_bytes=17_000))
    assert (best.media_type, best.pixels) == ("image/webp", (600, 400))
    assert jpeg.pixels.width < 600
    assert likeness(original, image) > 0.9


# ------------------------------------------------------------------------------------------------------- legibility


def letters(size: int) -> dict[str, Image.Image]:
    font = ImageFont.load_default(size=size)
    made = {}
    for letter in "ABCDEFGHJKLMNPRSTUVWXYZ2345679":
        image = Image.new("L", (2 * size, 2 * size), 255)
        ImageDraw.Draw(image).text((size // 2, size // 4), letter, 0, font)
        made[letter] = image
    return made


def read_back(image: Image.Image, boxes: list[tuple[int, int]], side: int) -> str:
    """The letter that is likest to each box, by correlation: what a reader without a dictionary makes of it."""
    known = {letter: np.asarray(glyph, dtype=float) for letter, glyph in letters(TEN_POINTS).items()}
    text = ""
    for left, top in boxes:
        seen = np.asarray(image.crop((left, top, left + side, top + side)), dtype=float)
        text += max(known, key=lambda letter: float(np.corrcoef(known[letter].ravel(), seen.ravel())[0, 1]))
    return text


@pytest.mark.parametrize(
    "target",
    [
        ImageTarget(max_edge=1_568),
        ImageTarget(max_edge=1_568, max_bytes=100_000),
        ImageTarget(("image/jpeg",), max_edge=1_568, max_bytes=100_000),
        ImageTarget(ALL, max_edge=1_568, max_bytes=60_000),
        ImageTarget(("image/webp",), max_edge=1_568, max_bytes=60_000),
    ],
)
def test_text_of_10_points_in_a_fitted_full_hd_screenshot_is_legible(encode, target):
    screen, side = desktop(1_920, 1_080), 2 * TEN_POINTS
    alphabet = letters(TEN_POINTS)
    wanted = "".join(sorted(alphabet)) * 3
    boxes = [(1_000 + index % 30 * 30, 400 + index // 30 * 60) for index in range(len(wanted))]
    screen.paste("white", (990, 380, 1_920, 580))
    for letter, (left, top) in zip(wanted, boxes, strict=True):
        screen.paste(alphabet[letter].convert("RGB"), (left, top))
    _, image = fitted(encode(screen, "PNG"), target)
    seen = on_white(image).convert("L").resize(screen.size, Image.Resampling.LANCZOS)
    read = read_back(seen, boxes, side)
    right = sum(one == other for one, other in zip(read, wanted, strict=True))
    assert right / len(wanted) > 0.97, read
    # Ink stays dark and paper light: 4.5 to 1 is what WCAG 2.2 asks of text (1.4.3).
    lines = np.asarray(seen.crop((1_000, 400, 1_900, 426)), dtype=float)
    light, dark = ((np.percentile(lines, share) / 255) ** 2.2 for share in (95, 0.5))
    assert (light + 0.05) / (dark + 0.05) > 4.5


# ------------------------------------------------------------------------------------------------------------- laws


TARGETS = st.builds(
    ImageTarget,
    types=st.lists(st.sampled_from([*ALL, "image/gif", "image/heic"]), max_size=4, unique=True).map(tuple),
    max_edge=st.none() | st.integers(1, 1_200),
    max_bytes=st.none() | st.integers(1, 200) | st.integers(200, 200_000),
    animation=st.booleans(),
)
CROPS = st.none() | st.builds(Crop, *[st.integers(-200, 1_100)] * 4)


@settings(max_examples=60, deadline=None, database=None, derandomize=True, suppress_health_check=EVERY_CHECK)
@given(name=st.sampled_from(NAMES), target=TARGETS, crop=CROPS)
@example(name="alpha", target=ImageTarget(("image/gif",), 7, 400), crop=None)
@example(name="animated", target=ImageTarget(("image/gif",), 100, 4_000), crop=None)
def test_any_image_is_within_any_target_or_that_is_a_clear_error(corpus, name, target, crop):
    try:
        picture, image = fitted(corpus[name][1], target, crop)
    except MediaError as error:
        expected = {
            "cannot be converted to": not {*ALL, "image/gif"} & {*target.types},
            "bytes as": (target.max_bytes or LIMIT) < 2_000,
            "the crop": crop is not None,
        }
        if not any(words in str(error) and is_expected for words, is_expected in expected.items()):
            raise
        return
    width, height = corpus[name][0].size
    assert picture.original == (width, height)
    assert picture.frames in (1, 3)
    if crop is None:
        assert abs(image.width * height - image.height * width) <= max(width, height) * 1.01
    else:
        assert image.width <= crop.width
        assert image.height <= crop.height
