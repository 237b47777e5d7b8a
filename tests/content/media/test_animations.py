"""Animations: kept where they are taken, made smaller frame by frame, else their first frame and how many there are."""

from io import BytesIO

import pytest
from PIL import Image, ImageDraw

from gateway.content.media import animations
from gateway.content.media.images import DecodedImage, fit_image
from gateway.core.model.effects import Crop, ImageTarget
from gateway.core.model.media_types import inspect
from tests.content.media.points import colour_at

COLOURS = ("red", "lime", "blue", "yellow")
DURATIONS = [50, 120, 80, 200]
MOVING = ["GIF", "WEBP"]
LIMIT = 60_000_000


def animation(encode, name="GIF", size=(200, 100), **options) -> bytes:
    """Four frames: a square of another colour in each, at another place."""
    frames = []
    for index, colour in enumerate(COLOURS):
        frame = Image.new("RGB", size, "white")
        frame.paste(colour, (index * size[0] // 4, 0, (index + 1) * size[0] // 4, size[1]))
        frames.append(frame)
    return encode(
        frames[0], name, save_all=True, append_images=frames[1:], **({"duration": DURATIONS, "loop": 0} | options)
    )


def fitted(content: bytes, target: ImageTarget, crop: Crop | None = None, max_pixels: int = LIMIT) -> DecodedImage:
    picture = fit_image(content, inspect(content).media_type or "", target, crop, max_pixels)
    image = Image.open(BytesIO(picture.content))
    assert image.size == picture.pixels
    assert picture.media_type in target.types
    assert target.max_edge is None or max(image.size) <= target.max_edge
    assert target.max_bytes is None or len(picture.content) <= target.max_bytes
    return picture


def shown(content: bytes) -> list[tuple[Image.Image, int]]:
    """Each frame as it is seen, and its milliseconds."""
    image = Image.open(BytesIO(content))
    frames = []
    for index in range(getattr(image, "n_frames", 1)):
        image.seek(index)
        image.load()
        frames.append((image.convert("RGB"), image.info.get("duration", 0)))
    return frames


def assert_moves(content: bytes) -> None:
    frames = shown(content)
    assert [duration for _, duration in frames] == DURATIONS
    for index, (frame, _) in enumerate(frames):
        for column in range(4):
            pixel = colour_at(frame, frame.width * (2 * column + 1) // 8, frame.height // 2)
            wanted = colour_at(Image.new("RGB", (1, 1), COLOURS[index] if column == index else "white"), 0, 0)
            assert all(abs(a - b) <= 40 for a, b in zip(pixel, wanted, strict=True)), (index, column, pixel)


@pytest.mark.parametrize("name", [*MOVING, "PNG"])
def test_an_animation_that_fits_comes_back_byte_for_byte(encode, name):
    content = animation(encode, name)
    picture = fitted(content, ImageTarget(("image/gif", "image/webp", "image/png")))
    assert (picture.content, picture.frames) == (content, 1)


@pytest.mark.parametrize("name", [*MOVING, "PNG"])
@pytest.mark.parametrize("edge", [None, 100])
def test_where_no_animation_is_taken_the_first_frame_stands_for_all(encode, name, edge):
    target = ImageTarget(("image/gif", "image/webp", "image/png"), edge, animation=False)
    picture = fitted(animation(encode, name), target)
    assert picture.frames == 4
    assert len(shown(picture.content)) == 1
    assert colour_at(shown(picture.content)[0][0], 5, 5)[1] < 60


def test_a_still_image_has_one_frame_whatever_is_taken(encode):
    for name in ("GIF", "WEBP", "PNG", "TIFF", "AVIF"):
        content = encode(Image.new("RGB", (200, 100), "red"), name)
        assert fitted(content, ImageTarget(max_edge=50, animation=False)).frames == 1


@pytest.mark.parametrize("name", MOVING)
def test_an_animation_that_is_too_large_moves_on_when_it_is_smaller(encode, name):
    picture = fitted(animation(encode, name), ImageTarget((f"image/{name.lower()}",), max_edge=100))
    assert (picture.pixels, picture.original, picture.frames) == ((100, 50), (200, 100), 1)
    assert_moves(picture.content)


@pytest.mark.parametrize(("name", "other"), [("GIF", "webp"), ("WEBP", "gif"), ("PNG", "webp"), ("PNG", "gif")])
def test_an_animation_moves_on_in_a_type_that_is_taken(encode, name, other):
    picture = fitted(animation(encode, name), ImageTarget((f"image/{other}",)))
    assert (picture.media_type, picture.frames) == (f"image/{other}", 1)
    assert_moves(picture.content)


def test_how_often_an_animation_is_shown_stays_as_it_is(encode):
    for loop in (0, 3):
        for wanted in ("gif", "webp"):
            picture = fitted(animation(encode, "GIF", loop=loop), ImageTarget((f"image/{wanted}",), max_edge=100))
            assert Image.open(BytesIO(picture.content)).info["loop"] == loop


@pytest.mark.parametrize("types", [("image/png", "image/jpeg"), ("image/jpeg",)])
def test_where_no_type_that_moves_is_taken_the_first_frame_is_shown(encode, types):
    picture = fitted(animation(encode), ImageTarget(types))
    assert (picture.frames, picture.media_type in types) == (4, True)


def test_a_crop_is_one_of_the_first_frame(encode):
    picture = fitted(animation(encode), ImageTarget(("image/gif", "image/png")), Crop(0, 0, 50, 50))
    assert (picture.pixels, picture.frames) == ((50, 50), 4)


@pytest.mark.parametrize("name", MOVING)
def test_an_animation_is_made_to_fit_the_bytes(encode, photo, name):
    frames = [photo(300, 200) for _ in range(6)]
    content = encode(frames[0], name, save_all=True, append_images=frames[1:], duration=50)
    media_type = f"image/{name.lower()}"
    picture = fitted(content, ImageTarget((media_type,), max_bytes=len(content) // 4))
    assert (picture.media_type, picture.frames) == (media_type, 1)
    assert len(shown(picture.content)) == 6


def test_an_animation_that_would_have_to_be_tiny_is_shown_by_its_first_frame(encode, photo):
    frames = [photo(300, 200) for _ in range(8)]
    content = encode(frames[0], "GIF", save_all=True, append_images=frames[1:])
    picture = fitted(content, ImageTarget(("image/gif", "image/jpeg"), max_bytes=12_000))
    assert (picture.frames, picture.media_type) == (8, "image/jpeg")
    assert picture.pixels.width > 150


def test_too_many_pixels_in_all_are_shown_by_the_first_frame(encode, monkeypatch):
    content = animation(encode)
    monkeypatch.setattr(animations, "MOST_PIXELS", 4 * 200 * 100 - 1)
    assert fitted(content, ImageTarget(("image/gif",), max_edge=100)).frames == 4
    monkeypatch.setattr(animations, "MOST_PIXELS", 4 * 200 * 100)
    assert fitted(content, ImageTarget(("image/gif",), max_edge=100)).frames == 1


def test_an_animation_that_takes_too_long_is_shown_by_its_first_frame(encode, monkeypatch):
    monkeypatch.setattr(animations, "MOST_SECONDS", -1.0)
    assert fitted(animation(encode), ImageTarget(("image/gif",), max_edge=100)).frames == 4


def test_an_animation_bomb_does_not_move(animation_bomb):
    picture = fitted(animation_bomb, ImageTarget(("image/gif",), max_edge=100))
    assert picture.frames > 5_000


def test_an_animation_that_breaks_off_is_shown_by_its_first_frame(encode, photo):
    frames = [photo(200, 100) for _ in range(4)]
    content = encode(frames[0], "GIF", save_all=True, append_images=frames[1:])
    picture = fitted(content[: len(content) * 5 // 8], ImageTarget(("image/gif",), max_edge=100))
    assert picture.pixels == (100, 50)


@pytest.mark.parametrize("name", MOVING)
def test_what_is_transparent_in_an_animation_stays_so(encode, name):
    frames = []
    for left in (0, 100):
        frame = Image.new("RGBA", (200, 100))
        ImageDraw.Draw(frame).ellipse((left, 0, left + 99, 99), "red")
        frames.append(frame)
    content = encode(frames[0], name, save_all=True, append_images=frames[1:], disposal=2)
    picture = fitted(content, ImageTarget((f"image/{name.lower()}",), max_edge=100))
    assert picture.frames == 1
    image = Image.open(BytesIO(picture.content))
    for index, hidden in enumerate((75, 25)):
        image.seek(index)
        seen = image.convert("RGBA")
        assert colour_at(seen, hidden, 25)[3] == 0
        assert colour_at(seen, 100 - hidden, 25)[0] > 220


def test_an_animation_is_turned_upright(encode):
    exif = Image.Exif()
    exif[0x0112] = 6
    picture = fitted(animation(encode, "WEBP", exif=exif), ImageTarget(("image/webp",)))
    assert (picture.pixels, picture.original, picture.frames) == ((100, 200), (100, 200), 1)
    assert len(shown(picture.content)) == 4


def test_pages_of_a_tiff_are_counted_and_the_first_is_shown(encode):
    pages = [Image.new("RGB", (80, 40), colour) for colour in COLOURS]
    picture = fitted(encode(pages[0], "TIFF", save_all=True, append_images=pages[1:]), ImageTarget())
    assert picture.frames == 4
    assert colour_at(shown(picture.content)[0][0], 5, 5) == (255, 0, 0)
