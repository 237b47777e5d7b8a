"""One input, every profile, side by side: `tests/golden/<case>.md`, written by `pytest --update-golden`.

In an input, `@png:800x600` stands for base64 with that header (`@wav:4000`: of that many bytes; `@scan:4000` is a
PDF without text), `@lines:200000` for that much text, and `@rows:5000` for that many rows. In the outputs, base64 is
written as what it holds, and of long lists the ends. Effects are answered as plain values here: what media workers
really do to bytes has tests of its own.
"""

import base64
import json
import re
from typing import Any

import pytest

from gateway.config.builtin_profiles import load_builtin
from gateway.core.model.effects import (
    ConvertAudio,
    Converted,
    Describe,
    Described,
    DocumentRead,
    Effect,
    FitImage,
    Fitted,
    ImageTarget,
    JsonOutlined,
    Keep,
    Kept,
    LinkRead,
    Outcome,
    OutlineJson,
    Probe,
    Probed,
    ReadDocument,
    ReadLink,
    Rendered,
    RenderPages,
    WriteFile,
    Written,
)
from gateway.core.model.media_types import PixelSize, inspect, inspect_base64
from gateway.core.profiles.host_profiles import resolve_profiles
from gateway.core.profiles.profile import Profile
from gateway.core.results.decisions import Decisions, decide
from gateway.core.results.json_outline import json_outlines
from gateway.core.results.lift_result import lift
from gateway.core.results.lower_mcp import lower
from gateway.core.results.rescue import rescue
from tests.core import golden_cases

PROFILES = resolve_profiles(load_builtin())


STARTS = {
    "wav": b"RIFF\0\0\0\0WAVEfmt ",
    "ogg": b"OggS\0\2",
    "pdf": b"%PDF-1.7\n",
    "scan": b"%PDF-1.7 scanned\n",
    "mp4": b"\0\0\0\x18ftypisom",
    "csv": b"name,size\n" + b"a,1\n" * 30,
}


IEND = b"\0\0\0\0IEND\xaeB`\x82"
ENDS = {"png": IEND, "wrapped": IEND, "jpeg": b"\xff\xd9", "gif": b";"}


def header(kind: str, width: int, height: int) -> bytes:
    match kind:
        case "png" | "wrapped":
            return b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR" + width.to_bytes(4, "big") + height.to_bytes(4, "big")
        case "jpeg":
            return b"\xff\xd8\xff\xc0\0\x11\x08" + height.to_bytes(2, "big") + width.to_bytes(2, "big")
        case "webp":
            canvas = (width - 1).to_bytes(3, "little") + (height - 1).to_bytes(3, "little")
            return b"RIFF\0\0\0\0WEBPVP8X\0\0\0\0\0\0\0\0" + canvas
        case "svg":
            return f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}"/>'.encode()
        case "gif":
            return b"GIF89a" + width.to_bytes(2, "little") + height.to_bytes(2, "little")
        case _:
            raise ValueError(kind)


def expanded(value: Any) -> Any:
    """The input with real data in place of `@...`."""
    if isinstance(value, dict):
        return {key: expanded(item) for key, item in value.items()}
    if isinstance(value, list):
        return [expanded(item) for item in value]
    if isinstance(value, str) and value.startswith("@rows:"):
        return [{"id": number, "name": f"row {number}"} for number in range(int(value.removeprefix("@rows:")))]
    return re.sub(r"@(\w+):(\d+)(?:x(\d+))?", _data, value) if isinstance(value, str) else value


def _data(match: re.Match[str]) -> str:
    kind, first, second = match[1], int(match[2]), match[3]
    if kind == "lines":
        return "".join(f"line {number}: some words\n" for number in range(first // 20))[:first]
    if kind in STARTS:
        filling = b"\n" if kind == "csv" else b"\0"
        return base64.b64encode(STARTS[kind].ljust(first, filling)).decode()
    content, end = header(kind, first, int(second)), ENDS.get(kind, b"")
    filling = bytes(100 - len(end)) + end
    if kind == "wrapped":
        return "\n".join(base64.b64encode(content + filling).decode().rstrip("=")[at : at + 76] for at in (0, 76, 152))
    return base64.b64encode(content + (b"" if kind == "svg" else filling)).decode()


def shortened(value: Any) -> Any:
    """The output as a person reads it: what base64 holds, the ends of long text."""
    if isinstance(value, dict):
        return {key: shortened(item) for key, item in value.items()}
    if isinstance(value, list) and len(value) > 50:
        return [shortened(value[0]), f"<...{len(value):,} items...>", shortened(value[-1])]
    if isinstance(value, list):
        return [shortened(item) for item in value]
    if isinstance(value, str) and len(value) > 90 and re.fullmatch(r"[A-Za-z0-9+/=]+", value):
        finding = inspect_base64(value)
        pixels = f" {finding.size.width}x{finding.size.height}" if finding.size else ""
        return f"<base64 {finding.media_type}{pixels}, {len(base64.b64decode(value))} bytes>"
    if isinstance(value, str) and len(value) > 2_000:
        middle = re.search(r"\n\[… .*? …\]\n", value)
        return f"{value[:60]}<...{len(value):,} characters...>{middle[0] if middle else ''}<...>{value[-60:]}"
    return value


def perform(effect: Effect) -> Outcome:
    match effect:
        case Keep():
            return Kept(f"handle_{effect.key.replace(':', '_')}")
        case FitImage():
            content = base64.b64decode(effect.data)
            moves = content.startswith(b"GIF") and not (effect.target.animation and "image/gif" in effect.target.types)
            return fitted(inspect(content).size or PixelSize(100, 100), effect.target, 12 if moves else 1)
        case ReadDocument():
            is_scan = STARTS["scan"] in base64.b64decode(effect.data)
            texts = tuple("" if is_scan else f"Words of page {number}." for number in range(1, 4))
            return DocumentRead(3, texts[: effect.max_pages], "A report")
        case RenderPages():
            return Rendered(tuple(fitted(PixelSize(1545, 2000), effect.target) for _ in effect.pages))
        case ConvertAudio():
            media_type = effect.target.types[0] if effect.target.types else effect.media_type
            return Converted(expanded("@wav:3000"), media_type, min(90, effect.target.max_seconds or 90), 90)
        case Probe():
            if effect.media_type.startswith("video/"):
                return Probed(61.5, "h264", 2, 48_000, PixelSize(1280, 720))
            return Probed(90.0, "pcm_s16le", 1, 8_000)
        case OutlineJson():
            return JsonOutlined(json_outlines(base64.b64decode(effect.data).decode("utf-8")))
        case Describe():
            return Described("What it shows.", "a describer")
        case ReadLink():
            data = "@pdf:4000" if effect.uri.endswith(".pdf") else "@png:640x480"
            return LinkRead(({"uri": effect.uri, "blob": expanded(data)},))
        case WriteFile():
            return Written(f"/work/{effect.key.replace(':', '_')}")


def fitted(original: PixelSize, target: ImageTarget, frames: int = 1) -> Fitted:
    scale = min(1.0, (target.max_edge or max(original)) / max(original))
    pixels = PixelSize(round(original.width * scale), round(original.height * scale))
    kind = "jpeg" if target.types == ("image/jpeg",) else "png"
    data = base64.b64encode(header(kind, *pixels) + bytes(100)).decode()
    return Fitted(data, f"image/{kind}", pixels, original, frames)


def shaped(result: Any, profile: Profile) -> str:
    envelope = lift(expanded(result))
    envelope = rescue(envelope) if profile.rescue else envelope
    outcomes: dict[str, Outcome] = {}

    def decided() -> Decisions:
        return decide(envelope, profile, outcomes, accepts=lambda _: True)

    while wanted := tuple(decided().wanted.values()):
        outcomes |= {effect.key: perform(effect) for effect in wanted}
    lowered = lower(envelope, profile, decided())
    notes = [
        f"{note.kind}{'' if note.block is None else f' (block {note.block})'}: {note.text}" for note in lowered.notes
    ]
    written = {**shortened(lowered.result), "gateway notes": notes}
    return json.dumps(written, ensure_ascii=False, indent=2) + "\n"


def outputs(result: Any) -> dict[str, str]:
    """What the profiles make of a result, without those that make of it what the profile that they extend does."""
    every = {name: shaped(result, profile) for name, profile in PROFILES.items()}
    lineages = {name: profile.lineage for name, profile in PROFILES.items()}
    return {name: text for name, text in every.items() if not lineages[name] or text != every[lineages[name][0]]}


@pytest.mark.parametrize("name", golden_cases.NAMES)
def test_each_case_is_shaped_for_each_profile_as_written_down(name: str, request: pytest.FixtureRequest) -> None:
    expected = golden_cases.read(name)
    now = expected._replace(outputs=outputs(expected.result))
    path = golden_cases.path_of(name)
    if request.config.getoption("--update-golden"):
        path.write_text(str(now), "utf-8", newline="\n")
    elif wrong := list(golden_cases.differences(expected, now)):
        pytest.fail("\n".join(["not what the golden file says:", *wrong]), pytrace=False)
    assert path.read_text("utf-8") == str(now), "its outputs are right, but not as --update-golden writes them"


def test_a_changed_output_is_shown_under_its_case_and_its_profiles() -> None:
    expected = golden_cases.Case("case", "About.", {}, {"one": "[\n  1\n]\n", "other": "[\n  1\n]\n", "same": "[]\n"})
    now = expected._replace(outputs={"one": "[\n  2\n]\n", "other": "[\n  2\n]\n", "same": "[]\n", "new": "[]\n"})
    assert list(golden_cases.differences(expected, now)) == [
        *("--- case.md: new", "+++ now", "@@ -0,0 +1 @@", "+[]"),
        *("--- case.md: one, other", "+++ now", "@@ -1,3 +1,3 @@", " [", "-  1", "+  2", " ]"),
    ]
