"""The report's pictures: each distinct one once, small enough to keep the page one file."""

import base64
import hashlib
import io

from PIL import Image

from gateway.core.model.png import without_broken_extras
from gateway.hosts.simulators.pictures import MEDIA_TYPES
from gateway.hosts.simulators.results import VECTOR
from gateway.hosts.simulators.seen import SeenImage

MAX_EDGE = 900
KEEP_BYTES = 60_000
"""Pictures of at most this many bytes are put into the page unchanged."""
DETAIL = (480, 200)
"""Size in pixels of a part of a picture that is shown pixel for pixel."""


class Gallery:
    """Pictures by CSS class, so that one which many hosts see is in the page only once."""

    def __init__(self) -> None:
        self._rules: dict[str, str] = {}

    def add(self, image: SeenImage) -> tuple[str, float] | None:
        """Return the picture's CSS class and its width divided by its height, or None if it cannot be drawn."""
        name = "p" + hashlib.sha256(image.data.encode()).hexdigest()[:16]
        picture = image.picture
        if picture is None and image.media_type != VECTOR:
            return None
        if name not in self._rules:
            uri = f"data:{VECTOR};base64,{image.data}" if picture is None else _thumbnail(image)
            self._rules[name] = f'.{name}{{background-image:url("{uri}")}}'
        return name, picture.aspect if picture else 1.6

    def detail(self, image: SeenImage, at: tuple[float, float]) -> str | None:
        """Return the CSS class of a part of the picture, pixel for pixel, at the size in which the model gets it.

        `at` is the start of the part, as fractions of width and height. Return None if the picture cannot be drawn.
        """
        if image.picture is None or image.pixels is None:
            return None
        name = "d" + hashlib.sha256(f"{image.data} {image.pixels} {at}".encode()).hexdigest()[:16]
        if name not in self._rules:
            self._rules[name] = f'.{name}{{background-image:url("{_cut_out(image, image.pixels, at)}")}}'
        return name

    def rules(self) -> str:
        """Return the style sheet with all the pictures."""
        return "\n".join(self._rules.values())


def _thumbnail(image: SeenImage) -> str:
    content = base64.b64decode(image.data)
    if len(content) <= KEEP_BYTES:
        return f"data:{image.media_type};base64,{image.data}"
    out = io.BytesIO()
    with Image.open(io.BytesIO(without_broken_extras(content)), formats=tuple(MEDIA_TYPES)) as opened:
        opened.draft("RGB", (MAX_EDGE, MAX_EDGE * opened.height // opened.width))
        small = opened.convert("RGBA" if opened.mode in ("RGBA", "LA", "P") else "RGB")
        small.thumbnail((MAX_EDGE, MAX_EDGE), Image.Resampling.LANCZOS)
        small.save(out, "WEBP", quality=82)
    return f"data:image/webp;base64,{base64.b64encode(out.getvalue()).decode()}"


def _cut_out(image: SeenImage, pixels: tuple[int, int], at: tuple[float, float]) -> str:
    out = io.BytesIO()
    with Image.open(
        io.BytesIO(without_broken_extras(base64.b64decode(image.data))), formats=tuple(MEDIA_TYPES)
    ) as opened:
        left, top = (round(share * length) for share, length in zip(at, pixels, strict=True))
        right, bottom = min(left + DETAIL[0], pixels[0]), min(top + DETAIL[1], pixels[1])
        # If the host scales the picture for its model, this does, too.
        across, down = opened.width / pixels[0], opened.height / pixels[1]
        box = (left * across, top * down, right * across, bottom * down)
        part = opened.convert("RGB").resize((right - left, bottom - top), Image.Resampling.LANCZOS, box)
        # Lossless, so that nothing becomes illegible here.
        part.save(out, "WEBP", lossless=True)
    return f"data:image/webp;base64,{base64.b64encode(out.getvalue()).decode()}"
