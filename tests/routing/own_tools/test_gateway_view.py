import base64
import re
from collections.abc import AsyncGenerator, Callable
from io import BytesIO
from typing import Any

import anyio
import pytest
from PIL import Image

from gateway.config.content_settings import MediaSettings
from gateway.config.store_settings import StoreSettings
from gateway.content.media import MediaWorkers
from gateway.content.shaping import Shaper
from gateway.content.store import MemoryStore
from gateway.core.profiles.profile import ImageRules, LimitRules, Profile
from gateway.routing.own_tools import OwnToolsServer
from tests.content.media.pdf_files import Page, pdf

pytestmark = pytest.mark.anyio

HOST = Profile(
    name="host",
    image=ImageRules(types=("image/png", "image/jpeg"), max_edge=500),
    limits=LimitRules(result_chars=400_000),
)
BLIND = Profile(name="blind", image=ImageRules(show="line"))


@pytest.fixture
async def media() -> AsyncGenerator[MediaWorkers]:
    async with MediaWorkers(MediaSettings(workers=1)) as workers:
        yield workers


@pytest.fixture
def view(store: MemoryStore, media: MediaWorkers) -> Callable[..., Any]:
    own_tools = OwnToolsServer(store, media)

    async def call(profile: Profile = HOST, owner: str = "ann", **arguments: Any) -> dict[str, Any]:
        params = {"name": "gateway_view", "arguments": arguments}
        with anyio.fail_after(60):
            return await own_tools.request("tools/call", params, owner=owner, profile=profile)

    return call


def decoded(result: dict[str, Any]) -> Image.Image:
    block = result["content"][0]
    assert block["type"] == "image"
    return Image.open(BytesIO(base64.b64decode(block["data"])))


def caption(result: dict[str, Any]) -> str:
    return result["content"][-1]["text"]


async def test_an_image_is_shown_whole_at_the_largest_size_that_the_host_takes(
    view: Any, store: MemoryStore, picture: Any
):
    stored = await store.put(picture(1000, 600), owner="ann", media_type="image/png")
    result = await view(handle=stored.handle)
    assert decoded(result).size == (500, 300)
    assert caption(result) == (
        f"[image {stored.handle}: 1000x600, shown at 500x300, multiply coordinates by 2.00 for the original]"
    )
    assert "isError" not in result


async def test_an_image_that_fits_is_shown_as_the_very_bytes_that_were_kept(
    view: Any, store: MemoryStore, picture: Any
):
    content = picture(40, 30)
    stored = await store.put(content, owner="ann", media_type="image/png")
    result = await view(handle=f'"content://{stored.handle}"')
    assert base64.b64decode(result["content"][0]["data"]) == content
    assert caption(result) == f"[image {stored.handle}: 40x30, shown at its own size]"


async def test_size_is_the_longer_edge_and_never_more_than_the_host_takes(view: Any, store: MemoryStore, picture: Any):
    stored = await store.put(picture(1000, 600), owner="ann", media_type="image/png")
    assert decoded(await view(handle=stored.handle, size="100")).size == (100, 60)
    assert decoded(await view(handle=stored.handle, size=5_000.0)).size == (500, 300)


async def test_a_part_is_shown_at_full_detail_and_its_coordinates_map_back(view: Any, store: MemoryStore, picture: Any):
    stored = await store.put(picture(1000, 600), owner="ann", media_type="image/png")
    result = await view(handle=stored.handle, crop={"left": 700, "top": 200, "width": 200, "height": 100})
    shown = decoded(result).convert("RGB")
    assert shown.size == (200, 100)
    assert shown.getpixel((10, 20)) == (710 % 256, 220, 710 // 256)
    assert caption(result) == (
        f"[image {stored.handle}: the part 200x100 at left 700, top 200 of the original 1000x600, shown at 200x100; "
        "for the original, add 700 to x and 200 to y]"
    )


async def test_the_numbers_in_the_caption_of_a_scaled_part_lead_back_to_the_original(
    view: Any, store: MemoryStore, picture: Any
):
    stored = await store.put(picture(1000, 600), owner="ann", media_type="image/png")
    result = await view(handle=stored.handle, size=160, crop={"left": 200, "top": 100, "width": 640, "height": 400})
    assert decoded(result).size == (160, 100)
    factor, x, y = re.search(r"by ([\d.]+), then add (\d+) to x and (\d+) to y", caption(result)).groups()  # type: ignore[union-attr]
    assert (float(factor), int(x), int(y)) == (4, 200, 100)


async def test_a_part_that_reaches_over_the_edge_is_what_there_is_of_it(view: Any, store: MemoryStore, picture: Any):
    stored = await store.put(picture(100, 60), owner="ann", media_type="image/png")
    result = await view(handle=stored.handle, crop={"left": 90, "top": 50, "width": 400, "height": 400})
    assert decoded(result).size == (10, 10)
    assert "the part 10x10 at left 90, top 50" in caption(result)


async def test_a_part_outside_of_the_image_is_an_error_that_names_the_images_size(
    view: Any, store: MemoryStore, picture: Any
):
    stored = await store.put(picture(100, 60), owner="ann", media_type="image/png")
    result = await view(handle=stored.handle, crop={"left": 900, "top": 50, "width": 10, "height": 10})
    assert result["isError"] is True
    assert "100 x 60" in caption(result)


@pytest.mark.parametrize(
    "arguments",
    [
        {"size": 0},
        {"size": "big"},
        {"size": True},
        {"size": 1.5},
        {"size": "9" * 5_000},
        {"crop": [0, 0, 1, 1]},
        {"crop": {"left": 0, "top": 0, "width": 5}},
        {"crop": {"left": -1, "top": 0, "width": 5, "height": 5}},
        {"crop": {"left": 0, "top": 0, "width": 0, "height": 5}},
    ],
)
async def test_arguments_that_cannot_be_meant_are_errors_that_say_what_to_write(
    view: Any, store: MemoryStore, picture: Any, arguments: dict[str, Any]
):
    stored = await store.put(picture(10, 10), owner="ann", media_type="image/png")
    result = await view(handle=stored.handle, **arguments)
    assert result["isError"] is True
    assert re.search(r"Give (a whole number|all four)", caption(result))
    assert len(caption(result)) < 300


async def test_an_unknown_handle_and_somebody_elses_are_the_same_error(view: Any, store: MemoryStore, picture: Any):
    stored = await store.put(picture(10, 10), owner="ann", media_type="image/png")
    foreign = await view(handle=stored.handle, owner="bob")
    unknown = await view(handle="img_000000000000")
    missing = await view()
    assert foreign["isError"] is unknown["isError"] is missing["isError"] is True
    assert caption(foreign).replace(stored.handle, "X") == caption(unknown).replace("img_000000000000", "X")
    assert "Copy the handle exactly" in caption(unknown)
    assert "handle is missing" in caption(missing)


async def test_an_expired_handle_says_how_to_get_the_content_again(media: MediaWorkers, picture: Any):
    now = 0.0
    store = MemoryStore(StoreSettings(expires=60), clock=lambda: now)
    stored = await store.put(picture(10, 10), owner="ann", media_type="image/png")
    now = 61.0
    own_tools = OwnToolsServer(store, media)
    call = {"name": "gateway_view", "arguments": {"handle": stored.handle}}
    result = await own_tools.request("tools/call", call, owner="ann")
    assert result["isError"] is True
    assert "Call the tool that made it again" in caption(result)


async def test_what_is_no_image_is_named_and_the_tool_that_reads_it(view: Any, store: MemoryStore):
    stored = await store.put(b"PK\x03\x04 .....", owner="ann", media_type="application/zip")
    result = await view(handle=stored.handle)
    assert result["isError"] is True
    assert "application/zip, 10 bytes" in caption(result)
    assert f"mcp-gateway content get {stored.handle}" in caption(result)
    assert "gateway_read" not in caption(result)  # it could not show this either
    text = await store.put(b"words", owner="ann", media_type="text/plain")
    assert "Read it with gateway_read" in caption(await view(handle=text.handle))


async def test_a_broken_image_is_an_error_in_words(view: Any, store: MemoryStore, picture: Any):
    stored = await store.put(picture(400, 300)[:200], owner="ann", media_type="image/png")
    result = await view(handle=stored.handle, size=10)
    assert result["isError"] is True
    assert stored.handle in caption(result)


async def test_a_vector_graphic_is_shown_as_pixels_to_a_host_that_takes_no_vectors(view: Any, store: MemoryStore):
    rect = b'<rect width="80" height="40" fill="red"/>'
    svg = b'<svg xmlns="http://www.w3.org/2000/svg" width="80" height="40">' + rect + b"</svg>"
    stored = await store.put(svg, owner="ann", media_type="image/svg+xml")
    result = await view(handle=stored.handle)
    assert result["content"][0]["mimeType"] == "image/png"
    assert decoded(result).convert("RGB").getpixel((5, 5)) == (255, 0, 0)


async def test_a_host_without_images_gets_a_line_that_explains_and_no_new_handle(
    view: Any, store: MemoryStore, picture: Any
):
    stored = await store.put(picture(1000, 600), owner="ann", media_type="image/png")
    result = await view(BLIND, handle=stored.handle, size=10)
    assert [block["type"] for block in result["content"]] == ["text"]
    assert "does not show images to its model" in caption(result)
    assert [each.handle for each in await store.list(owner="ann")] == [stored.handle]


async def test_shaping_has_nothing_left_to_change_so_that_the_caption_stays_true(
    view: Any, store: MemoryStore, media: MediaWorkers, picture: Any
):
    noise = Image.effect_noise((900, 900), 100)
    buffer = BytesIO()
    noise.save(buffer, "PNG")
    stored = await store.put(buffer.getvalue(), owner="ann", media_type="image/png")
    result = await view(handle=stored.handle)
    shaped = await Shaper(store, media).shape(result, HOST, owner="ann")
    assert shaped.effects == ()
    assert shaped.result["content"][0]["data"] == result["content"][0]["data"]
    assert caption(shaped.result) == caption(result)


async def test_a_host_that_takes_any_image_gets_the_kept_bytes_whatever_they_are(
    view: Any, store: MemoryStore, picture: Any
):
    content = picture(30, 20, "TIFF")
    stored = await store.put(content, owner="ann", media_type="image/tiff")
    result = await view(Profile(name="passthrough"), handle=stored.handle)
    assert base64.b64decode(result["content"][0]["data"]) == content
    assert result["content"][0]["mimeType"] == "image/tiff"
    assert caption(result) == f"[image {stored.handle}, shown whole]"


# -- pages of documents ----------------------------------------------------------------------------


@pytest.fixture
async def document(store: MemoryStore) -> str:
    """The handle of a document of two pages, the second of which is black but for words."""
    black = b"0 0 300 400 re f 1 g BT /F 20 Tf 20 200 Td (second) Tj ET"
    pages = [Page(["first"], 300, 400), Page(width=300, height=400, content=black)]
    return (await store.put(pdf(pages), owner="ann", media_type="application/pdf")).handle


async def test_any_page_of_a_document_is_shown(view: Any, document: str):
    first = await view(handle=document)
    assert max(decoded(first).size) == 500
    assert caption(first) == f"[document {document}, page 1 of 2, shown at 375x500; the next is page 2]"
    second = await view(handle=document, page=2, size=200)
    assert decoded(second).convert("L").tobytes()[5 * decoded(second).width + 5] < 50
    assert caption(second) == f"[document {document}, page 2 of 2, shown at 150x200; this is the last]"


async def test_a_part_of_a_page_is_shown_larger(view: Any, document: str):
    crop = {"left": 0, "top": 250, "width": 150, "height": 100}
    result = await view(handle=document, page=2, crop=crop)
    assert decoded(result).width > 150
    assert "the part 150x100 at left 0, top 250 of the page at 375x500" in caption(result)


async def test_a_page_is_text_where_the_host_shows_no_images(view: Any, document: str):
    result = await view(BLIND, handle=document, page=2)
    assert [block["type"] for block in result["content"]] == ["text"]
    assert caption(result) == f"[document {document}, page 2 of 2, as text; this is the last]\nsecond"


async def test_a_page_after_the_end_is_an_error_that_says_how_many_there_are(view: Any, document: str):
    result = await view(handle=document, page=3)
    assert result["isError"] is True
    assert "The document has 2 pages" in caption(result)


async def test_a_document_that_cannot_be_read_is_an_error_naming_the_handle(view: Any, store: MemoryStore):
    stored = await store.put(b"%PDF-1.7 nothing", owner="ann", media_type="application/pdf")
    result = await view(handle=stored.handle)
    assert result["isError"] is True
    assert caption(result).startswith(f"[{stored.handle} cannot be shown: ")


async def test_shaping_leaves_a_page_as_it_is(view: Any, store: MemoryStore, media: MediaWorkers, document: str):
    result = await view(handle=document)
    assert (await Shaper(store, media).shape(result, HOST, owner="ann")).result == result
