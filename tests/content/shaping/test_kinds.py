"""Documents, sound, animations, links, files and descriptions: the whole loop on real bytes, with real workers."""

import base64
import io
import wave
from collections.abc import AsyncIterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from PIL import Image

from gateway.config.content_settings import FilesSettings, MediaSettings
from gateway.config.store_settings import StoreSettings
from gateway.content.media import MediaWorkers
from gateway.content.shaping import Reach, Shaped, Shaper
from gateway.content.shaping.effects import CallersTools
from gateway.content.shaping.files import HostFiles
from gateway.content.store import MemoryStore, fetch_bytes
from gateway.core.model.effects import Described
from gateway.core.profiles.profile import Profile
from gateway.errors import MediaError, UpstreamRefused
from tests.content.media.pdf_files import Page, pdf
from tests.content.media.points import colour_at

pytestmark = pytest.mark.anyio


def profile(**sections: Any) -> Profile:
    plain = {"image": {"types": ["image/png", "image/jpeg"], "max_edge": 1_000}, "tools": {"helpers": True}}
    return Profile.model_validate({"name": "test", **plain, **sections})


def text_pdf(*pages: str) -> bytes:
    """A PDF with these words, one text a page."""
    return pdf([Page([words]) for words in pages])


def scan_pdf(*colours: str) -> bytes:
    """A PDF of pages without text, each of one colour."""
    first, *more = (Image.new("RGB", (400, 600), colour) for colour in colours)
    buffer = io.BytesIO()
    first.save(buffer, "PDF", save_all=True, append_images=more)
    return buffer.getvalue()


def sound(seconds: int) -> bytes:
    buffer = io.BytesIO()
    with wave.open(buffer, "wb") as file:
        file.setnchannels(1)
        file.setsampwidth(2)
        file.setframerate(8_000)
        file.writeframes(bytes(16_000 * seconds))
    return buffer.getvalue()


def encoded(content: bytes) -> str:
    return base64.b64encode(content).decode()


def blob(content: bytes, uri: str, media_type: str | None = None) -> dict[str, Any]:
    return {"type": "resource", "resource": {"uri": uri, "mimeType": media_type, "blob": encoded(content)}}


def texts(shaped: Shaped) -> list[str]:
    return [block["text"] for block in shaped.result["content"] if block["type"] == "text"]


def pictures(shaped: Shaped) -> list[Image.Image]:
    blocks = [block for block in shaped.result["content"] if block["type"] == "image"]
    return [Image.open(io.BytesIO(base64.b64decode(block["data"]))).convert("RGB") for block in blocks]


@pytest.fixture
def store() -> MemoryStore:
    return MemoryStore(StoreSettings())


@pytest.fixture
async def media() -> AsyncIterator[MediaWorkers]:
    async with MediaWorkers(MediaSettings()) as workers:
        yield workers


@pytest.fixture
def shaper(store: MemoryStore, media: MediaWorkers) -> Shaper:
    return Shaper(store, media)


async def test_a_document_is_read_page_by_page_and_kept(shaper: Shaper, store: MemoryStore) -> None:
    document = text_pdf("Sales rose.", "Costs fell.", "The end.")
    host = profile(document={"show": "text", "max_pages": 2})
    shaped = await shaper.shape({"content": [blob(document, "doc://report.pdf", "text/plain")]}, host, owner="me")
    head, words = texts(shaped)
    assert words == "[page 1 of 3]\nSales rose.\n\n[page 2 of 3]\nCosts fell."
    (kept,) = await store.list(owner="me")
    assert await fetch_bytes(store, kept.handle, owner="me") == document
    assert "doc://report.pdf" in head
    assert f'text of pages 1 to 2; open it with gateway_view, handle "{kept.handle}"' in head
    assert [note.text for note in shaped.notes if note.kind == "cut"] == ["1 of 3 pages are left out"]


async def test_a_scanned_document_becomes_its_pages_and_images_go_first(shaper: Shaper) -> None:
    host = profile(document={"show": "text"}, image={"types": ["image/png"], "max_edge": 300, "max_count": 3})
    picture = io.BytesIO()
    Image.new("RGB", (30, 20), "white").save(picture, "PNG")
    image = {"type": "image", "data": encoded(picture.getvalue()), "mimeType": "image/png"}
    content = [blob(scan_pdf("red", "green", "blue"), "scan://a.pdf"), image]
    shaped = await shaper.shape({"content": content}, host, owner="me")
    red, green, white = pictures(shaped)
    assert max(red.size) <= 300
    assert colour_at(red, 50, 50)[0] > 200 > 60 > colour_at(green, 50, 50)[0]
    assert white.size == (30, 20)
    assert [words.split(",")[0] for words in texts(shaped)] == [
        "[document 1: scan://a.pdf",
        "[image 1: page 1 of 3 of scan://a.pdf",
        "[image 2: page 2 of 3 of scan://a.pdf",
    ]


async def test_pages_share_what_one_result_may_hold(shaper: Shaper) -> None:
    noise = Image.effect_noise((900, 1_200), 90).convert("RGB")
    buffer = io.BytesIO()
    noise.save(buffer, "PDF", save_all=True, append_images=[noise.rotate(90), noise.rotate(180)])
    host = profile(document={"show": "pages"}, limits={"result_chars": 300_000})
    shaped = await shaper.shape({"content": [blob(buffer.getvalue(), "a:b.pdf")]}, host, owner="me")
    assert len(pictures(shaped)) == 3
    assert sum(len(block.get("data", "")) for block in shaped.result["content"]) <= 300_000
    assert sorted(effect.key for effect in shaped.effects if effect.key.startswith("refit")) == [
        "refit:0p1",
        "refit:0p2",
        "refit:0p3",
    ]


async def test_a_broken_document_is_a_line_with_its_reason(shaper: Shaper) -> None:
    host = profile(document={"show": "text"})
    shaped = await shaper.shape({"content": [blob(b"%PDF-1.7 nothing", "a:b.pdf")]}, host, owner="me")
    (line,) = texts(shaped)
    assert line.startswith("[document 1: a:b.pdf, application/pdf, 16 bytes (")
    assert [note.kind for note in shaped.notes] == ["mended", "failed", "named"]


async def test_a_document_too_large_to_be_native_is_text(shaper: Shaper) -> None:
    small, large = text_pdf("small"), text_pdf("large " * 200)
    host = profile(document={"show": "native", "max_bytes": 1_000})
    shaped = await shaper.shape({"content": [blob(small, "a:s.pdf"), blob(large, "a:l.pdf")]}, host, owner="me")
    assert shaped.result["content"][0] == blob(small, "a:s.pdf")
    assert texts(shaped)[1].startswith("[page 1 of 1]\nlarge large")


async def test_sound_that_is_too_long_is_cut_and_said(shaper: Shaper, store: MemoryStore) -> None:
    host = profile(audio={"types": ["audio/wav"], "max_seconds": 2})
    block = {"type": "audio", "data": encoded(sound(5)), "mimeType": "audio/wav"}
    shaped = await shaper.shape({"content": [block]}, host, owner="me")
    (kept,) = await store.list(owner="me")
    assert texts(shaped) == [f"[audio 1: the first 2.0 s of 5.0 s; whole under handle {kept.handle}]"]
    (audio,) = (block for block in shaped.result["content"] if block["type"] == "audio")
    with wave.open(io.BytesIO(base64.b64decode(audio["data"]))) as cut:
        assert cut.getnframes() == pytest.approx(2 * cut.getframerate(), rel=0.01)


async def test_short_sound_stays_the_very_bytes(shaper: Shaper) -> None:
    host = profile(audio={"types": ["audio/wav"], "max_seconds": 20})
    block = {"type": "audio", "data": encoded(sound(1)), "mimeType": "audio/wav"}
    assert (await shaper.shape({"content": [block]}, host, owner="me")).result["content"] == [block]


async def test_sound_that_no_host_shows_is_named_with_its_length(shaper: Shaper) -> None:
    host = profile(audio={"show": "line"}, blob={"show": "line"})
    shaped = await shaper.shape({"content": [blob(sound(3), "rec://memo.wav")]}, host, owner="me")
    assert texts(shaped)[0].startswith("[audio 1: rec://memo.wav, audio/wav, 3.0 s, ")


async def test_an_animation_becomes_its_first_frame_with_the_whole_kept(shaper: Shaper) -> None:
    frames = [Image.new("RGB", (40, 30), colour) for colour in ("red", "green", "blue")]
    buffer = io.BytesIO()
    frames[0].save(buffer, "GIF", save_all=True, append_images=frames[1:])
    block = {"type": "image", "data": encoded(buffer.getvalue()), "mimeType": "image/gif"}
    still = {"types": ["image/gif", "image/png"], "animation": "first-frame", "caption": "moved"}
    shaped = await shaper.shape({"content": [block]}, profile(image=still), owner="me")
    (picture,) = pictures(shaped)
    assert colour_at(picture, 5, 5)[0] > 200
    assert "first of 3 frames; whole under handle img_" in texts(shaped)[0]
    moving = profile(image={**still, "animation": "kept"})
    assert (await shaper.shape({"content": [block]}, moving, owner="me")).result["content"] == [block]


# -- links -----------------------------------------------------------------------------------------


def link(uri: str, media_type: str | None = None, **more: Any) -> dict[str, Any]:
    return {"type": "resource_link", "uri": uri, "name": uri, "mimeType": media_type, **more}


def linked(document: bytes) -> Reach:
    async def read(uri: str) -> Mapping[str, Any]:
        if uri.endswith("gone.pdf"):
            raise UpstreamRefused("docs", -32002, "not found")
        return {"contents": [{"uri": uri, "blob": encoded(document)}]}

    return Reach(read)


async def test_a_link_to_a_document_is_read_and_shown_in_its_place(shaper: Shaper) -> None:
    host = profile(link={"show": "inline"}, document={"show": "text"})
    content = [link("doc://a.pdf"), link("doc://gone.pdf"), link("https://example.com/", "text/html")]
    reach = linked(text_pdf("Linked words."))
    shaped = await shaper.shape({"content": content}, host, owner="me", reach=reach)
    head, words, gone, page = texts(shaped)
    assert head.startswith("[document 1: doc://a.pdf, application/pdf")
    assert words == "[page 1 of 1]\nLinked words."
    assert gone.startswith("[link <doc://gone.pdf>")
    assert "https://example.com/" in page
    assert [note.kind for note in shaped.notes if note.block == 1] == ["failed", "named"]


@pytest.mark.parametrize(
    ("rules", "more"),
    [({"max_count": 1}, {}), ({"max_bytes": 10}, {}), ({"max_bytes": 1_000}, {"size": 1_001})],
)
async def test_links_are_read_within_limits(shaper: Shaper, rules: dict[str, int], more: dict[str, Any]) -> None:
    host = profile(link={"show": "inline", **rules}, document={"show": "text"})
    content = [link("doc://0.pdf"), link("doc://1.pdf", **more)]
    shaped = await shaper.shape({"content": content}, host, owner="me", reach=linked(text_pdf("Linked words.")))
    assert texts(shaped)[-1].startswith("[link ")


async def test_nobody_reads_links_where_nobody_is_there_to_ask(shaper: Shaper) -> None:
    shaped = await shaper.shape({"content": [link("doc://a.pdf")]}, profile(link={"show": "inline"}), owner="me")
    assert texts(shaped)[0].startswith("[link ")


# -- files and descriptions ------------------------------------------------------------------------


async def test_what_a_host_can_only_open_is_written_to_a_file(
    store: MemoryStore, media: MediaWorkers, tmp_path: Path
) -> None:
    document = text_pdf("words")
    async with HostFiles(FilesSettings(dir=tmp_path / "shown")) as files:
        shaper = Shaper(store, media, files=files)
        host = profile(document={"show": "file"})
        shaped = await shaper.shape({"content": [blob(document, "doc://a/My report.pdf")]}, host, owner="me")
        (path,) = (tmp_path / "shown").iterdir()
        assert path.read_bytes() == document
        assert f"; saved as {path};" in texts(shaped)[0]
    assert not path.exists()


async def test_without_a_folder_there_is_a_line_with_the_handle(shaper: Shaper, store: MemoryStore) -> None:
    shaped = await shaper.shape({"content": [blob(b"PK\3\4", "a:b.zip")]}, profile(blob={"show": "file"}), owner="me")
    (kept,) = await store.list(owner="me")
    assert texts(shaped) == [f"[document 1: a:b.zip, application/zip, 4 bytes; handle {kept.handle}]"]
    assert "failed" in [note.kind for note in shaped.notes]


class Eyes:
    kinds = ("image",)

    async def describe(self, content: bytes, media_type: str, tools: CallersTools | None = None) -> Described:
        if b"GIF" in content:
            raise MediaError("too dark")
        return Described("A red square.\nNothing else.", "eyes-1")


async def test_an_image_is_described_where_the_host_shows_none(store: MemoryStore, media: MediaWorkers) -> None:
    shaper = Shaper(store, media, describer=Eyes())
    images = []
    for kind in ("PNG", "GIF"):
        buffer = io.BytesIO()
        Image.new("RGB", (30, 20), "red").save(buffer, kind)
        images.append({"type": "image", "data": encoded(buffer.getvalue()), "mimeType": f"image/{kind.lower()}"})
    shaped = await shaper.shape({"content": images}, profile(image={"show": "line"}), owner="me")
    said, line = texts(shaped)
    assert said.startswith("[image 1, described by eyes-1 (image/png, 30x20, ")
    assert said.endswith("): A red square.\nNothing else.]")
    assert "this host does not show images" in line
    assert [note.kind for note in shaped.notes] == ["named", "failed", "named"]
    assert "eyes-1" not in str((await shaper.shape({"content": images}, profile(), owner="me")).result)
