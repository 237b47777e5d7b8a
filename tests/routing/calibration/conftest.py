"""A scripted model behind a simulated host: it reads digits out of pixels, pages and tones, as far as it gets any."""

import base64
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from io import BytesIO
from itertools import groupby
from typing import Any

import pypdfium2
import pytest
from PIL import Image

from gateway.hosts.simulators.hosts import SIMULATORS
from gateway.hosts.simulators.seen import Seen, SeenAudio, SeenDocument, SeenImage, SeenText
from gateway.routing.calibration.digits import DIGITS

_STEPS = 60
_LENGTH = 5
_GLYPHS = {"".join(rows): digit for digit, rows in DIGITS.items()}


def digits_in(image: Image.Image) -> list[str]:
    """The codes in a picture: of one that is large also the small one in its upper left corner."""
    if max(image.size) < 1_500:
        return _line(image)
    scale = max(image.size) / 4_000
    corner = image.crop((0, 0, round(800 * scale), round(400 * scale)))
    middle = image.crop((0, round(500 * scale), image.width, image.height))
    return [*_line(corner), *_line(middle)]


def _line(image: Image.Image) -> list[str]:
    """The digits, if ink on light ground makes a line of them: each point is looked at in its middle."""
    ink = image.convert("L").point([255] * 100 + [0] * 156)
    box = ink.getbbox()
    if box is None:
        return []
    left, top, right, bottom = box
    point = (bottom - top) / 7
    for blank in (0, 1):  # a 1 begins with an empty column
        code = "".join(_digit(ink, left - blank * point + place * 6 * point, top, point) for place in range(_LENGTH))
        if len(code) == _LENGTH and right <= left + 30 * point:
            return [code]
    return []


def _digit(ink: Image.Image, left: float, top: float, point: float) -> str:
    def dark(column: int, row: int) -> bool:
        at = (int(left + (column + 0.5) * point), int(top + (row + 0.5) * point))
        inside = 0 <= at[0] < ink.width and 0 <= at[1] < ink.height
        return inside and bool(ink.getpixel(at))

    drawn = "".join("#" if dark(column, row) else "." for row in range(7) for column in range(5))
    return _GLYPHS.get(drawn, "")


def pages_in(pdf: bytes) -> list[str]:
    """The codes on the pages of a PDF."""
    document = pypdfium2.PdfDocument(pdf)
    try:
        return [code for page in document for code in digits_in(page.render(scale=2).to_pil())]
    finally:
        document.close()


def tones_in(wav: bytes) -> list[str]:
    """How many tones each group has, as a code."""
    step = 400  # samples: a twentieth of a second
    samples = wav[44:]
    loud = [max(samples[at : at + step]) > 170 for at in range(0, len(samples), step)]
    counts, count, silence = [], 0, 0
    for is_loud, run in groupby(loud):
        length = len(list(run))
        silence = 0 if is_loud else length
        count += is_loud
        if silence > 8 and count:
            counts.append(count)
            count = 0
    return ["".join(map(str, counts))]


def codes_in(seen: Seen, *, next_turn: bool) -> list[str]:
    """All codes that a model reads in what reaches it now (or only with the user's next message)."""
    codes: list[str] = []
    for part in seen.parts:
        if isinstance(part, SeenText):
            codes += [] if next_turn else re.findall(r"(?<![\w+/=.-])\d{5}(?![\w+/=-])", part.text)
        elif (part.where == "next turn") == next_turn:
            codes += _media(part)
    return codes


def _media(part: SeenImage | SeenAudio | SeenDocument) -> list[str]:
    content = base64.b64decode(part.data)
    if part.media_type == "application/json":
        return re.findall(r'"code": ?"(\d{5})"', content.decode())
    if part.media_type == "application/pdf":
        return pages_in(content)
    if isinstance(part, SeenAudio):
        return tones_in(content)
    image = Image.open(BytesIO(content)).convert("RGB")
    pixels = image.size if isinstance(part, SeenDocument) else part.pixels or image.size
    return digits_in(image if pixels == image.size else image.resize(pixels, Image.Resampling.LANCZOS))


Ask = Callable[[str, dict[str, Any]], Any]


@dataclass
class Model:
    """A model that does what it is told: shows, reports, and after the user's message reports again.

    `reads` gives the codes that it claims to see, of a Seen.
    """

    see: Callable[[Mapping[str, Any], Mapping[str, Any] | None], Seen]
    reads: Callable[..., list[str]] = codes_in
    before: list[Seen] = field(default_factory=list)
    heard: list[str] = field(default_factory=list)

    async def calibrates(self, ask: Ask) -> str:
        """Goes through the whole of it; the last thing that it was told."""
        told = ""
        for _ in range(_STEPS):
            shown = self.see(await ask("gateway_calibrate_show", {}), None)
            self.before.append(shown)
            told = await self._reports(ask, codes=self.reads(shown, next_turn=False))
            if "end your turn" in told:
                later = [code for seen in self.before for code in self.reads(seen, next_turn=True)]
                return await self._reports(ask, codes=later, after_user_message=True)
            if "Go on" not in told:
                return told
        raise AssertionError(f"no end: {told}")

    async def _reports(self, ask: Ask, **arguments: Any) -> str:
        told = self.see(await ask("gateway_calibrate_report", arguments), None).text
        self.heard.append(told)
        return told


@pytest.fixture
def reads() -> Callable[..., list[str]]:
    """What an honest model reads."""
    return codes_in


@pytest.fixture
def model() -> Callable[..., Model]:
    """A model behind the simulated host of this name."""

    def make(name: str, **options: Any) -> Model:
        return Model(SIMULATORS[name].see, **options)

    return make
