"""Check the store and the media workers by using them: store and read content, fit a picture, draw a vector image."""

import struct
import zlib

import anyio

from gateway.cli.diagnosis.check_context import CheckContext
from gateway.cli.diagnosis.findings import CheckResult
from gateway.content.media import MediaWorkers
from gateway.content.store import fetch_bytes, make_store
from gateway.core.fact_words import size_words
from gateway.core.model.effects import Fitted, ImageTarget
from gateway.errors import ContentError, MediaError, StoreUnavailable
from gateway.hosts.simulators.pictures import look

STORE, MEDIA = "store", "media"
_OWNER = "doctor"
_ROOMY = 8 * 1024 * 1024
"""The size of one large screenshot, in bytes."""
_TARGET = ImageTarget(types=("image/png",), max_edge=120)
_SHAPE = (
    b'<svg xmlns="http://www.w3.org/2000/svg" width="60" height="40"><rect width="30" height="40" fill="red"/></svg>'
)
_WORDS = (
    b'<svg xmlns="http://www.w3.org/2000/svg" width="120" height="40">'
    b'<text x="5" y="30" font-size="28" font-family="sans-serif">Words</text></svg>'
)


async def try_store(context: CheckContext) -> list[CheckResult]:
    """Check that content can be stored and read back."""
    settings = context.settings.store
    store, content = make_store(settings), b"examination " * 8
    try:
        stored = await store.put(content, owner=_OWNER, media_type="text/plain")
        same = await fetch_bytes(store, stored.handle, owner=_OWNER) == content
        await store.delete(stored.handle, owner=_OWNER)
    except StoreUnavailable as error:
        return [CheckResult(STORE, "problem", error.message, error.remedy or "see docs/stores.md")]
    except ContentError as error:
        return [CheckResult(STORE, "problem", error.message, f"store.max_bytes = 268435456 ({error.remedy})")]
    if not same:
        return [CheckResult(STORE, "problem", "content comes back changed", "report it: this is a bug in the gateway")]
    bounds = f"up to {size_words(settings.max_bytes)}, for {settings.expires:g} s each"
    words = f"content is stored and read back at {store.where}; {bounds}"
    if settings.max_bytes < _ROOMY:
        text = f"it holds {size_words(settings.max_bytes)}, less than one large picture may have"
        return [CheckResult(STORE, "ok", words), CheckResult(STORE, "warning", text, "store.max_bytes = 268435456")]
    return [CheckResult(STORE, "ok", words)]


async def check_media(context: CheckContext) -> list[CheckResult]:
    """Check that a picture can be scaled, and that a vector image is drawn with its text."""
    start = anyio.current_time()
    try:
        async with MediaWorkers(context.settings.media) as media:
            await media.fit_image(gradient_png(200, 100), "image/png", _TARGET)
            seconds = anyio.current_time() - start
            shape = await media.fit_image(_SHAPE, "image/svg+xml", _TARGET)
            words = await media.fit_image(_WORDS, "image/svg+xml", _TARGET)
    except (MediaError, OSError) as error:
        own = error.remedy if isinstance(error, MediaError) else None
        limits = "take [media] memory_bytes, timeout and max_pixels out of the file: the defaults are enough"
        remedy = f"{limits}; else reinstall the gateway" + (f" ({own})" if own else "")
        return [CheckResult(MEDIA, "problem", f"a small picture cannot be handled: {error.args[0]}", remedy)]
    findings = [
        CheckResult(MEDIA, "ok", f"pictures are fitted and vector images drawn (the first after {seconds:.1f} s)")
    ]
    if is_blank(shape):
        findings = [CheckResult(MEDIA, "problem", "vector images come out blank", "reinstall the gateway")]
    elif is_blank(words):
        text = "words in vector images are not drawn, since no font was found"
        findings.append(
            CheckResult(MEDIA, "warning", text, "install fonts; on Debian and Ubuntu: apt install fonts-dejavu-core")
        )
    return findings


def is_blank(fitted: Fitted) -> bool:
    """Whether a drawn image is blank."""
    seen = look(fitted.data)
    return seen is None or seen.is_blank


def gradient_png(width: int, height: int) -> bytes:
    """Return a PNG with a gradient, written without Pillow because Pillow is part of what is examined."""
    rows = b"".join(b"\0" + bytes(x * 255 // width for x in range(width)) for _ in range(height))
    chunks = (
        (b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 0, 0, 0, 0)),
        (b"IDAT", zlib.compress(rows)),
        (b"IEND", b""),
    )
    parts = (
        struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data)) for kind, data in chunks
    )
    return b"\x89PNG\r\n\x1a\n" + b"".join(parts)
