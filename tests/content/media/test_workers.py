"""Documents, sound and rare images through the worker processes: limits, hostile bytes, extras that are missing."""

import subprocess
import sys
from io import BytesIO
from pathlib import Path
from typing import Any

import anyio
import pybase64
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from PIL import Image

from gateway.config.content_settings import MediaSettings
from gateway.content.media import MediaWorkers
from gateway.core.model.effects import (
    AudioTarget,
    ConvertAudio,
    Converted,
    Crop,
    DocumentRead,
    Failed,
    FitImage,
    Fitted,
    ImageTarget,
    Probe,
    Probed,
    ReadDocument,
    RenderPages,
)
from gateway.errors import MediaError
from tests.content.media.pdf_files import Page, pdf
from tests.content.media.points import colour_at
from tests.content.media.sound_files import ENCODED, encoded, video, wav

EVERY_CHECK: Any = list(HealthCheck)

pytestmark = pytest.mark.anyio

HERE = Path(__file__).parent
SMALL = ImageTarget(max_edge=100)
EXTRA = 'pip install "mcp-multimodal-gateway[{}]"'


def reason(image: Fitted | Failed) -> str:
    assert isinstance(image, Failed)
    return image.reason


def decoded(fitted: Fitted | Failed) -> Image.Image:
    assert isinstance(fitted, Fitted)
    image = Image.open(BytesIO(pybase64.b64decode(fitted.data)))
    image.load()
    assert (image.size, image.get_format_mimetype()) == (fitted.pixels, fitted.media_type)
    return image


def slow_page() -> bytes:
    """A page that takes minutes: curves over all of it, again and again."""
    curve = b"0 0 m 9999 842 -9999 400 595 0 c 0 0 595 842 re W* n 0 0 595 842 re f\n"
    return b"q /Pattern cs\n" + b"0.5 w [0.01 0.01] 0 d 0 0 m 595 842 l S\n" * 20_000 + curve * 1_000 + b"Q"


# --------------------------------------------------------------------------------------------------------- documents


async def test_a_document_is_read_and_drawn_in_a_worker():
    content = pdf([Page(["Hello \u00e9"]), Page(["World"], 400, 200)], title="T")
    async with MediaWorkers(MediaSettings(workers=1)) as workers:
        with anyio.fail_after(60):
            assert await workers.read_document(content, 5, 100) == DocumentRead(2, ("Hello \u00e9", "World"), "T")
            rendered = await workers.render_pages(content, (2, 1), SMALL)
        assert len(workers.pids) == 1
    assert [decoded(image).size for image in rendered.images] == [(100, 50), (71, 100)]
    assert all(isinstance(image, Fitted) and image.pixels == image.original for image in rendered.images)


async def test_an_effect_is_performed_with_its_content_as_base64_or_as_bytes():
    document, picture, sound = pdf([Page(["Hello"])]), BytesIO(), wav(1)
    Image.new("RGB", (40, 20)).save(picture, "PNG")
    async with MediaWorkers(MediaSettings(workers=1)) as workers:
        with anyio.fail_after(60):
            for data in (document, pybase64.b64encode_as_string(document)):
                assert await workers.run(ReadDocument("", data, 5, 100)) == DocumentRead(1, ("Hello",))
                assert len((await workers.run(RenderPages("", data, (1,), SMALL))).images) == 1
            for data in (picture.getvalue(), pybase64.b64encode_as_string(picture.getvalue())):
                fitted = await workers.run(FitImage("", data, "image/png", SMALL, Crop(0, 0, 20, 10)))
                assert fitted.pixels == (20, 10)
            for data in (sound, pybase64.b64encode_as_string(sound)):
                assert (await workers.run(ConvertAudio("", data, "audio/wav", AudioTarget()))).media_type == "audio/wav"
                assert (await workers.run(Probe("", data, "audio/wav"))).seconds == 1


async def test_a_page_that_is_not_there_fails_in_its_place():
    async with MediaWorkers(MediaSettings(workers=1)) as workers:
        with anyio.fail_after(60):
            rendered = await workers.render_pages(pdf([Page(), Page()]), (1, 3, 2), SMALL)
            assert (await workers.render_pages(pdf([Page()]), (), SMALL)).images == ()
    assert [type(image) for image in rendered.images] == [Fitted, Failed, Fitted]
    assert "2 pages" in reason(rendered.images[1])


async def test_a_page_that_takes_too_long_costs_itself_and_those_after_it():
    content = pdf([Page(["first"]), Page(content=slow_page()), Page(["third"])])
    async with MediaWorkers(MediaSettings(workers=1, timeout=5)) as workers:
        with anyio.fail_after(60):
            await workers.render_pages(content, (1,), SMALL)
            rendered = await workers.render_pages(content, (1, 2, 3), ImageTarget(max_edge=2_000))
            assert workers.pids == frozenset()
            assert len((await workers.render_pages(content, (3,), SMALL)).images) == 1
    assert [type(image) for image in rendered.images] == [Fitted, Failed, Failed]
    assert "5 s" in reason(rendered.images[1])
    assert "before it" in reason(rendered.images[2])


async def test_a_page_over_the_memory_limit_costs_itself():
    content = pdf([Page(["first"]), Page(["second"], 9_000, 9_000)])
    async with MediaWorkers(MediaSettings(workers=1, memory_bytes=140 * 1024 * 1024)) as workers:
        with anyio.fail_after(120):
            rendered = await workers.render_pages(content, (1, 2, 1), ImageTarget(max_edge=4_000))
    kinds = [type(image) for image in rendered.images]
    assert kinds == [Fitted, Failed, Fitted]


async def test_a_document_that_wants_a_password_fails_as_a_whole():
    content = pdf([Page(["x"])], password="secret")
    async with MediaWorkers(MediaSettings(workers=1)) as workers:
        with anyio.fail_after(60):
            for attempt in (workers.read_document(content, 1, 1), workers.render_pages(content, (1,), SMALL)):
                with pytest.raises(MediaError) as caught:
                    await attempt
                assert "password" in str(caught.value)


@pytest.mark.parametrize(
    ("content", "named"), [(b"", "empty"), (b"\x89PNG\r\n\x1a\n", "not a PDF"), (b" " * 99, "not a PDF")]
)
async def test_what_is_no_pdf_is_refused_without_any_worker(content, named):
    async with MediaWorkers(MediaSettings()) as workers:
        for attempt in (workers.read_document(content, 1, 1), workers.render_pages(content, (1,), SMALL)):
            with pytest.raises(MediaError) as caught:
                await attempt
            assert named in str(caught.value)
        assert workers.pids == frozenset()


async def test_too_many_bytes_are_refused_whatever_is_asked():
    content = pdf([Page()])
    async with MediaWorkers(MediaSettings(max_input_bytes=100)) as workers:
        for attempt in (
            workers.read_document(content, 1, 1),
            workers.render_pages(content, (1,), SMALL),
            workers.convert_audio(wav(1), "audio/wav", AudioTarget()),
        ):
            with pytest.raises(MediaError) as caught:
                await attempt
            assert "limit of 100" in str(caught.value)
        assert await workers.probe(wav(1), "audio/wav") == Probed()
        assert workers.pids == frozenset()


# ------------------------------------------------------------------------------------------------------------- sound


async def test_sound_is_converted_and_probed_in_a_worker():
    async with MediaWorkers(MediaSettings(workers=1)) as workers:
        with anyio.fail_after(60):
            made = await workers.convert_audio(encoded("audio/flac", 2.0), "audio/flac", AudioTarget(max_seconds=1))
            probed = await workers.probe(pybase64.b64decode(made.data), "")
            assert (await workers.probe(video(), "video/mp4")).pixels == (64, 48)
    assert (made.media_type, made.seconds, made.original) == ("audio/wav", 1.0, 2.0)
    assert probed == Probed(1.0, "pcm", 2, 44_100)


@pytest.mark.parametrize("media_type", ["audio/mp4", "audio/webm"])
async def test_a_container_that_may_hold_a_picture_is_sound_where_it_is_called_so(media_type):
    content = encoded(media_type, 1.0)
    async with MediaWorkers(MediaSettings(workers=1)) as workers:
        with anyio.fail_after(60):
            made = await workers.convert_audio(content, media_type, AudioTarget(("audio/mpeg",)))
            assert isinstance(made, Converted)
            as_it_is = await workers.convert_audio(content, media_type, AudioTarget((media_type,)))
    assert pybase64.b64decode(as_it_is.data) == content


@pytest.mark.parametrize(
    ("content", "declared", "named"),
    [(b"%PDF-1.7", "audio/wav", "application/pdf"), (b"x", "", "unknown type"), (b"", "audio/wav", "empty")],
)
async def test_what_cannot_be_read_as_sound_is_refused_by_name(content, declared, named):
    async with MediaWorkers(MediaSettings()) as workers:
        with pytest.raises(MediaError) as caught:
            await workers.convert_audio(content, declared, AudioTarget())
        assert workers.pids == frozenset()
    assert named in str(caught.value)


@pytest.mark.parametrize(
    ("content", "declared"), [(b"", ""), (b"PK\x03\x04", "application/zip"), (b"text", "text/plain")]
)
async def test_nothing_is_said_of_what_is_neither_sound_nor_video(content, declared):
    async with MediaWorkers(MediaSettings()) as workers:
        assert await workers.probe(content, declared) == Probed()
        assert workers.pids == frozenset()


# ----------------------------------------------------------------------------------------------------- hostile bytes


SEEDS = {
    "application/pdf": pdf([Page(["hello"]), Page(["world"])], title="T"),
    **{media_type: encoded(media_type, 0.3) for media_type in ENCODED},
    "video/mp4": video(),
    "video/webm": video("webm", "libvpx"),
}


@st.composite
def broken(draw):
    """A file that was cut off, changed in places, or is nothing but its beginning and noise."""
    media_type = draw(st.sampled_from(sorted(SEEDS)))
    content = bytearray(SEEDS[media_type][: draw(st.integers(16, len(SEEDS[media_type])))])
    for at in draw(st.lists(st.integers(0, len(content) - 1), max_size=20)):
        content[at] = draw(st.integers(0, 255))
    if draw(st.booleans()):
        content[draw(st.integers(8, len(content))) :] = draw(st.binary(max_size=400))
    return media_type, bytes(content)


async def test_broken_bytes_are_an_error_or_an_answer_and_the_workers_go_on():
    cases = []

    @settings(max_examples=60, deadline=None, database=None, derandomize=True, suppress_health_check=EVERY_CHECK)
    @given(broken())
    def collect(case):
        cases.append(case)

    collect()
    assert len(cases) >= 30
    async with MediaWorkers(MediaSettings(workers=2)) as workers:
        with anyio.fail_after(240):
            for media_type, content in cases:
                if media_type == "application/pdf":
                    for attempt in (workers.read_document(content, 9, 999), workers.render_pages(content, (1,), SMALL)):
                        try:
                            await attempt
                        except MediaError:
                            continue
                    continue
                assert isinstance(await workers.probe(content, media_type), Probed)
                target = AudioTarget(("audio/mpeg",), max_bytes=9_000, max_seconds=1)
                try:
                    made = await workers.convert_audio(content, media_type, target)
                except MediaError:
                    continue
                assert len(pybase64.b64decode(made.data)) <= 9_000
            assert (await workers.read_document(SEEDS["application/pdf"], 1, 9)).texts == ("hello",)


# ------------------------------------------------------------------------------------------------------------ extras


@pytest.fixture
def without(tmp_path, monkeypatch):
    """(name of a module) -> workers that are started from now on do not find it."""

    def hide(name: str) -> None:
        (tmp_path / f"{name}.py").write_text(f"raise ModuleNotFoundError('No module named {name}', name={name!r})")
        monkeypatch.syspath_prepend(tmp_path)

    return hide


async def test_heic_becomes_what_is_taken(encode):
    import pillow_heif

    pillow_heif.register_heif_opener()
    content = encode(Image.new("RGB", (200, 100), "red"), "HEIF")
    async with MediaWorkers(MediaSettings(workers=1)) as workers:
        with anyio.fail_after(60):
            fitted = await workers.fit_image(content, "image/heic", SMALL)
    assert (fitted.pixels, fitted.original) == ((100, 50), (200, 100))
    red, green, blue = colour_at(decoded(fitted).convert("RGB"), 50, 25)
    assert (red > 240, green < 20, blue < 20) == (True, True, True)


async def test_heic_without_its_extra_is_an_error_that_names_it(encode, without):
    import pillow_heif

    pillow_heif.register_heif_opener()
    content = encode(Image.new("RGB", (64, 64), "red"), "HEIF")
    without("pillow_heif")
    async with MediaWorkers(MediaSettings(workers=1)) as workers:
        with anyio.fail_after(60), pytest.raises(MediaError) as caught:
            await workers.fit_image(content, "image/heic", SMALL)
    assert caught.value.remedy == EXTRA.format("heic")
    assert "HEIC" in str(caught.value)


@pytest.mark.parametrize("media_type", ["audio/flac", "audio/ogg", "audio/mp4"])
async def test_sound_without_the_extra_is_an_error_that_names_it(without, media_type):
    content = encoded(media_type, 1.0)
    without("av")
    async with MediaWorkers(MediaSettings(workers=1)) as workers:
        with anyio.fail_after(60):
            with pytest.raises(MediaError) as caught:
                await workers.convert_audio(content, media_type, AudioTarget())
            taken = await workers.convert_audio(content, media_type, AudioTarget((media_type,)))
    assert caught.value.remedy == EXTRA.format("audio")
    assert pybase64.b64decode(taken.data) == content


async def test_wav_and_mp3_are_cut_without_the_extra(without):
    sounds = {"audio/wav": wav(3), "audio/mpeg": encoded("audio/mpeg", 3.0)}
    without("av")
    async with MediaWorkers(MediaSettings(workers=1)) as workers:
        with anyio.fail_after(60):
            for media_type, content in sounds.items():
                shorter = await workers.convert_audio(content, media_type, AudioTarget(max_seconds=1))
                assert shorter.media_type == media_type
                assert (shorter.seconds, shorter.original) == pytest.approx((1, 3), abs=0.05)
                smaller = await workers.convert_audio(content, media_type, AudioTarget(max_bytes=10_000))
                assert len(pybase64.b64decode(smaller.data)) <= 10_000
                assert 0.5 < smaller.seconds < smaller.original


async def test_what_headers_tell_is_told_without_the_extra(without):
    flac, m4a = encoded("audio/flac", 1.0), encoded("audio/mp4", 1.0)
    without("av")
    async with MediaWorkers(MediaSettings(workers=1)) as workers:
        with anyio.fail_after(60):
            assert await workers.probe(flac, "audio/flac") == Probed(1.0, "flac", 2, 44_100)
            assert await workers.probe(m4a, "audio/mp4") == Probed()


def test_a_worker_that_fits_images_loads_neither_pdf_nor_sound():
    program = "import sys, gateway.content.media.worker, gateway.content.media.operations; print(*sys.modules)"
    root = HERE.parents[2]
    loaded = subprocess.run([sys.executable, "-c", program], cwd=root, capture_output=True, text=True, check=True)
    unwanted = {
        "pypdfium2",
        "av",
        "pillow_heif",
        "resvg_py",
        "numpy",
        "gateway.content.media.sound",
        "gateway.content.media.animations",
    }
    assert not unwanted & set(loaded.stdout.split())
