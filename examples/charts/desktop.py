"""A screenshot of a desktop that does not exist, 2,560 by 1,600 pixels, as a PNG file of several megabytes.

Half of it is text of 10 points, which must stay legible when the picture is made smaller; the other half is a photo
with the grain of a sensor, which no PNG makes small. So a host's limits of pixels and bytes are both in the way.
"""

from io import BytesIO
from random import Random

from PIL import Image, ImageChops, ImageDraw

from .canvas import encode, font
from .scenes import landscape

WIDTH, HEIGHT = 2_560, 1_600
LETTERS = 13
"""10 points at 96 dots an inch, in pixels."""
LINE = 20
LOG_AT = (60, 128)
"""Where the first line of the log begins; the next ones are LINE pixels below each other."""

_BAR, _EDGE = 36, 20
_LOG_WINDOW, _PHOTO_WINDOW = (40, 76, 1_260, 1_560), (1_300, 76, 2_520, 1_560)
_PHOTO = 1_180
_DESK, _TITLE, _PAPER, _INK, _SOFT, _GOOD, _BAD = (
    "#33475b",
    "#dfe5eb",
    "#ffffff",
    "#1f2933",
    "#5b6a76",
    "#17693f",
    "#b00020",
)
_COLOURS = {200: _INK, 201: _GOOD, 404: _BAD, 503: _BAD}
_PATHS = ("items", "invoice", "parcels", "customer/address", "notes")


def log_lines(seed: int) -> tuple[str, ...]:
    """The lines of the log in the screenshot of `seed`, from the first one on."""
    return tuple(text for text, _ in _log(seed))


def screenshot(seed: int) -> bytes:
    """The screenshot as a PNG file; the same seed gives the same bytes."""
    desk = Image.new("RGB", (WIDTH, HEIGHT), _DESK)
    draw = ImageDraw.Draw(desk)
    draw.rectangle((0, 0, WIDTH, _BAR), fill=_INK)
    _write(draw, (_EDGE, 11), "Activities     Files  Edit  View  Help", _PAPER)
    _write(draw, (WIDTH // 2 - 50, 11), "Fri 20 Nov  09:41", _PAPER)
    _window(draw, _LOG_WINDOW, "orders.log")
    for row, (text, status) in enumerate(_log(seed)):
        _write(draw, (LOG_AT[0], LOG_AT[1] + row * LINE), text, _COLOURS[status])
    _window(draw, _PHOTO_WINDOW, "lake.jpg")
    left, top = _PHOTO_WINDOW[0] + _EDGE, _PHOTO_WINDOW[1] + _BAR + _EDGE
    desk.paste(_photo(seed), (left, top))
    about = ("Taken at dusk, 1/60 s at f/4, ISO 3200", "Camera: none, since this lake does not exist")
    for row, text in enumerate(about):
        _write(draw, (left, top + _PHOTO + LINE + row * LINE), text, _SOFT)
    # Grain is not worth a second of searching for repetitions.
    return encode(desk, "PNG", compress_level=1)


def _log(seed: int) -> list[tuple[str, int]]:
    random = Random(seed)
    lines: list[tuple[str, int]] = []
    clock = 9 * 3_600 + 17 * 60
    while LOG_AT[1] + (len(lines) + 1) * LINE < _LOG_WINDOW[3] - _EDGE:
        clock += random.randint(1, 40)
        status = random.choice((200, 200, 200, 201, 404, 503))
        order, path = random.randint(100_000, 999_999), random.choice(_PATHS)
        when = f"{clock // 3_600:02}:{clock // 60 % 60:02}:{clock % 60:02}"
        what = f"{'POST' if status == 201 else 'GET'} /api/v1/orders/{order}/{path}?page={random.randint(1, 99)}"
        how = f"{random.randint(3, 900)} ms   {random.randint(200, 90_000):,} bytes"
        session = f"10.0.{random.randint(0, 99)}.{random.randint(1, 254)}   session {random.randbytes(8).hex()}"
        lines.append((f"{when}   {what}   {status}   {how}   from {session}", status))
    return lines


def _photo(seed: int) -> Image.Image:
    """A landscape with grain in each colour, as a photo at high sensitivity has it."""
    side = _PHOTO // 2
    with Image.open(BytesIO(landscape(side, side, "dusk", seed, 95))) as painted:
        picture = painted.convert("RGB").resize((_PHOTO, _PHOTO), Image.Resampling.BICUBIC)
    random = Random(seed)
    levels = [118 + level // 12 for level in range(256)]
    noise = [Image.frombytes("L", picture.size, random.randbytes(_PHOTO * _PHOTO)).point(levels) for _ in range(3)]
    return ImageChops.add(picture, Image.merge("RGB", noise), scale=1, offset=-128)


def _window(draw: ImageDraw.ImageDraw, box: tuple[int, int, int, int], title: str) -> None:
    left, top, right, _ = box
    draw.rectangle(box, fill=_PAPER, outline=_INK)
    draw.rectangle((left, top, right, top + _BAR), fill=_TITLE, outline=_INK)
    _write(draw, (left + _EDGE, top + 11), title, _INK)
    draw.ellipse((right - 28, top + 11, right - 14, top + 25), fill=_BAD)


def _write(draw: ImageDraw.ImageDraw, at: tuple[int, int], text: str, colour: str) -> None:
    draw.text(at, text, font=font(LETTERS), fill=colour)
