"""The proof that the simulators are right: the measured matrix of real hosts, rebuilt cell by cell.

The rows, and what their codes mean, stand in matrix.toml. The media here is made anew (lab.py), so
where a row gives the length of the measured media (R252: the base64 of its small PNG), the length of ours is meant.
"""

import json
import re
import tomllib
from pathlib import Path
from typing import Any

import pytest

from gateway.config.builtin_profiles import builtin_profiles
from gateway.core.profiles.profile import Profile
from gateway.hosts.simulators.base64_runs import base64_runs
from gateway.hosts.simulators.codex import fitted_size
from gateway.hosts.simulators.hosts import SIMULATORS
from gateway.hosts.simulators.pictures import look
from gateway.hosts.simulators.seen import Seen, SeenAudio, SeenDocument, SeenImage, SeenText
from lab.frameworks import frameworks
from lab.hosts import hosts
from tests.hosts.simulators import lab
from tests.hosts.simulators.lab import MEDIA, RESULTS

HERE = Path(__file__).parent
MATRIX = tomllib.loads((HERE / "matrix.toml").read_text("utf-8"))
PROFILES = builtin_profiles()


def _row(cells: str) -> list[str]:
    return [cell.strip() for cell in cells.replace("\n", " ").split("|")]


CASES = _row(MATRIX["cases"])

LENGTHS = {252: "png", 248: "png2", 1048: "jpeg", 256: "webp", 5392: "wav", 720: "pdf"}
"""The measured media by the length of its base64 (the small GIF has that of the small PNG)."""


WHOLE = (56_588, 2_003_152, 6_012_612)
"""The large images, where their base64 arrived whole."""


def _cells() -> list[Any]:
    return [
        pytest.param(row["simulator"], case, cell, id=f"{row['host']}-{case}")
        for row in MATRIX["row"]
        for case, cell in zip(CASES, _row(row["cells"]), strict=True)
    ]


def _code(seen: Seen) -> str:
    """What the simulated model got, in the codes of the matrix."""
    if seen.error is not None:
        return "ERR"
    said = [part for part in seen.parts if isinstance(part, SeenText) and part.form != "frame"]
    leaks = [len(run) for text in seen.texts() for run in base64_runs(text)]
    codes: list[str] = []
    if seen.images:
        place = "N" if seen.images[0].where == "in the result" else "U"
        codes.append(place if len(seen.images) == 1 else f"{place}x{len(seen.images)}")
    files = [part for part in seen.parts if isinstance(part, SeenDocument | SeenAudio)]
    codes += [("U" * (part.where == "beside it")) + ("D" if isinstance(part, SeenDocument) else "A") for part in files]
    if leaks:
        codes.append("R" + "+".join(map(str, leaks)))
    if len(seen.text) > 1_000 and not leaks:
        return " ".join([*codes, _of_length(seen)])
    if _is_dump(seen, bool(leaks)):
        codes.append("json")
    if "STRUCTURE" in seen.text:
        codes.append("S")
    if any("PROSE" in part.text for part in said if part.form != "error"):
        codes.append("T")
    if any(part.form == "placeholder" for part in said) and any(part.form != "placeholder" for part in said):
        codes.insert(0, "P")
    return " ".join(codes) or _of_words_alone(seen, said)


def _of_length(seen: Seen) -> str:
    """Long text: how much of it there is; of JSON that is whole, its text alone was counted."""
    try:
        whole = json.loads(seen.text)
    except ValueError:
        return f"T{len(seen.text)}"
    if not isinstance(whole, dict):
        return f"T{len(seen.text)}"
    return f"json T{sum(len(block['text']) for block in whole['content'])}"


def _is_dump(seen: Seen, leaks: bool) -> bool:
    """A whole result in JSON, or a block in JSON that has no base64 in it; Codex puts words of its own before it, so
    that the measurement took it for text."""
    if seen.texts("frame"):
        return False
    return any(text.startswith(('{"content":', "[{")) or not leaks for text in seen.texts("json"))


def _of_words_alone(seen: Seen, said: list[SeenText]) -> str:
    forms = {part.form for part in said}
    if not said:
        return "T" if seen.parts else "∅"
    return {"placeholder": "P", "file": "F"}.get("+".join(sorted(forms)), "T")


def _numbers(code: str) -> tuple[str, list[int]]:
    """A code with its lengths taken out, and the lengths."""
    return re.sub(r"(?<=[RT+])\d+", "#", code), [int(number) for number in re.findall(r"(?<=[RT+])\d+", code)]


def _length_here(measured: int, case: str) -> tuple[int, int]:
    """The length that ours should have, and by how much it may differ: not at all for media that arrives whole, by the
    words around it where something was cut."""
    if measured in LENGTHS:
        return len(MEDIA["gif" if case == "gif" else LENGTHS[measured]]), 0
    if measured in WHOLE:
        return len(RESULTS[case]["content"][0]["data"]), 0
    return measured, {47_984: 40, 8_000: 0, 200_000: 16}.get(measured, 100)


@pytest.mark.parametrize(("host", "case", "cell"), _cells())
def test_a_simulated_host_does_what_the_real_one_did(host: str, case: str, cell: str) -> None:
    seen = SIMULATORS[host].see(RESULTS[case], None)
    codes, lengths = _numbers(_code(seen))
    measured_codes, measured_lengths = _numbers(cell.removesuffix("-text"))
    assert codes == measured_codes
    for length, measured in zip(lengths, measured_lengths, strict=True):
        wanted, slack = _length_here(measured, case)
        assert abs(length - wanted) <= slack


def test_an_unknown_client_is_taken_for_the_openai_agents_sdk() -> None:
    assert SIMULATORS["unknown"].see is SIMULATORS["openai-agents"].see


def test_every_measured_row_has_a_simulator_and_every_simulator_of_a_measured_host_a_row() -> None:
    assert len(MATRIX["row"]) >= 45
    rows = {row["simulator"] for row in MATRIX["row"]}
    assert rows <= set(SIMULATORS)
    without = {host.profile or name for name, host in SIMULATORS.items() if name not in rows}
    measured = {name for name in without if name in PROFILES and _claims_to_be_measured(PROFILES[name])}
    # Others were run by the lab, which compares them with what was found (tests/docs). The first was measured after the
    # matrix, and the lab runs its variant; the second differs from a measured one by a setting.
    run = {api.profile for one in (*hosts(), *frameworks()) for api in one.apis}
    assert measured - run == {"data-designer", "agno-audio"}


def _claims_to_be_measured(profile: Profile) -> bool:
    """Whether a value of the profile's own, or of the host whose variant it is, has evidence of that level."""
    inherited = PROFILES["default"].evidence.values()
    return any(fact.level == "measured" and fact not in inherited for fact in profile.evidence.values())


def test_claude_code_scales_a_12_megapixel_image_as_measured() -> None:
    seen = SIMULATORS["claude-code"].see(RESULTS["dims"], None)
    assert seen.images[0].pixels == (2000, 1500)
    assert "Multiply coordinates by 2.00" in seen.text


def test_an_older_claude_code_does_not_say_where_an_image_is_kept() -> None:
    old, new = (SIMULATORS[name].see(RESULTS["png"], None) for name in ("claude-code-2.1.197", "claude-code"))
    assert old.text == ""
    assert new.text.startswith("[Image: source: ")


def test_opencode_scales_and_re_encodes_as_measured() -> None:
    see = SIMULATORS["opencode"].see
    assert see(RESULTS["dims"], None).images[0].pixels == (2000, 1500)
    assert see(RESULTS["png_2mb"], None).images[0].note is None
    assert see(RESULTS["png_6mb"], None).images[0].note == "the host sends it as a smaller JPEG"


def test_data_designer_writes_what_is_neither_text_nor_image_as_a_python_object() -> None:
    see = SIMULATORS["data-designer"].see
    assert see(RESULTS["res_pdf"], None).base64_leak == len(MEDIA["pdf"])
    assert see(RESULTS["wav"], None).base64_leak == len(MEDIA["wav"])
    assert see(RESULTS["struct_only"], None).parts == ()
    assert len(see(RESULTS["err_text_image"], None).images) == 1
    wrapped = lab.content(lab.image("\n".join((MEDIA["png"][:76], MEDIA["png"][76:]))))
    assert see(wrapped, None).error is not None


@pytest.mark.parametrize(("host", "why"), [("ag2", "BinaryInput"), ("autogen", "cannot identify image file")])
def test_a_broken_image_costs_the_text_beside_it_in_some_frameworks(host: str, why: str) -> None:
    seen = SIMULATORS[host].see(lab.content(lab.text("PROSE"), *RESULTS["badbytes"]["content"]), None)
    assert seen.error is not None
    assert why in seen.error
    assert "PROSE" not in seen.text


def test_autogen_writes_every_image_anew_as_png() -> None:
    (run,) = base64_runs(SIMULATORS["autogen"].see(RESULTS["jpeg"], None).text)
    picture = look(run)
    assert picture is not None
    assert (picture.media_type, picture.pixels) == ("image/png", (24, 16))


def test_crewai_moves_into_a_file_what_has_no_room_in_the_window() -> None:
    seen = SIMULATORS["crewai"].see(lab.content(lab.text("word " * 400_000)), None)
    assert len(seen.text) < 3_000
    assert seen.texts("file") == seen.texts()


def test_agno_reads_structured_content_where_there_is_no_text_and_no_media() -> None:
    see = SIMULATORS["agno"].see
    assert "Falmouth" in see({**RESULTS["struct_only"], "content": [lab.text(" ")]}, None).text
    assert "STRUCTURE" not in see(RESULTS["struct_text_image"], None).text


@pytest.mark.parametrize("host", ["ag2", "ag2-media", "agno", "llama-index"])
def test_some_frameworks_write_a_failed_result_as_python_objects_base64_and_all(host: str) -> None:
    seen = SIMULATORS[host].see(RESULTS["err_text_image"], None)
    assert "TextContent(type='text', text='PROSE: no such harbour', annotations=None, meta=None)" in seen.text
    assert seen.base64_leak == len(MEDIA["png"])


def test_strands_sends_webp_under_a_wrong_type_on_chat_completions() -> None:
    assert SIMULATORS["strands-chat"].see(RESULTS["webp"], None).images[0].media_type == "application/octet-stream"
    assert SIMULATORS["strands"].see(RESULTS["webp"], None).images[0].media_type == "image/webp"


def test_a_link_to_an_image_is_an_image_that_cannot_be_fetched_in_langchain() -> None:
    (image,) = SIMULATORS["langchain"].see(RESULTS["link_png"], None).images
    assert (image.data, image.picture) == ("lab://img/s.png", None)


def test_codex_scales_a_12_megapixel_image_as_measured() -> None:
    assert SIMULATORS["codex"].see(RESULTS["dims"], None).images[0].pixels == (3669, 2752)


def test_codex_leaves_an_image_of_fewer_patches_alone() -> None:
    assert fitted_size(1568, 1176) == (1568, 1176)


@pytest.mark.parametrize(
    "host", ["gemini-cli", "unknown", "qwen-code", "langchain", "pydantic-ai", "strands", "ag2-media", "agno"]
)
def test_some_hosts_leave_a_12_megapixel_image_alone(host: str) -> None:
    assert SIMULATORS[host].see(RESULTS["dims"], None).images[0].pixels == (4000, 3000)


@pytest.mark.parametrize(
    ("host", "sent_as"),
    [
        ("claude-code", "image/png"),
        ("codex", "image/png"),
        ("ai-sdk", "image/png"),
        ("gemini-cli", "image/jpeg"),
        ("unknown", "image/jpeg"),
        ("opencode", "image/jpeg"),
        ("qwen-code", "image/jpeg"),
        ("langchain", "image/jpeg"),
        ("pydantic-ai", "image/jpeg"),
        ("strands", "image/jpeg"),
        ("ag2-media", "image/jpeg"),
        ("agno", "image/jpeg"),
    ],
)
def test_a_wrong_media_type_is_mended_by_some_hosts_only(host: str, sent_as: str) -> None:
    image = SIMULATORS[host].see(RESULTS["badmime"], None).images[0]
    assert image.media_type == sent_as
    assert (image.picture is not None) == (sent_as == "image/png")


PROMISE = {"name": "give", "outputSchema": {"type": "object"}}


@pytest.mark.parametrize(
    "host",
    [
        *("claude-code", "gemini-cli", "unknown", "openai-agents-chat", "langchain", "pydantic-ai", "google-adk"),
        *("crewai", "crewai-adapter", "autogen", "autogen-tools", "ag2", "ag2-media", "llama-index", "agno"),
    ],
)
def test_an_output_schema_without_structured_content_fails_the_call(host: str) -> None:
    seen = SIMULATORS[host].see(RESULTS["png"], PROMISE)
    assert seen.error is not None
    assert seen.images == ()


@pytest.mark.parametrize("host", ["codex", "ai-sdk", "ai-sdk-google-3"])
def test_some_tolerate_an_output_schema_without_structured_content(host: str) -> None:
    assert len(SIMULATORS[host].see(RESULTS["png"], PROMISE).images) == 1


def test_an_error_may_lack_the_structured_content_that_the_schema_promises() -> None:
    tool = {"name": "give", "outputSchema": {"type": "object"}}
    seen = SIMULATORS["claude-code"].see(RESULTS["err_text_image"], tool)
    assert (seen.error, seen.flagged) == (None, True)


def test_claude_code_shows_long_text_whole_beside_an_image_or_where_the_tool_allows_it() -> None:
    see = SIMULATORS["claude-code"].see
    long = RESULTS["text_200k"]["content"][0]
    assert len(see(lab.content(long, lab.image(MEDIA["png"])), None).text) > 200_000
    assert len(see(RESULTS["text_200k"], {"_meta": {"anthropic/maxResultSizeChars": 500_000}}).text) == 200_000
    assert len(see(lab.content(lab.text("word " * 9_000)), None).text) == 45_000


def test_gemini_cli_shows_long_text_whole_beside_an_image_only() -> None:
    see = SIMULATORS["gemini-cli"].see
    long = RESULTS["text_200k"]["content"][0]
    assert len(see(lab.content(long, lab.image(MEDIA["png"])), None).text) > 200_000
    assert "omitted" not in see(lab.content(lab.text("word " * 4_000)), None).text


@pytest.mark.parametrize(("host", "words"), [("opencode", "bytes truncated"), ("qwen-code", "has been saved to")])
def test_some_hosts_cut_long_text_also_beside_an_image(host: str, words: str) -> None:
    see = SIMULATORS[host].see
    seen = see(lab.content(lab.text("word " * 20_000), lab.image(MEDIA["png"])), None)
    assert words in seen.text
    assert len(seen.images) == 1
    assert see(lab.content(lab.text("word " * 4_000)), None).text == "word " * 4_000


def test_codex_cuts_long_text_also_beside_an_image_and_keeps_head_and_tail() -> None:
    long = "first " + "word " * 20_000 + " last"
    seen = SIMULATORS["codex"].see(lab.content(lab.text(long), lab.image(MEDIA["png"]), lab.text("after")), None)
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
    ("host", "kept"),
    [
        *(
            (name, True)
            for name in ("claude-code", "codex", "unknown", "langchain", "pydantic-ai", "strands", "ai-sdk")
        ),
        ("ag2-media", True),
        ("agno", False),
        *((name, False) for name in ("gemini-cli", "opencode", "qwen-code", "strands-chat", "ai-sdk-google-3")),
    ],
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
    seen = SIMULATORS[host].see({"content": [lab.text("PROSE"), block]}, None)
    assert seen.error is not None
    assert "PROSE" not in seen.text
