"""The whole loop on real bytes: real workers fit real images, a real store keeps what is not shown."""

import base64
import io
import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import anyio
import pytest
from PIL import Image

from gateway.config.builtin_profiles import load_builtin
from gateway.config.content_settings import MediaSettings
from gateway.config.store_settings import StoreSettings
from gateway.content.media import MediaWorkers
from gateway.content.shaping import Shaper
from gateway.content.store import MemoryStore, fetch_bytes, make_store
from gateway.content.store.backend import Backend
from gateway.core.profiles.host_profiles import resolve_profiles
from gateway.errors import StoreUnavailable

pytestmark = pytest.mark.anyio
PROFILES = resolve_profiles(load_builtin())


def encoded(picture: Image.Image, image_format: str = "PNG", **options: Any) -> str:
    buffer = io.BytesIO()
    picture.save(buffer, image_format, **options)
    return base64.b64encode(buffer.getvalue()).decode()


def decoded(block: dict[str, Any]) -> Image.Image:
    return Image.open(io.BytesIO(base64.b64decode(block["data"], validate=True)))


def image(data: str, media_type: str = "image/png") -> dict[str, Any]:
    return {"type": "image", "data": data, "mimeType": media_type}


def images(result: dict[str, Any]) -> list[Image.Image]:
    return [decoded(block) for block in result["content"] if block["type"] == "image"]


@pytest.fixture
def store() -> MemoryStore:
    return MemoryStore(StoreSettings())


@pytest.fixture
async def shaper(store: MemoryStore) -> AsyncIterator[Shaper]:
    async with MediaWorkers(MediaSettings()) as media:
        yield Shaper(store, media, max_blocks=50)


NOISE = Image.effect_noise((900, 700), 90).convert("RGB")


async def test_a_twelve_megapixel_image_is_fitted_and_its_original_kept(shaper: Shaper, store: MemoryStore) -> None:
    original = encoded(Image.linear_gradient("L").resize((4000, 3000)).convert("RGB"))
    shaped = await shaper.shape({"content": [image(original)]}, PROFILES["claude-code"], owner="me")
    (picture,) = images(shaped.result)
    assert max(picture.size) == 2000
    (kept,) = await store.list(owner="me")
    assert await fetch_bytes(store, kept.handle, owner="me") == base64.b64decode(original)
    assert kept.handle in shaped.result["content"][0]["text"]


async def test_several_large_images_share_the_room_of_one_result(shaper: Shaper) -> None:
    content = [image(encoded(NOISE.rotate(angle))) for angle in (0, 90, 180)]
    shaped = await shaper.shape({"content": content}, PROFILES["claude-desktop"], owner="me")
    assert len(json.dumps(shaped.result)) <= 1_000_000
    assert len(images(shaped.result)) == 3
    assert all(effect.key.startswith(("fit", "refit", "keep")) for effect in shaped.effects)


async def test_an_svg_is_drawn_for_a_host_that_takes_none(shaper: Shaper) -> None:
    svg = b'<svg xmlns="http://www.w3.org/2000/svg" width="60" height="40"><path d="M0 0h60v40H0z" fill="red"/></svg>'
    block = image(base64.b64encode(svg).decode(), "image/svg+xml")
    shaped = await shaper.shape({"content": [block]}, PROFILES["codex"], owner="me")
    (picture,) = images(shaped.result)
    assert picture.convert("RGB").getpixel((picture.width // 2, picture.height // 2)) == (255, 0, 0)


async def test_a_truncated_image_becomes_a_line_and_the_rest_is_shown(shaper: Shaper) -> None:
    whole = encoded(Image.new("RGB", (3000, 50), "blue"))
    cut = whole[: len(whole) // 2 // 4 * 4]
    shaped = await shaper.shape({"content": [image(cut), image(encoded(NOISE))]}, PROFILES["codex"], owner="me")
    assert [block["type"] for block in shaped.result["content"]] == ["text", "image"]
    assert any(note.kind == "failed" for note in shaped.notes)


async def test_a_full_store_costs_only_the_handle() -> None:
    class Full(MemoryStore):
        async def put(self, *_: Any, **__: Any) -> Any:
            raise StoreUnavailable("the store is full")

    async with MediaWorkers(MediaSettings()) as media:
        shaper = Shaper(Full(StoreSettings()), media)
        shaped = await shaper.shape({"content": [image(encoded(NOISE))]}, PROFILES["cline"], owner="me")
    assert shaped.result["content"][0]["text"].startswith("[image 1: image/png, 900x700")
    assert "handle" not in shaped.result["content"][0]["text"]


async def test_a_store_that_fails_at_any_step_costs_only_the_handle(tmp_path: Path, monkeypatch: Any) -> None:
    """Down, full or forbidden in the middle of a result: the result arrives, and a note says why there is no handle."""
    step, count = 0, 0

    def counted(method: Any) -> Any:
        async def call(*args: Any, **kwargs: Any) -> Any:
            nonlocal count
            count += 1
            if count == step:
                raise StoreUnavailable("the store is down", remedy="wait")
            return await method(*args, **kwargs)

        return call

    for name in ("get", "size", "put", "upload", "delete"):
        monkeypatch.setattr(Backend, name, counted(getattr(Backend, name)))
    lines: list[str] = []
    async with MediaWorkers(MediaSettings()) as media:
        for step in range(1, 20):
            count = 0
            store = make_store(StoreSettings(url=(tmp_path / str(step)).as_uri()))
            shaped = await Shaper(store, media).shape(
                {"content": [{"type": "text", "text": "before"}, image(encoded(NOISE))]}, PROFILES["cline"], owner="me"
            )
            text = "".join(block["text"] for block in shaped.result["content"])
            assert text.startswith("before")
            assert "image/png, 900x700" in text
            lines.append(text)
            if count < step:
                break
            assert any("the store is down" in note.text for note in shaped.notes)
    assert len(lines) > 2
    assert ["handle" in line for line in lines] == [*[False] * (len(lines) - 1), True]


async def test_too_many_blocks_are_cut_and_said(shaper: Shaper) -> None:
    content = [{"type": "text", "text": str(number)} for number in range(80)]
    shaped = await shaper.shape({"content": content}, PROFILES["codex"], owner="me")
    assert len(shaped.result["content"]) == 51
    assert shaped.result["content"][-1]["text"] == "[30 more blocks left out: a result may have 50]"


async def test_equal_results_give_equal_bytes(shaper: Shaper) -> None:
    result = {"content": [image(encoded(NOISE.resize((2500, 100)))), {"type": "text", "text": "x" * 60_000}]}
    first = await shaper.shape(result, PROFILES["default"], owner="me")
    assert (await shaper.shape(result, PROFILES["default"], owner="me")).result == first.result


async def test_a_large_result_does_not_hold_up_others(shaper: Shaper) -> None:
    """Ten megabytes of text that looks like JSON, while another task counts turns of the event loop."""
    result = {"content": [{"type": "text", "text": json.dumps({"rows": ["word " * 20] * 100_000})}]}
    turns = 0

    async def count() -> None:
        nonlocal turns
        while True:
            await anyio.lowlevel.checkpoint()
            turns += 1

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(count)
        await shaper.shape(result, PROFILES["default"], owner="me")
        tasks.cancel_scope.cancel()
    assert turns > 100
