"""The proof that the simulators are right: the measured matrix of real hosts, rebuilt cell by cell.

The rows are copied from the measurements (2026-11-20). Codes: N native image inside the tool result; U beside it; UD
native document beside it; F saved to a file; P placeholder only; R n base64 as text, n characters of it; json a block
or result dumped; T text (T n: characters that arrived); S structured content; ∅ nothing. x2 twice.

The media here is made anew, so where a row gives the length of the measured media (R252: the base64 of its small PNG),
the length of ours is meant.
"""

import base64
import io
import json
import random
import re
import struct
import wave
from collections.abc import Mapping
from typing import Any

import pytest
from PIL import Image

from gateway.simulation.base64_runs import base64_runs
from gateway.simulation.codex import fitted
from gateway.simulation.hosts import SIMULATORS
from gateway.simulation.seen import Seen, SeenDocument, SeenImage, SeenText


def _row(*pieces: str) -> list[str]:
    return [cell.strip() for cell in " ".join(pieces).split("|")]


CASES = _row(
    "png | jpeg | webp | gif | svg | wav | res_text | res_pdf | res_png | link_png |",
    "struct_only | struct_text | struct_text_image | err_text_image | mixed | meta_aud | empty |",
    "badmime | badbytes | dims | png_2mb | png_6mb | text_200k",
)
MEASURED = {
    "claude-code": _row(
        "N | N | N | N | F | F | T | T | N | T |",
        "T | T | N S | T | Nx2 T | Nx2 | P |",
        "N | P | N | N | N | T2336",
    ),
    "codex": _row(
        "N | N | N | N | P | P | T | R720 | R252 | T |",
        "T | T | S | N T | Nx2 T | Nx2 | T |",
        "N | P | N | N | N | T47984",
    ),
    "gemini-cli": _row(
        "U | U | U | U | U | P | T | UD | U | T |",
        "∅ | T | U T | R252 | Ux2 T | Ux2 | ∅ |",
        "U | U | U | U | U | T40248",
    ),
    "cline": _row(
        "R252 json | R1048 json | R256 json | R252 json | json | R5392 json | json | R720 json | R252 json | json |",
        "json | json | R252 json S T | R252 json T | R252+248 json T | R252+248 json | json |",
        "R252 json | json | R3962+3925 json | R3961+3924 json | R3961+3924 json | T8000",
    ),
    "unknown": _row(
        "N | N | N | N | N | R5392 | json | R720 | R252 | json |",
        "∅ | T | N T | N T | Nx2 T | Nx2 | ∅ |",
        "N | N | N | N | N | T200000",
    ),
}
"""The rows claude, codex, gemini, cline-anthropic and openai-agents."""

LENGTHS = {252: "png", 248: "png2", 1048: "jpeg", 256: "webp", 5392: "wav", 720: "pdf"}
"""The measured media by the length of its base64 (the small GIF has that of the small PNG)."""


def _b64(content: bytes) -> str:
    return base64.b64encode(content).decode()


def _picture(media_type: str, size: tuple[int, int] = (24, 16), seed: int = 1) -> str:
    image = Image.frombytes("RGB", (6, 4), random.Random(seed).randbytes(6 * 4 * 3))
    out = io.BytesIO()
    image.resize(size, Image.Resampling.NEAREST).save(out, media_type)
    return _b64(out.getvalue())


def _noise(base64_chars: int) -> str:
    """A PNG of noise, which does not get smaller, with about so many characters of base64."""
    side = int((base64_chars * 0.75 / 3) ** 0.5)
    out = io.BytesIO()
    Image.frombytes("RGB", (side, side), random.Random(2).randbytes(side * side * 3)).save(out, "PNG", compress_level=1)
    return _b64(out.getvalue())


def _large() -> str:
    """A PNG of 4000 x 3000 pixels, most of them blue."""
    image = Image.new("RGB", (4000, 3000), "navy")
    image.paste(Image.frombytes("RGB", (4000, 4), random.Random(3).randbytes(4000 * 4 * 3)), (0, 2996))
    out = io.BytesIO()
    image.save(out, "PNG")
    return _b64(out.getvalue())


def _wav() -> str:
    out = io.BytesIO()
    with wave.open(out, "wb") as sound:
        sound.setparams((1, 2, 8000, 0, "NONE", ""))
        sound.writeframes(b"".join(struct.pack("<h", random.Random(3 + i).randrange(-9000, 9000)) for i in range(900)))
    return _b64(out.getvalue())


def _pdf() -> str:
    out = io.BytesIO()
    Image.new("RGB", (40, 40), "teal").save(out, "PDF")
    return _b64(out.getvalue())


SVG = _b64(b'<svg xmlns="http://www.w3.org/2000/svg"/>')
MEDIA = {
    "png": _picture("PNG"),
    "png2": _picture("PNG", seed=5),
    "jpeg": _picture("JPEG"),
    "webp": _picture("WEBP"),
    "gif": _picture("GIF"),
    "wav": _wav(),
    "pdf": _pdf(),
}


def _text(text: str) -> dict[str, Any]:
    return {"type": "text", "text": text}


def _image(data: str, media_type: str = "image/png", **more: Any) -> dict[str, Any]:
    return {"type": "image", "data": data, "mimeType": media_type, **more}


def _embedded(**contents: str) -> dict[str, Any]:
    return {"type": "resource", "resource": {"uri": "lab://res/it", **contents}}


def _content(*blocks: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {"content": list(blocks), **more}


_TWIN = {"depth": 41, "unit": "m"}
_USER_ONLY = {"annotations": {"audience": ["user"]}, "_meta": {"lab": 1}}
RESULTS: Mapping[str, dict[str, Any]] = {
    "png": _content(_image(MEDIA["png"])),
    "jpeg": _content(_image(MEDIA["jpeg"], "image/jpeg")),
    "webp": _content(_image(MEDIA["webp"], "image/webp")),
    "gif": _content(_image(MEDIA["gif"], "image/gif")),
    "svg": _content(_image(SVG, "image/svg+xml")),
    "wav": _content({"type": "audio", "data": MEDIA["wav"], "mimeType": "audio/wav"}),
    "res_text": _content(_embedded(mimeType="text/markdown", text="# Depths")),
    "res_pdf": _content(_embedded(mimeType="application/pdf", blob=MEDIA["pdf"])),
    "res_png": _content(_embedded(mimeType="image/png", blob=MEDIA["png"])),
    "link_png": _content({"type": "resource_link", "uri": "lab://img/s.png", "name": "s", "mimeType": "image/png"}),
    "struct_only": {"content": [], "structuredContent": _TWIN},
    "struct_text": _content(_text(json.dumps(_TWIN)), structuredContent=_TWIN),
    "struct_text_image": _content(
        _text("PROSE about the harbour"), _image(MEDIA["png"]), structuredContent={"fact": "STRUCTURE"}
    ),
    "err_text_image": _content(_text("PROSE: no such harbour"), _image(MEDIA["png"]), isError=True),
    "mixed": _content(_text("PROSE one"), _image(MEDIA["png"]), _text("PROSE two"), _image(MEDIA["png2"])),
    "meta_aud": _content(_image(MEDIA["png"], **_USER_ONLY), _image(MEDIA["png2"], _meta={"lab": 2})),
    "empty": _content(),
    "badmime": _content(_image(MEDIA["png"], "image/jpeg")),
    "badbytes": _content(_image(_b64(b"these bytes are no image"))),
    "dims": _content(_image(_large())),
    "png_2mb": _content(_image(_noise(2_003_152))),
    "png_6mb": _content(_image(_noise(6_012_612))),
    "text_200k": _content(_text(("lorem ipsum dolor " * 11_112)[:200_000])),
}


def _cells() -> list[tuple[str, str, str]]:
    return [(host, case, cell) for host, row in MEASURED.items() for case, cell in zip(CASES, row, strict=True)]


def _code(seen: Seen) -> str:
    """What the simulated model got, in the codes of the matrix."""
    said = [part for part in seen.parts if isinstance(part, SeenText) and part.form != "frame"]
    leaks = [len(run) for text in seen.texts() for run in base64_runs(text)]
    codes: list[str] = []
    if seen.images:
        place = "N" if seen.images[0].where == "in the result" else "U"
        codes.append(place if len(seen.images) == 1 else f"{place}x{len(seen.images)}")
    if any(isinstance(part, SeenDocument) and part.where == "beside it" for part in seen.parts):
        codes.append("UD")
    if leaks:
        codes.append("R" + "+".join(map(str, leaks)))
    if len(seen.text) > 1_000 and not leaks:
        return " ".join([*codes, f"T{len(seen.text)}"])
    if _is_dump(seen, bool(leaks)):
        codes.append("json")
    if "STRUCTURE" in seen.text:
        codes.append("S")
    if any("PROSE" in part.text for part in said if part.form != "error"):
        codes.append("T")
    return " ".join(codes) or _of_words_alone(seen, said)


def _is_dump(seen: Seen, leaks: bool) -> bool:
    """A whole result in JSON, or a block in JSON that has no base64 in it; Codex puts words of its own before it, so
    that the measurement took it for text."""
    if seen.texts("frame"):
        return False
    return any(text.startswith('{"content":') or not leaks for text in seen.texts("json"))


def _of_words_alone(seen: Seen, said: list[SeenText]) -> str:
    forms = {part.form for part in said}
    if not said:
        return "T" if seen.parts else "∅"
    return {("placeholder",): "P", ("file",): "F"}.get(tuple(forms), "T")


def _numbers(code: str) -> tuple[str, list[int]]:
    """A code with its lengths taken out, and the lengths."""
    return re.sub(r"(?<=[RT+])\d+", "#", code), [int(number) for number in re.findall(r"(?<=[RT+])\d+", code)]


def _length_here(measured: int, case: str) -> tuple[int, int]:
    """The length that ours should have, and by how much it may differ: not at all for media that arrives whole, by the
    words around it where something was cut."""
    if measured in LENGTHS:
        return len(MEDIA["gif" if case == "gif" else LENGTHS[measured]]), 0
    return measured, {47_984: 40, 8_000: 0, 200_000: 16}.get(measured, 100)


@pytest.mark.parametrize(("host", "case", "cell"), _cells())
def test_a_simulated_host_does_what_the_real_one_did(host: str, case: str, cell: str) -> None:
    seen = SIMULATORS[host].see(RESULTS[case], None)
    assert seen.error is None
    codes, lengths = _numbers(_code(seen))
    measured_codes, measured_lengths = _numbers(cell)
    assert codes == measured_codes
    for length, measured in zip(lengths, measured_lengths, strict=True):
        wanted, slack = _length_here(measured, case)
        assert abs(length - wanted) <= slack


def test_claude_code_scales_a_12_megapixel_image_as_measured() -> None:
    seen = SIMULATORS["claude-code"].see(RESULTS["dims"], None)
    assert seen.images[0].pixels == (2000, 1500)
    assert "Multiply coordinates by 2.00" in seen.text


def test_codex_scales_a_12_megapixel_image_as_measured() -> None:
    assert SIMULATORS["codex"].see(RESULTS["dims"], None).images[0].pixels == (3669, 2752)


def test_codex_leaves_an_image_of_fewer_patches_alone() -> None:
    assert fitted(1568, 1176) == (1568, 1176)


@pytest.mark.parametrize("host", ["gemini-cli", "unknown"])
def test_some_hosts_leave_a_12_megapixel_image_alone(host: str) -> None:
    assert SIMULATORS[host].see(RESULTS["dims"], None).images[0].pixels == (4000, 3000)


@pytest.mark.parametrize(
    ("host", "sent_as"),
    [("claude-code", "image/png"), ("codex", "image/png"), ("gemini-cli", "image/jpeg"), ("unknown", "image/jpeg")],
)
def test_a_wrong_media_type_is_mended_by_some_hosts_only(host: str, sent_as: str) -> None:
    image = SIMULATORS[host].see(RESULTS["badmime"], None).images[0]
    assert image.media_type == sent_as
    assert (image.picture is not None) == (sent_as == "image/png")


@pytest.mark.parametrize("host", ["claude-code", "gemini-cli", "unknown"])
def test_an_output_schema_without_structured_content_fails_the_call(host: str) -> None:
    seen = SIMULATORS[host].see(RESULTS["png"], {"name": "give", "outputSchema": {"type": "object"}})
    assert seen.error is not None
    assert seen.images == ()


def test_codex_tolerates_an_output_schema_without_structured_content() -> None:
    assert len(SIMULATORS["codex"].see(RESULTS["png"], {"name": "give", "outputSchema": {}}).images) == 1


def test_an_error_may_lack_the_structured_content_that_the_schema_promises() -> None:
    tool = {"name": "give", "outputSchema": {"type": "object"}}
    seen = SIMULATORS["claude-code"].see(RESULTS["err_text_image"], tool)
    assert (seen.error, seen.flagged) == (None, True)


def test_claude_code_shows_long_text_whole_beside_an_image_or_where_the_tool_allows_it() -> None:
    see = SIMULATORS["claude-code"].see
    long = RESULTS["text_200k"]["content"][0]
    assert len(see(_content(long, _image(MEDIA["png"])), None).text) > 200_000
    assert len(see(RESULTS["text_200k"], {"_meta": {"anthropic/maxResultSizeChars": 500_000}}).text) == 200_000
    assert len(see(_content(_text("word " * 9_000)), None).text) == 45_000


def test_gemini_cli_shows_long_text_whole_beside_an_image_only() -> None:
    see = SIMULATORS["gemini-cli"].see
    long = RESULTS["text_200k"]["content"][0]
    assert len(see(_content(long, _image(MEDIA["png"])), None).text) > 200_000
    assert "omitted" not in see(_content(_text("word " * 4_000)), None).text


def test_codex_cuts_long_text_also_beside_an_image_and_keeps_head_and_tail() -> None:
    long = "first " + "word " * 20_000 + " last"
    seen = SIMULATORS["codex"].see(_content(_text(long), _image(MEDIA["png"]), _text("after")), None)
    said = "".join(seen.texts("text"))
    assert len(said) == 47_984
    assert said.startswith("first ")
    assert said.endswith("lastafter")
    assert len(seen.images) == 1


def test_claude_code_shows_images_first_when_structured_content_replaces_the_text() -> None:
    parts = SIMULATORS["claude-code"].see(RESULTS["struct_text_image"], None).parts
    assert isinstance(parts[0], SeenImage)
    assert parts[-1] == SeenText('{"fact":"STRUCTURE"}', "structured")


@pytest.mark.parametrize(
    ("host", "kept"), [("claude-code", True), ("codex", True), ("unknown", True), ("gemini-cli", False)]
)
def test_the_order_of_blocks_is_kept_or_lost_as_measured(host: str, kept: bool) -> None:
    parts = [
        part for part in SIMULATORS[host].see(RESULTS["mixed"], None).parts if getattr(part, "form", "") != "frame"
    ]
    kinds = [type(part) for part in parts]
    in_order = [SeenText, SeenImage, SeenText, SeenImage]
    assert kinds == (in_order if kept else sorted(in_order, key=lambda kind: kind is SeenImage))


def test_claude_desktop_shows_images_one_turn_late() -> None:
    images = SIMULATORS["claude-desktop"].see(RESULTS["mixed"], None).images
    assert {image.where for image in images} == {"next turn"}


def test_claude_desktop_fails_on_a_result_over_its_limit() -> None:
    see = SIMULATORS["claude-desktop"].see
    assert see(RESULTS["png_2mb"], None).error == "result exceeds maximum length of 1048576"
    assert see(RESULTS["text_200k"], None).error is None


def test_claude_desktop_shows_content_and_structured_content() -> None:
    seen = SIMULATORS["claude-desktop"].see(RESULTS["struct_text_image"], None)
    assert "PROSE" in seen.text
    assert "STRUCTURE" in seen.text
    assert len(seen.images) == 1


@pytest.mark.parametrize("case", ["wav", "res_pdf", "res_text", "link_png"])
def test_what_is_not_known_of_claude_desktop_counts_as_lost(case: str) -> None:
    seen = SIMULATORS["claude-desktop"].see(RESULTS[case], None)
    assert seen.texts("placeholder") == seen.texts()


@pytest.mark.parametrize("case", sorted(set(RESULTS) - {"empty"}))
def test_the_inspector_shows_every_block(case: str) -> None:
    seen = SIMULATORS["inspector"].see(RESULTS[case], None)
    shown = len(RESULTS[case]["content"]) + ("structuredContent" in RESULTS[case])
    assert len(seen.parts) == shown
    assert (seen.error, seen.base64_leak) == (None, 0)


@pytest.mark.parametrize("host", sorted(SIMULATORS))
@pytest.mark.parametrize(
    "block",
    [
        {"type": "video", "data": "AAAA", "mimeType": "video/mp4"},
        {"type": "image", "data": MEDIA["png"]},
        {"type": "text"},
        {"type": "resource", "resource": {"uri": "lab://res/it"}},
        {"type": "resource_link", "uri": "lab://res/it"},
        "text",
    ],
)
def test_one_block_that_a_typed_client_cannot_read_costs_the_whole_result(host: str, block: object) -> None:
    seen = SIMULATORS[host].see({"content": [_text("PROSE"), block]}, None)
    assert seen.error is not None
    assert "PROSE" not in seen.text
