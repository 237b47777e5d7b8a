"""A real store with a fixed key, and pictures to keep in it."""

from collections.abc import Callable
from io import BytesIO

import pytest
from PIL import Image

from gateway.config.store_settings import StoreSettings
from gateway.content.store import MemoryStore


@pytest.fixture
def store() -> MemoryStore:
    return MemoryStore(StoreSettings(max_bytes=10_000_000, expires=60), key=b"k" * 32)


@pytest.fixture
def picture() -> Callable[..., bytes]:
    """An image file whose pixel at (x, y) is (x % 256, y % 256, x // 256), so that coordinates can be read back."""

    def make(width: int, height: int, kind: str = "PNG") -> bytes:
        image = Image.new("RGB", (width, height))
        image.putdata([(x % 256, y % 256, x // 256) for y in range(height) for x in range(width)])
        buffer = BytesIO()
        image.save(buffer, kind)
        return buffer.getvalue()

    return make
