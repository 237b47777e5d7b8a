"""Sentences that the gateway's own tools address to a model."""

from gateway.core.fact_words import counted, join_facts, pixel_words, plain, size_words
from gateway.core.model.effects import Crop
from gateway.core.model.media_types import PixelSize
from gateway.core.own_names import VIEW_TOOL
from gateway.core.wording import scaled


def shown_whole(handle: str, original: PixelSize | None, shown: PixelSize | None) -> str:
    """The caption of an image shown whole. Sizes are None if the image's header does not give them."""
    if original is None or shown is None:
        return f"[image {handle}, shown whole]"
    size = "shown at its own size" if shown == original else scaled(original, shown)
    return f"[image {handle}: {pixel_words(original)}, {size}]"


def shown_part(handle: str, original: PixelSize, part: Crop, shown: PixelSize) -> str:
    """The caption of a part of an image: where it is, and how its coordinates map back to the original."""
    factor = part.width / shown.width
    scale = f"multiply coordinates by {factor:.4g}, then " if shown != (part.width, part.height) else ""
    size = pixel_words(PixelSize(part.width, part.height))
    return (
        f"[image {handle}: the part {size} at left {part.left}, top {part.top} "
        f"of the original {pixel_words(original)}, shown at {pixel_words(shown)}; "
        f"for the original, {scale}add {part.left} to x and {part.top} to y]"
    )


def page_part(handle: str, page: int, part: Crop, whole: PixelSize, shown: PixelSize) -> str:
    """The caption of a part of a page."""
    size = pixel_words(PixelSize(part.width, part.height))
    return (
        f"[document {handle}, page {page:,}: the part {size} at left {part.left}, top {part.top} "
        f"of the page at {pixel_words(whole)}, shown at {pixel_words(shown)}]"
    )


def shown_page(handle: str, page: int, pages: int, shown: PixelSize) -> str:
    """The caption of a page of a document."""
    more = f"; the next is page {page + 1:,}" if page < pages else "; this is the last"
    return f"[document {handle}, page {page:,} of {pages:,}, shown at {pixel_words(shown)}{more}]"


def page_as_text(handle: str, page: int, pages: int, text: str) -> str:
    """The text of a page, for a host that shows its model no images."""
    more = f"; the next is page {page + 1:,}" if page < pages else "; this is the last"
    if not text.strip():
        return f"[document {handle}, page {page:,} of {pages:,}: no text on it, and this host shows no images{more}]"
    return f"[document {handle}, page {page:,} of {pages:,}, as text{more}]\n{text.strip()}"


def places(words: str, found: int, listed: int, on: int | None) -> str:
    """The first line of a search: how often the words occur, and the offset (`on`) at which to continue."""
    if not found:
        return f"[{plain(words, 100)!r} not found]"
    more = f"; continue with offset {on}" if on is not None else ""
    shown = f", the first {listed:,} are shown" if listed < found else ""
    return f"[{plain(words, 100)!r} is found {counted(found, 'time')}{shown}{more}]"


def place(offset: int, context: str) -> str:
    """One place where the words occur."""
    return f"[offset {offset}] … {' '.join(context.split())} …"


def images_not_shown(handle: str, media_type: str, original: PixelSize | None, byte_size: int) -> str:
    """Replaces an image for a host that shows its model none."""
    known = join_facts(media_type, pixel_words(original) if original else None, size_words(byte_size))
    return f"[image {handle}: {known}; this host does not show images to its model; {elsewhere(handle)}]"


def shown_text(offset: int, shown: int, whole: int) -> str:
    """The last line of an answer: the range shown, the total length, and the offset at which to read on."""
    end = offset + shown
    span = f"characters {offset:,} to {end:,} of {whole:,}"
    return f"[{span}; read on with offset {end}]" if end < whole else f"[{span}; this is the end]"


def kept(handle: str, known: str, tool: str | None) -> str:
    """The answer of `gateway_put`."""
    opened = f", or open it with {tool}" if tool else ""
    return f'[kept: {known}; handle "{handle}": give it to tools that take content{opened}]'


def no_text(kind: str, named: str, known: str, handle: str | None, viewable: bool) -> str:
    """Replaces content that is not text: says what it is, and what opens it."""
    opened = f'; see it with {VIEW_TOOL}, handle "{handle}"' if handle and viewable else ""
    kept = f"; {elsewhere(handle)}" if handle and not viewable else ""
    return f"[{plain(named, 2_000)} is not text but {kind}: {known}{opened or kept}]"


def elsewhere(handle: str) -> str:
    """Say what can be done with content that no tool of the gateway can show to this host's model."""
    return (
        f'pass the handle "{handle}" to a tool that takes content; '
        f"the user can save it with `mcp-gateway content get {handle}`"
    )
