import struct
import warnings
from io import BytesIO

import pytest
from PIL import Image, ImageChops, ImageCms, ImageColor, ImageStat

from gateway.content.media.images import DecodedImage, fit_image, limit_pixels
from gateway.core.model.effects import Crop, ImageTarget
from gateway.core.model.media_types import inspect
from gateway.errors import MediaError

LIMIT = 60_000_000
ANY = ImageTarget()
QUADRANTS = {"top left": "red", "top right": "lime", "bottom left": "blue", "bottom right": "yellow"}


def fitted(content, target=ANY, crop=None, max_pixels=LIMIT) -> DecodedImage:
    picture = fit_image(content, inspect(content).media_type or "", target, crop, max_pixels)
    decoded = Image.open(BytesIO(picture.content))
    decoded.load()
    assert decoded.get_format_mimetype() == picture.media_type
    assert decoded.size == picture.pixels
    assert picture.media_type in target.types
    assert target.max_edge is None or max(decoded.size) <= target.max_edge
    assert target.max_bytes is None or len(picture.content) <= target.max_bytes
    return picture


def difference(one: Image.Image, other: Image.Image) -> float:
    """The mean absolute difference of two images' channels, 0 to 255."""
    assert one.size == other.size
    return max(ImageStat.Stat(ImageChops.difference(one.convert("RGB"), other.convert("RGB"))).mean)


def quadrants(width=80, height=40) -> Image.Image:
    image = Image.new("RGB", (width, height), "red")
    image.paste("lime", (width // 2, 0, width, height // 2))
    image.paste("blue", (0, height // 2, width // 2, height))
    image.paste("yellow", (width // 2, height // 2, width, height))
    return image


def near(pixel, colour, tolerance=12) -> bool:
    return all(abs(a - b) <= tolerance for a, b in zip(pixel[:3], ImageColor.getrgb(colour)[:3], strict=True))


# ---------------------------------------------------------------------------------------------------- size and bytes


def test_a_12_megapixel_screenshot_becomes_a_small_png_that_is_as_legible_as_a_plain_resize(screenshot, encode, decode):
    original = screenshot(4_000, 3_000)
    picture = fitted(encode(original, "PNG"), ImageTarget(max_edge=1_568))
    assert (picture.media_type, picture.pixels, picture.original) == ("image/png", (1_568, 1_176), (4_000, 3_000))
    reference = original.resize((1_568, 1_176), Image.Resampling.LANCZOS)
    assert difference(decode(picture.content), reference) < 2


def test_a_photo_jpeg_stays_a_jpeg_and_looks_the_same_when_smaller(photo, encode, decode):
    original = photo(4_000, 3_000)
    picture = fitted(encode(original, "JPEG", quality=90), ImageTarget(max_edge=1_568))
    assert (picture.media_type, picture.pixels) == ("image/jpeg", (1_568, 1_176))
    assert difference(decode(picture.content), original.resize((1_568, 1_176), Image.Resampling.LANCZOS)) < 5


def test_a_wide_jpeg_keeps_its_shape(photo, encode):
    picture = fitted(encode(photo(3_200, 200), "JPEG"), ImageTarget(max_edge=400))
    assert picture.pixels == (400, 25)


def test_an_image_is_never_made_larger(encode):
    picture = fitted(encode(quadrants(), "BMP"), ImageTarget(max_edge=1_000))
    assert picture.pixels == picture.original == (80, 40)


def test_what_fits_already_comes_back_byte_for_byte(encode):
    content = encode(quadrants(), "PNG")
    assert fitted(content, ImageTarget(max_edge=80, max_bytes=len(content))).content == content


def test_an_animation_that_fits_keeps_its_frames(encode, decode):
    frames = [Image.new("RGB", (20, 20), colour) for colour in ("red", "blue")]
    content = encode(frames[0], "GIF", save_all=True, append_images=frames[1:])
    assert fitted(content, ImageTarget(types=("image/gif",))).content == content


@pytest.mark.parametrize("name", ["GIF", "WEBP", "PNG"])
def test_of_an_animation_that_must_change_the_first_frame_is_shown(encode, decode, name):
    frames = [Image.new("RGB", (200, 100), colour) for colour in ("red", "lime", "blue")]
    content = encode(frames[0], name, save_all=True, append_images=frames[1:], duration=50)
    picture = fitted(content, ImageTarget(max_edge=50))
    assert picture.pixels == (50, 25)
    assert near(decode(picture.content).convert("RGB").getpixel((25, 12)), "red")


def test_a_photo_png_over_the_byte_limit_becomes_a_jpeg(photo, encode, decode):
    original = photo(1_200, 900)
    content = encode(original, "PNG")
    picture = fitted(content, ImageTarget(max_bytes=len(content) // 4))
    assert (picture.media_type, picture.pixels) == ("image/jpeg", (1_200, 900))
    assert difference(decode(picture.content), original) < 6


def test_a_png_that_cannot_fit_is_not_encoded_to_find_that_out(photo, encode, monkeypatch):
    content, pixels = encode(photo(1_200, 900), "PNG"), 0
    save = Image.Image.save

    def counted(image, to, name, **options):
        nonlocal pixels
        pixels += image.width * image.height if name == "PNG" else 0
        save(image, to, name, **options)

    monkeypatch.setattr(Image.Image, "save", counted)
    picture = fitted(content, ImageTarget(max_bytes=len(content) * 2 // 3))
    assert (picture.media_type, picture.pixels) == ("image/jpeg", (1_200, 900))
    assert pixels <= 1_200 * 900 / 8


def test_a_photo_png_within_the_byte_limit_stays_a_png(photo, encode):
    content = encode(photo(1_200, 900), "PNG")
    assert fitted(content, ImageTarget(max_edge=600, max_bytes=len(content))).media_type == "image/png"


def colourful(image: Image.Image) -> Image.Image:
    """With a bar of 768 colours at its left."""
    for band, colour in enumerate(("red", "lime", "blue")):
        bar = Image.merge("RGB", [Image.linear_gradient("L").resize((30, image.height))] * 3)
        image.paste(ImageChops.multiply(bar, Image.new("RGB", bar.size, colour)), (band * 30, 0))
    return image


def test_a_drawing_over_the_byte_limit_gets_a_palette_before_it_is_made_a_jpeg(screenshot, encode, decode):
    original = colourful(screenshot(1_600, 1_200))
    whole = fitted(encode(original, "PNG"), ImageTarget(max_edge=800))
    assert decode(whole.content).mode == "RGB"
    picture = fitted(encode(original, "PNG"), ImageTarget(max_edge=800, max_bytes=len(whole.content) * 2 // 3))
    assert (picture.media_type, picture.pixels) == ("image/png", (800, 600))
    assert decode(picture.content).mode == "P"
    assert difference(decode(picture.content), decode(whole.content)) < 2


def test_a_drawing_of_few_colours_has_a_palette_that_loses_nothing(screenshot, encode, decode):
    original = screenshot(800, 600)
    picture = fitted(encode(original, "BMP"))
    assert (picture.media_type, decode(picture.content).mode) == ("image/png", "P")
    assert difference(decode(picture.content), original) == 0
    assert len(picture.content) < len(encode(original, "PNG"))


def test_a_drawing_in_black_and_white_becomes_grey(screenshot, encode, decode):
    original = screenshot(800, 600).convert("L").convert("RGB")
    picture = fitted(encode(original, "BMP"))
    assert decode(picture.content).mode == "L"
    assert difference(decode(picture.content), original) == 0


@pytest.mark.parametrize("types", [("image/jpeg",), ("image/png",), ("image/webp",), ("image/png", "image/jpeg")])
def test_an_image_is_scaled_down_until_it_fits_the_bytes(photo, encode, types):
    picture = fitted(encode(photo(1_000, 800), "PNG"), ImageTarget(types=types, max_bytes=8_000))
    assert 16 <= max(picture.pixels) < 1_000
    assert abs(picture.pixels.width / picture.pixels.height - 1.25) < 0.1


def test_a_byte_limit_that_no_image_meets_is_an_error_that_names_it(photo, encode):
    with pytest.raises(MediaError) as caught:
        fitted(encode(photo(300, 300), "PNG"), ImageTarget(max_bytes=40))
    assert "40 bytes" in str(caught.value)


def test_a_target_of_types_that_cannot_be_made_is_an_error_that_names_them(encode):
    with pytest.raises(MediaError) as caught:
        fit_image(encode(quadrants(), "PNG"), "image/png", ImageTarget(types=("image/heic",)), None, LIMIT)
    assert "image/heic" in str(caught.value)


@pytest.mark.parametrize("name", ["GIF", "BMP", "TIFF", "WEBP", "AVIF", "PNG", "JPEG"])
@pytest.mark.parametrize("wanted", ["image/png", "image/jpeg", "image/webp", "image/gif"])
def test_every_readable_type_becomes_every_type_that_can_be_made(encode, decode, name, wanted):
    picture = fitted(encode(quadrants(), name), ImageTarget(types=(wanted,)))
    image = decode(picture.content).convert("RGB")
    corners = [image.getpixel(at) for at in ((10, 10), (70, 10), (10, 30), (70, 30))]
    assert all(near(pixel, colour, 40) for pixel, colour in zip(corners, QUADRANTS.values(), strict=True)), corners


def test_equal_input_gives_equal_bytes(photo, encode):
    content = encode(photo(900, 700), "PNG")
    target = ImageTarget(max_edge=500, max_bytes=30_000)
    assert fitted(content, target) == fitted(content, target)


# ------------------------------------------------------------------------------------------------- colours and modes


def test_a_cmyk_jpeg_becomes_rgb_of_the_same_colours(encode, decode):
    content = encode(quadrants(400, 200).convert("CMYK"), "JPEG", quality=95)
    image = decode(fitted(content).content)
    assert image.mode == "RGB"
    assert near(image.getpixel((50, 50)), "red", 20)


def test_16_bit_grey_keeps_its_whole_range(encode, decode):
    ramp = Image.new("I;16", (256, 64))
    ramp.putdata([x * 257 for _ in range(64) for x in range(256)])
    content = encode(ramp, "PNG")
    for target in (ANY, ImageTarget(max_edge=128)):
        image = decode(fitted(content, target).content)
        assert image.mode == "L"
        width = image.width
        shown = [image.getpixel((round(width * part), 10)) for part in (0.25, 0.5, 0.75)]
        assert all(abs(value - wanted) <= 3 for value, wanted in zip(shown, (64, 128, 192), strict=True)), shown


@pytest.mark.parametrize(("low", "high"), [(0.0, 1.0), (0.0, 255.0), (-4.0, 1_000_000.0)])
def test_floating_point_grey_is_shown_from_its_darkest_to_its_brightest(encode, decode, low, high):
    ramp = Image.new("F", (256, 8))
    ramp.putdata([low + (high - low) * x / 255 for _ in range(8) for x in range(256)])
    image = decode(fitted(encode(ramp, "TIFF")).content)
    shown = [image.getpixel((x, 4)) for x in (0, 128, 255)]
    assert all(abs(value - wanted) <= 2 for value, wanted in zip(shown, (0, 128, 255), strict=True)), shown


@pytest.mark.parametrize("mode", ["1", "L", "LA", "P", "RGB", "RGBA"])
def test_every_common_mode_survives_being_scaled(encode, decode, mode):
    content = encode(quadrants(400, 200).convert(mode), "PNG")
    image = decode(fitted(content, ImageTarget(max_edge=100)).content)
    plain = quadrants(400, 200).convert(mode).convert("RGB")
    reference = plain.resize((100, 50), Image.Resampling.LANCZOS, reducing_gap=2.0)
    assert difference(image, reference) < 4


def half_transparent() -> Image.Image:
    image = quadrants(200, 100).convert("RGBA")
    image.paste((0, 0, 0, 0), (0, 0, 100, 100))
    return image


@pytest.mark.parametrize("mode", ["RGBA", "P"])
def test_transparency_is_kept_in_png_and_white_in_jpeg(encode, decode, mode):
    source = half_transparent()
    content = encode(source.quantize(16) if mode == "P" else source, "PNG")
    kept = decode(fitted(content, ImageTarget(max_edge=100)).content)
    assert kept.mode == "RGBA"
    assert kept.getpixel((10, 10))[3] == 0
    assert kept.getpixel((90, 10)) == (0, 255, 0, 255)
    white = decode(fitted(content, ImageTarget(types=("image/jpeg",))).content)
    assert near(white.getpixel((20, 20)), "white")
    assert near(white.getpixel((180, 20)), "lime", 20)


def test_one_transparent_colour_of_a_png_is_transparency(encode, decode):
    content = encode(quadrants(200, 100), "PNG", transparency=(255, 0, 0))
    assert near(decode(fitted(content, ImageTarget(types=("image/jpeg",))).content).getpixel((20, 20)), "white")


def test_an_alpha_channel_that_hides_nothing_does_not_keep_a_photo_from_being_a_jpeg(photo, encode):
    content = encode(photo(800, 600).convert("RGBA"), "PNG")
    picture = fitted(content, ImageTarget(max_bytes=len(content) // 4))
    assert (picture.media_type, picture.pixels) == ("image/jpeg", (800, 600))


def swapped_profile() -> bytes:
    """An ICC profile whose red is sRGB's green and the other way round: nobody can overlook whether it was obeyed."""
    profile = bytearray(ImageCms.ImageCmsProfile(ImageCms.createProfile("sRGB")).tobytes())
    for at in range(132, 132 + 12 * struct.unpack(">I", profile[128:132])[0], 12):
        name = bytes(profile[at : at + 4])
        if name in (b"rXYZ", b"gXYZ"):
            profile[at : at + 4] = b"gXYZ" if name == b"rXYZ" else b"rXYZ"
    return bytes(profile)


def test_colours_are_converted_from_the_profile_to_srgb(encode, decode):
    content = encode(Image.new("RGB", (64, 64), "red"), "PNG", icc_profile=swapped_profile())
    image = decode(fitted(content, ImageTarget(max_edge=32)).content)
    assert near(image.getpixel((16, 16)), "lime")
    assert "icc_profile" not in image.info


@pytest.mark.parametrize("profile", [b"no profile at all", b"\0" * 400])
def test_a_broken_profile_is_ignored(encode, decode, profile):
    content = encode(Image.new("RGB", (64, 64), "red"), "PNG", icc_profile=profile)
    assert near(decode(fitted(content, ImageTarget(max_edge=32)).content).getpixel((16, 16)), "red")


def test_a_profile_of_other_colours_than_the_image_has_is_ignored(encode, decode):
    content = encode(Image.new("L", (64, 64), 200), "PNG", icc_profile=swapped_profile())
    assert decode(fitted(content, ImageTarget(max_edge=32)).content).getpixel((16, 16)) == 200


# ------------------------------------------------------------------------------------------------ orientation and crop


def turned(orientation: int) -> tuple[Image.Image, Image.Exif]:
    """An image stored so that a viewer that obeys `orientation` shows the quadrants upright."""
    undo = {
        1: None,
        2: Image.Transpose.FLIP_LEFT_RIGHT,
        3: Image.Transpose.ROTATE_180,
        4: Image.Transpose.FLIP_TOP_BOTTOM,
        5: Image.Transpose.TRANSPOSE,
        6: Image.Transpose.ROTATE_90,
        7: Image.Transpose.TRANSVERSE,
        8: Image.Transpose.ROTATE_270,
    }[orientation]
    image = quadrants(800, 400)
    exif = Image.Exif()
    exif[0x0112] = orientation
    return (image.transpose(undo) if undo is not None else image), exif


@pytest.mark.parametrize("orientation", range(1, 9))
@pytest.mark.parametrize("name", ["JPEG", "PNG", "TIFF", "WEBP"])
def test_every_orientation_comes_out_upright(encode, decode, orientation, name):
    image, exif = turned(orientation)
    picture = fitted(encode(image, name, exif=exif), ImageTarget(max_edge=100))
    assert (picture.pixels, picture.original) == ((100, 50), (800, 400))
    shown = decode(picture.content).convert("RGB")
    corners = [shown.getpixel(at) for at in ((20, 10), (80, 10), (20, 40), (80, 40))]
    assert all(near(pixel, colour, 40) for pixel, colour in zip(corners, QUADRANTS.values(), strict=True)), corners


@pytest.mark.parametrize("orientation", range(1, 9))
@pytest.mark.parametrize("max_edge", [None, 100])
def test_a_crop_is_one_of_the_upright_image(encode, decode, orientation, max_edge):
    image, exif = turned(orientation)
    content = encode(image, "JPEG", exif=exif, quality=95)
    picture = fitted(content, ImageTarget(max_edge=max_edge), Crop(420, 20, 300, 150))
    assert picture.original == (800, 400)
    assert picture.pixels == ((100, 50) if max_edge else (300, 150))
    pixel = decode(picture.content).getpixel((50, 25))
    assert near(pixel, "lime", 20), pixel


def test_an_orientation_that_is_not_obeyed_by_all_is_made_true_even_when_all_else_fits(encode):
    image, exif = turned(6)
    content = encode(image, "JPEG", exif=exif)
    assert fitted(content).content != content


def test_a_crop_without_scaling_has_the_very_pixels(screenshot, encode, decode):
    original = screenshot(800, 600)
    picture = fitted(encode(original, "PNG"), ANY, Crop(100, 80, 320, 200))
    assert difference(decode(picture.content), original.crop((100, 80, 420, 280))) == 0


def test_a_crop_of_a_huge_jpeg_is_sharp(screenshot, encode, decode):
    original = screenshot(4_000, 3_000)
    picture = fitted(encode(original, "JPEG", quality=95), ImageTarget(max_edge=800), Crop(0, 60, 800, 600))
    assert picture.pixels == (800, 600)
    assert difference(decode(picture.content), original.crop((0, 60, 800, 660))) < 6


@pytest.mark.parametrize(
    ("crop", "pixels"),
    [
        (Crop(-50, -50, 100, 70), (50, 20)),
        (Crop(60, 20, 1_000, 1_000), (20, 20)),
        (Crop(79, 39, 5, 5), (1, 1)),
        (Crop(-1_000, -1_000, 9_999, 9_999), (80, 40)),
    ],
)
def test_a_crop_is_clamped_to_the_image(encode, crop, pixels):
    assert fitted(encode(quadrants(), "PNG"), ANY, crop).pixels == pixels


@pytest.mark.parametrize("crop", [Crop(80, 0, 10, 10), Crop(0, 40, 10, 10), Crop(-10, 0, 10, 10), Crop(0, 0, 0, 10)])
def test_a_crop_outside_of_the_image_is_an_error_that_names_both(encode, crop):
    with pytest.raises(MediaError) as caught:
        fitted(encode(quadrants(), "PNG"), ANY, crop)
    assert "80 x 40" in str(caught.value)
    assert f"{crop.left}, {crop.top}" in str(caught.value)


# --------------------------------------------------------------------------------------------------------- metadata


@pytest.mark.parametrize("name", ["JPEG", "PNG", "WEBP", "TIFF"])
@pytest.mark.parametrize("types", [("image/jpeg",), ("image/png",), ("image/webp",)])
def test_nothing_but_pixels_survives_a_new_encoding(encode, decode, name, types):
    exif = Image.Exif()
    exif[0x010E] = "SECRET description"
    exif[0x9286] = "SECRET comment"
    exif.get_ifd(0x8825)[2] = (52.0, 31.0, 12.0)
    options = {"comment": b"SECRET comment"} if name == "JPEG" else {}
    content = encode(quadrants(400, 200), name, exif=exif, **options)
    assert b"SECRET" in content
    picture = fitted(content, ImageTarget(types=types, max_edge=100))
    assert b"SECRET" not in picture.content
    shown = decode(picture.content)
    assert not shown.getexif()
    assert not {"exif", "comment", "icc_profile", "xmp", "photoshop"} & set(shown.info)


# ------------------------------------------------------------------------------------------------------ hostile input


def test_more_pixels_than_the_limit_are_not_decoded(encode):
    content = encode(Image.new("1", (2_000, 2_000)), "TIFF", compression="group4")
    assert inspect(content).size is None
    with pytest.raises(MediaError) as caught:
        fitted(content, max_pixels=3_999_999)
    assert "3,999,999" in str(caught.value)


def test_a_bomb_is_refused_from_its_header(bomb):
    with pytest.raises((MediaError, Image.DecompressionBombError)):
        fitted(bomb)


def test_the_limit_of_a_worker_is_pillows_own_too(encode, monkeypatch):
    monkeypatch.setattr(Image, "MAX_IMAGE_PIXELS", None)
    content = encode(Image.new("L", (100, 100)), "PNG")
    with warnings.catch_warnings():
        limit_pixels(9_999)
        with pytest.raises(MediaError) as caught:
            fitted(content, max_pixels=9_999)
    assert "9,999" in str(caught.value)


def test_an_animation_bomb_costs_one_frame(animation_bomb, decode, monkeypatch):
    from PIL import GifImagePlugin

    loaded = []
    load = GifImagePlugin.GifImageFile.load_prepare
    monkeypatch.setattr(
        GifImagePlugin.GifImageFile, "load_prepare", lambda image: loaded.append(image.tell()) or load(image)
    )
    picture = fitted(animation_bomb, ImageTarget(max_edge=100))
    assert picture.pixels == (100, 100)
    assert set(loaded) <= {0}


@pytest.mark.parametrize("name", ["PNG", "JPEG", "GIF", "WEBP", "BMP", "TIFF", "AVIF"])
@pytest.mark.parametrize("share", [0.3, 0.6, 0.9])
def test_a_truncated_file_is_an_error(photo, encode, name, share):
    content = encode(photo(300, 200), name)
    # MediaError where the cause is known; the worker makes one of whatever else a decoder raises.
    with pytest.raises((MediaError, OSError, SyntaxError, ValueError, EOFError, IndexError, struct.error)):
        fitted(content[: int(len(content) * share)], ImageTarget(max_edge=100))


def test_bytes_that_only_begin_like_an_image_are_an_error_that_names_the_type():
    with pytest.raises(MediaError) as caught:
        fit_image(b"\x89PNG\r\n\x1a\n" + b"garbage " * 10, "image/png", ANY, None, LIMIT)
    assert "image/png" in str(caught.value)
