"""Every sentence that the gateway itself puts before a model.

In one place so that they can be read together: short, plain, always in square brackets, so that a model can tell them
from what a tool said, and never with control characters in a name that an upstream chose.
"""

import unicodedata

from gateway.core.model.media_types import PixelSize

VIEW_TOOL = "gateway_view"
"""The gateway's own tool that shows a kept image: whole, at a size, or a part of it."""

READ_TOOL = "gateway_read"
"""The gateway's own tool that reads kept text, or a resource, piece by piece."""

ERROR_PREFIX = "ERROR: "
"""Before the text of a failed call where a host would not tell its model."""

NOTHING = "[The tool returned no content.]"
NO_TEXT_ERROR = "[The tool failed without saying why.]"

_LONGEST_NAME = 300


def plain(name: str, longest: int = _LONGEST_NAME) -> str:
    """A name or address from outside, safe in a line: no control or format characters, blanks folded, cut if long."""
    visible = "".join(" " if unicodedata.category(char)[0] in "CZ" else char for char in name[: 4 * longest])
    folded = " ".join(visible.split())
    return folded if len(folded) <= longest else folded[: longest - 1] + "…"


def size_words(count: int) -> str:
    """A number of bytes as people write it: `812 bytes`, `34 KB`, `1.2 MB`."""
    if count < 1_000:
        return f"{count} byte{'' if count == 1 else 's'}"
    for unit in ("KB", "MB"):
        count_in = count / (1_000 if unit == "KB" else 1_000_000)
        if count_in < 999.5:
            return f"{count_in:.1f} {unit}" if count_in < 9.95 else f"{count_in:.0f} {unit}"
    return f"{count / 1_000_000_000:.1f} GB"


def pixel_words(size: PixelSize) -> str:
    """`1200x800`."""
    return f"{size.width}x{size.height}"


def facts(*parts: str | None) -> str:
    """What is known of something, with commas between."""
    return ", ".join(part for part in parts if part)


def label(kind: str, number: int) -> str:
    """The name of the number-th image (audio, document ...) of a result, as markers and captions use it."""
    return f"{kind} {number}"


def marker(name: str, known: str = "") -> str:
    """Stands in the text where a block stood that was moved after it."""
    return f"[{name}: {known}]" if known else f"[{name}]"


def caption(name: str, known: str, changed: str | None, handle: str | None) -> str:
    """Stands before an image: which one it is, and what was done to it."""
    more = facts(known, changed)
    zoom = f'; for details call {VIEW_TOOL} with handle "{handle}"' if handle else ""
    return f"[{name}{': ' + more if more else ''}{zoom}]"


def whose(name: str, tool: str, call: str) -> str:
    """Stands before media that follows the tool messages of a turn: which one it is, and whose result it belongs to."""
    named = f", call {plain(call, 100)}" if call else ""
    return f"[{name}, from the result of {plain(tool, 100)}{named}]"


def scaled(original: PixelSize, shown: PixelSize) -> str:
    """How coordinates in a scaled image map back to the original."""
    factor = original.width / shown.width
    return f"shown at {pixel_words(shown)}, multiply coordinates by {factor:.2f} for the original"


def media_line(name: str, known: str, why: str | None, handle: str | None, tool: str | None) -> str:
    """Stands in the text for content that this host does not show."""
    opened = f'; open it with {tool}, handle "{handle}"' if handle and tool else f"; handle {handle}" if handle else ""
    return f"[{name}: {known}{' (' + why + ')' if why else ''}{opened}]"


def link_line(name: str, known: str, uri: str, description: str | None, readable: bool) -> str:
    """Stands for a link to a resource."""
    named = f"{plain(name)} " if name and name != uri else ""
    about = f": {plain(description)}" if description else ""
    how = f"; read it with {READ_TOOL}, uri" if readable else ""
    return f"[link {named}<{plain(uri, 2_000)}>{about}{' (' + known + ')' if known else ''}{how}]"


def embedded_text(uri: str, known: str, text: str) -> str:
    """An embedded text resource as text, its address first."""
    return f"[resource <{plain(uri, 2_000)}>{' (' + known + ')' if known else ''}]\n{text}"


def embedded_image(name: str, uri: str) -> str:
    """Where an embedded image came from."""
    return f"[{name}: resource <{plain(uri, 2_000)}>]"


def cut(left_out: int, whole: int, offset: int, handle: str | None, readable: bool) -> str:
    """Stands in a text where its middle was left out."""
    more = f'; read on with {READ_TOOL}, handle "{handle}", offset {offset}' if handle and readable else ""
    kept = f"; handle {handle}" if handle and not readable else ""
    return f"\n[… {left_out:,} of {whole:,} characters left out here{more}{kept} …]\n"


def rescued(media_type: str, byte_size: int) -> str:
    """Stands in text or in JSON where encoded bytes stood that are shown as a block of their own."""
    return f"[{media_type}, {size_words(byte_size)}: see the content of this result]"


def blocks_left_out(count: int, limit: int) -> str:
    """Stands at the end of a result with too many blocks."""
    return f"[{count:,} more blocks left out: a result may have {limit:,}]"


def failure_text(message: str, remedy: str | None) -> str:
    """An error of the gateway's own, told to a model as a tool's result."""
    return f"[{message}{'. ' + remedy if remedy else ''}]"


# -- told to a model in an agent loop ----------------------------------------------------------------------------------

CALLS_REFUSED = (
    "Tool call refused: the limit of turns with tool calls is reached. "
    "Give your final answer now, without calling further tools."
)
"""The result of every call once the turns of a toolset are spent."""


def malformed_arguments(written: str) -> str:
    """The result of a call whose arguments are no JSON object."""
    return failure_text(f"The arguments are not a JSON object, so nothing was called: {plain(written, 200)}", None)


def shown_with_result(handle: str) -> str:
    """Stands in JSON where a line named content that now follows the result."""
    return f"[{handle}: shown with this result]"


def older_media(kind: str, known: str, handle: str | None) -> str:
    """Stands for media of an older result, left out of a request. It has no number, and is never opened again."""
    return media_line(kind, known, "of an older result, left out here", handle, None)


def same_media(kind: str, known: str, tool: str, call: str) -> str:
    """Stands for media that an earlier result of the conversation shows already."""
    return f"[{kind}: {known}, the same as in the result of {plain(tool, 100)}, call {plain(call, 100)}]"


def media_by_reference(kind: str, number: int) -> str:
    """The name of media that a client gave by its address, where it goes on after the results."""
    return f"{kind} by address {number}"
