"""The calls that the demo makes: each calls a tool of a bundled example, and represents one shape of result."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class Case:
    """One call: the upstream, its tool, the arguments, and what the result consists of.

    `detail`: for pictures with text, the start of the part that the report shows pixel for pixel, as fractions of their
    width and height.
    """

    name: str
    shows: str
    upstream: str
    tool: str
    arguments: Mapping[str, Any] = field(default_factory=dict[str, Any])
    detail: tuple[float, float] | None = None


CASES = (
    Case("text + PNG", "a text block and a PNG image", "charts", "draw_chart"),
    Case("JPEG", "a JPEG image", "charts", "landscape"),
    Case("WebP", "a WebP image with a transparent background", "charts", "sticker"),
    Case("SVG", "a vector image, which most models cannot be sent", "charts", "vector_chart"),
    Case("12 megapixels", "a PNG image of 4,000 x 3,000 pixels", "charts", "poster"),
    Case(
        "screenshot",
        "a PNG image of 2,560 x 1,600 pixels and several megabytes: text of 10 points beside a photo",
        "charts",
        "screenshot",
        detail=(0.02, 0.075),
    ),
    Case("text, image, text, image", "blocks whose order carries the meaning", "charts", "compare"),
    Case("structured + image", "structured content beside an image", "charts", "chart_with_data"),
    Case("structured alone", "structured content and no other", "documents", "statistics"),
    Case("error + image", "an error result with a text and an image", "charts", "check_data"),
    Case("picture twice", "a PNG whose base64 also stands in structured content", "charts", "picture_twice"),
    Case("embedded PNG", "an embedded resource whose bytes are a PNG image", "documents", "cover"),
    Case("embedded text", "an embedded text resource", "documents", "read_markdown"),
    Case("PDF", "an embedded PDF document", "documents", "read_pdf"),
    Case("resource link", "a link to a resource of the server", "documents", "link_to"),
    Case("2 MB of text", "two megabytes of text", "documents", "word_index"),
    Case("WAV", "a sound", "sounds", "play_tone"),
    Case("waveform", "a picture of a sound, beside the sound", "sounds", "waveform"),
)
