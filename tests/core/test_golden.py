"""One input, every profile, side by side: `tests/golden/<case>/<profile>.json`, written by `pytest --update-golden`.

In `input.json`, `@png:800x600` stands for base64 with that header (`@wav:4000`: of that many bytes), and
`@lines:200000` for that much text. In the golden files, base64 is written as what it holds. Effects are answered as
plain values here: what media workers really do to bytes has tests of its own.
"""

import base64
import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from gateway.config.builtin_profiles import load_builtin
from gateway.core.lifting import lift
from gateway.core.lowering.mcp import lower
from gateway.core.model.effects import Effect, FitImage, Fitted, Keep, Kept, Outcome
from gateway.core.model.media_types import PixelSize, inspect, inspect_base64
from gateway.core.planning import plan
from gateway.core.profiles import resolve_profiles
from gateway.core.rescue import rescue

GOLDEN = Path(__file__).parent.parent / "golden"
CASES = sorted(path.parent.name for path in GOLDEN.glob("*/input.json"))
PROFILES = resolve_profiles(load_builtin())


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
        case _:
            raise ValueError(kind)


def expanded(value: Any) -> Any:
    """The input with real data in place of `@...`."""
    if isinstance(value, dict):
        return {key: expanded(item) for key, item in value.items()}
    if isinstance(value, list):
        return [expanded(item) for item in value]
    return re.sub(r"@(\w+):(\d+)(?:x(\d+))?", _data, value) if isinstance(value, str) else value


def _data(match: re.Match[str]) -> str:
    kind, first, second = match[1], int(match[2]), match[3]
    if kind == "lines":
        return "".join(f"line {number}: some words\n" for number in range(first // 20))[:first]
    if kind in ("wav", "pdf"):
        start = b"RIFF\0\0\0\0WAVEfmt " if kind == "wav" else b"%PDF-1.7\n"
        return base64.b64encode(start + bytes(first - len(start))).decode()
    content = header(kind, first, int(second))
    if kind == "wrapped":
        return "\n".join(
            base64.b64encode(content + bytes(100)).decode().rstrip("=")[at : at + 76] for at in (0, 76, 152)
        )
    return base64.b64encode(content + (b"" if kind == "svg" else bytes(100))).decode()


def shortened(value: Any) -> Any:
    """The output as a person reads it: what base64 holds, the ends of long text."""
    if isinstance(value, dict):
        return {key: shortened(item) for key, item in value.items()}
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
    if isinstance(effect, Keep):
        return Kept(f"handle_{effect.key.replace(':', '_')}")
    assert isinstance(effect, FitImage)
    original = inspect(base64.b64decode(effect.data)).size or PixelSize(100, 100)
    edge = effect.target.max_edge or max(original)
    scale = min(1.0, edge / max(original))
    pixels = PixelSize(round(original.width * scale), round(original.height * scale))
    kind = "jpeg" if effect.target.types == ("image/jpeg",) else "png"
    return Fitted(base64.b64encode(header(kind, *pixels) + bytes(100)).decode(), f"image/{kind}", pixels, original)


@pytest.mark.parametrize("name", sorted(PROFILES))
@pytest.mark.parametrize("case", CASES)
def test_each_case_is_shaped_for_each_profile_as_written_down(
    case: str, name: str, golden: Callable[[Path, str], None]
) -> None:
    profile = PROFILES[name]
    result = expanded(json.loads((GOLDEN / case / "input.json").read_text("utf-8"))["result"])
    envelope = lift(result)
    envelope = rescue(envelope) if profile.rescue else envelope
    outcomes: dict[str, Outcome] = {}
    while wanted := plan(envelope, profile, outcomes):
        outcomes |= {effect.key: perform(effect) for effect in wanted}
    lowered = lower(envelope, profile, outcomes)
    notes = [
        f"{note.kind}{'' if note.block is None else f' (block {note.block})'}: {note.text}" for note in lowered.notes
    ]
    written = {**shortened(lowered.result), "gateway notes": notes}
    golden(GOLDEN / case / f"{name}.json", json.dumps(written, ensure_ascii=False, indent=2) + "\n")


def test_no_golden_file_is_left_of_a_profile_or_case_that_is_gone() -> None:
    expected = {f"{case}/{name}.json" for case in CASES for name in [*PROFILES, "input"]}
    assert {str(path.relative_to(GOLDEN)) for path in GOLDEN.rglob("*.*")} == expected
