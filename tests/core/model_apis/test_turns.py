"""One turn, every model API: the official SDKs' own types accept it, nothing is lost, and nothing is base64 text."""

import base64
import io
import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image

from gateway.config.builtin_profiles import load_builtin_models, model_profiles
from gateway.content.shaping.turns import LoweredTurn, lower_turn, lower_turn_now
from gateway.core.results.lift_result import lift
from gateway.errors import InvalidRequest, ProfileError, UnsupportedContent
from tests.core.model_apis import sdk_types

pytestmark = pytest.mark.anyio
GOLDEN = Path(__file__).parent / "golden"
TARGETS = sorted(model_profiles())
SDK = vars(sdk_types)


def picture(image_format: str, size: tuple[int, int] = (40, 30), colour: str = "red") -> str:
    buffer = io.BytesIO()
    Image.new("RGB", size, colour).save(buffer, image_format)
    return base64.b64encode(buffer.getvalue()).decode()


PNG, GIF, WEBP = picture("PNG"), picture("GIF", colour="blue"), picture("WEBP")
SVG = base64.b64encode(
    b'<svg xmlns="http://www.w3.org/2000/svg" width="60" height="40"><path d="M0 0h9v9z"/></svg>'
).decode()
WAV = base64.b64encode(b"RIFF\x64\0\0\0WAVEfmt " + bytes(100)).decode()
PDF = base64.b64encode(b"%PDF-1.4\n" + bytes(100)).decode()
MP4 = base64.b64encode(b"\0\0\0\x18ftypisom" + bytes(100)).decode()


def text(words: str) -> dict[str, Any]:
    return {"type": "text", "text": words}


def image(data: str = PNG, media_type: str = "image/png") -> dict[str, Any]:
    return {"type": "image", "data": data, "mimeType": media_type}


def blob(data: str, uri: str, media_type: str) -> dict[str, Any]:
    return {"type": "resource", "resource": {"uri": uri, "blob": data, "mimeType": media_type}}


def call(result: dict[str, Any], number: int = 0) -> dict[str, Any]:
    return {"id": f"call_{number}", "name": f"tool_{number}", "arguments": {}, "result": result}


CASES: dict[str, list[dict[str, Any]]] = {
    "text": [{"content": [text("just words")]}],
    "png": [{"content": [image()]}],
    "text_image_twice": [{"content": [text("a"), image(), text("b"), image(WEBP, "image/webp")]}],
    "gif": [{"content": [image(GIF, "image/gif")]}],
    "svg": [{"content": [text("a drawing"), image(SVG, "image/svg+xml")]}],
    "audio": [{"content": [{"type": "audio", "data": WAV, "mimeType": "audio/x-wav"}]}],
    "pdf": [{"content": [blob(PDF, "docs://q3/final_report.v2.pdf", "application/pdf")]}],
    "video": [{"content": [blob(MP4, "clips://one.mp4", "video/mp4")]}],
    "embedded_text": [{"content": [{"type": "resource", "resource": {"uri": "a://b", "text": "hello"}}]}],
    "embedded_image": [{"content": [blob(PNG, "shots://1.png", "application/octet-stream")]}],
    "link": [{"content": [{"type": "resource_link", "uri": "a://b", "name": "b", "mimeType": "image/png"}]}],
    "structured_alone": [{"content": [], "structuredContent": {"a": [1, 2]}}],
    "structured_and_image": [{"content": [image()], "structuredContent": {"a": 1, "copy": PNG}}],
    "error": [{"content": [text("it broke")], "isError": True}],
    "error_and_image": [{"content": [text("it broke"), image()], "isError": True}],
    "error_image_alone": [{"content": [image()], "isError": True}],
    "error_empty": [{"content": [], "isError": True}],
    "empty": [{"content": []}],
    "empty_text": [{"content": [text(""), image(), text("   ")]}],
    "unknown_blob": [{"content": [blob(base64.b64encode(b"\0\1\2" * 50).decode(), "x://y", "application/x-thing")]}],
    "unknown_block": [{"content": [{"type": "hologram"}, text("after")]}],
    "data_uri": [{"content": [text(f"see ![x](data:image/png;base64,{PNG}) here")]}],
    "mislabelled": [{"content": [image(PNG, "image/jpg")]}],
    "newlines": [{"content": [image("\n".join([PNG[:60], PNG[60:].rstrip("=")]))]}],
    "broken": [{"content": [image("no base64!"), text("after")]}],
    "parallel": [
        {"content": [image()]},
        {"content": [text("second")]},
        {"content": [text("third"), image(GIF, "image/gif")]},
    ],
    "parallel_errors": [{"content": [image()], "isError": True}, {"content": [image(WEBP)]}],
    "twenty_five_images": [{"content": [image(picture("PNG", (8 + number, 8))) for number in range(25)]}],
    "six_documents": [{"content": [blob(PDF, f"docs://{number}.pdf", "application/pdf") for number in range(6)]}],
}


async def lowered(name: str, target: str) -> LoweredTurn:
    return await lower_turn([call(result, number) for number, result in enumerate(CASES[name])], target)


VALIDATORS: dict[str, Callable[[list[Any]], None]] = SDK["VALIDATORS"]
openai_chat: Callable[[list[Any]], None] = SDK["openai_chat"]


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("name", CASES)
async def test_every_case_is_valid_and_complete_on_every_api(name: str, target: str) -> None:
    turn = await lowered(name, target)
    VALIDATORS.get(target, openai_chat)(turn.messages)
    assert_whole(turn, CASES[name], target)


def strings(value: Any, key: str = "") -> list[tuple[str, str]]:
    if isinstance(value, dict):
        return [found for name, item in value.items() for found in strings(item, name)]
    if isinstance(value, list):
        return [found for item in value for found in strings(item, key)]
    return [(key, value)] if isinstance(value, str) else []


CARRIERS = frozenset({"data", "url", "image_url", "file_data", "bytes", "images", "input_audio", "document_url"})


def assert_whole(turn: LoweredTurn, results: list[dict[str, Any]], target: str) -> None:
    """Each piece of media is there as media, or named in a note; no text holds base64, and none is empty."""
    found = strings(turn.messages)
    texts = [value for key, value in found if key not in CARRIERS]
    assert not any(re.search(r"[A-Za-z0-9+/]{200}", value) for value in texts), "base64 as text"
    media = sum(key in CARRIERS for key, _ in found)
    named = sum(note.kind in ("named", "dropped") for note in turn.notes)
    wanted = sum(len(lift(result).blocks) - _texts(result) for result in results)
    assert media + named >= wanted, f"{target}: {media} shown, {named} named of {wanted}"


def _texts(result: dict[str, Any]) -> int:
    kept = ("text", "resource_link")
    return sum(block.get("type") in kept or "text" in block.get("resource", {}) for block in result.get("content", []))


@pytest.mark.parametrize("target", TARGETS)
async def test_one_turn_is_written_for_each_api_as_written_down(
    target: str, golden: Callable[[Path, str], None]
) -> None:
    results = [
        {"content": [text("The chart:"), image(), text("and a photo:"), image(WEBP, "image/webp")]},
        {"content": [text("Row 7 is out of range."), image(GIF, "image/gif")], "isError": True},
        {
            "content": [
                blob(PDF, "docs://report.pdf", "application/pdf"),
                {"type": "audio", "data": WAV, "mimeType": "audio/wav"},
                blob(MP4, "clips://one.mp4", "video/mp4"),
            ],
            "structuredContent": {"pages": 3},
        },
    ]
    turn = await lower_turn([call(result, number) for number, result in enumerate(results)], target)
    known = {PNG: "<base64 PNG>", GIF: "<base64 GIF>", WEBP: "<base64 WebP>", PDF: "<base64 PDF>", WAV: "<base64 WAV>"}
    written = json.dumps({"messages": turn.messages, "notes": [note.text for note in turn.notes]}, indent=2)
    for data, short in {**known, MP4: "<base64 MP4>"}.items():
        written = written.replace(data, short)
    written = re.sub(r"[A-Za-z0-9+/]{80,}=*", "<base64 of a converted image>", written)
    golden(GOLDEN / f"{target}.json", written + "\n")


# -- choices and errors -----------------------------------------------------------------------------


def test_the_model_and_the_address_choose_the_profile() -> None:
    calls = [call({"content": [image()]})]
    assert "parts" in lower_turn_now(calls, "gemini", model="gemini-3-pro").messages[0]["parts"][0]["functionResponse"]
    older = lower_turn_now(calls, "gemini", model="gemini-2.5-flash").messages[0]["parts"]
    assert "parts" not in older[0]["functionResponse"]
    assert "inlineData" in older[-1]
    audio = [call({"content": [{"type": "audio", "data": WAV, "mimeType": "audio/wav"}]})]
    assert len(lower_turn_now(audio, "openai_chat").messages) == 2
    assert len(lower_turn_now(audio, "openai_chat", base_url="https://api.deepseek.com/v1").messages) == 1


def test_an_unknown_api_names_the_nearest() -> None:
    with pytest.raises(ProfileError, match="anthropic_messages"):
        lower_turn_now([], "anthropic_message")


async def test_what_an_api_cannot_take_can_be_an_error() -> None:
    calls = [call({"content": [{"type": "audio", "data": WAV, "mimeType": "audio/wav"}]})]
    with pytest.raises(UnsupportedContent, match="audio"):
        await lower_turn(calls, "openai_responses", on_unsupported="error")
    await lower_turn(calls, "openai_chat", on_unsupported="error")


@pytest.mark.parametrize(
    "broken",
    [{}, {"id": 5, "name": "x", "result": {}}, {"id": "a", "name": "b"}, {"id": "a", "name": "b", "result": 7}],
)
def test_a_call_without_its_parts_is_refused(broken: dict[str, Any]) -> None:
    with pytest.raises(InvalidRequest):
        lower_turn_now([broken], "openai_chat")


async def test_results_may_be_envelopes_and_objects_of_the_sdk() -> None:
    from mcp_types import CallToolResult, ImageContent

    class Made:
        id, name = "call_0", "tool_0"
        result = CallToolResult(content=[ImageContent(type="image", data=PNG, mime_type="image/png")])

    expected = await lowered("png", "openai_chat")
    assert (await lower_turn([Made()], "openai_chat")).messages == expected.messages
    as_envelope = {"id": "call_0", "name": "tool_0", "result": lift(CASES["png"][0])}
    assert lower_turn_now([as_envelope], "openai_chat").messages == expected.messages


def test_without_effects_an_image_that_would_be_converted_is_named() -> None:
    turn = lower_turn_now([call(CASES["svg"][0])], "anthropic_messages")
    (block,) = turn.messages[0]["content"][0]["content"][1:]
    assert block["text"].startswith("[image 1: image/svg+xml, 60x40")


async def test_text_only_results_stay_what_they_were() -> None:
    for target in ("openai_chat", "openai_responses", "mistral", "cohere", "ollama"):
        (message,) = (await lowered("text", target)).messages
        assert "just words" in message.values()


def test_every_value_of_a_model_profile_has_its_evidence() -> None:
    for name, source in load_builtin_models().items():
        assert not source.sets, name
        assert source.fact, name
        assert all(fact.source.strip() for fact in source.fact), name


BLOCKS = st.sampled_from(
    [block for results in CASES.values() for result in results for block in result["content"]][:40]
)


@settings(max_examples=60, deadline=None)
@given(st.lists(st.lists(BLOCKS, max_size=4), min_size=1, max_size=3), st.booleans(), st.sampled_from(TARGETS))
def test_no_turn_raises_and_every_call_is_answered(contents: list[Any], is_error: bool, target: str) -> None:
    calls = [call({"content": content, "isError": is_error}, number) for number, content in enumerate(contents)]
    turn = lower_turn_now(calls, target)
    assert lower_turn_now(calls, target) == turn
    written = json.dumps(turn.messages)
    assert all(f"call_{number}" in written or f"tool_{number}" in written for number in range(len(calls)))
    VALIDATORS.get(target, openai_chat)(turn.messages)


def test_the_openai_view_keeps_order_and_names_what_is_no_picture() -> None:
    import gateway

    result = {
        "content": [
            text("a"),
            image(PNG, "application/octet-stream"),
            text("b"),
            {"type": "audio", "data": WAV, "mimeType": "audio/wav"},
            {"type": "resource", "resource": {"uri": "a://b", "text": "hello"}},
            {"type": "resource_link", "uri": "a://c", "name": "c"},
            image("broken!"),
        ]
    }
    assert gateway.openai_view(gateway.lift(result)) == [
        {"type": "text", "text": "a"},
        {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{PNG}"}},
        {"type": "text", "text": "b"},
        {"type": "text", "text": "[audio: audio/wav, 116 bytes]"},
        {"type": "text", "text": "[resource <a://b>]\nhello"},
        {"type": "text", "text": "[link c <a://c>]"},
        {"type": "text", "text": "[content: it cannot be read]"},
    ]


def test_the_openai_view_of_structured_content_alone_is_its_json() -> None:
    import gateway

    assert gateway.openai_view({"structuredContent": {"rows": 3}}) == [text('{"rows":3}')]
    twin = {"content": [text('{"rows": 3}')], "structuredContent": {"rows": 3}}
    assert gateway.openai_view(twin) == [text('{"rows": 3}')]
    hidden = {"structuredContent": {"image": PNG, "mimeType": "image/png"}}
    assert PNG not in "".join(part.get("text", "") for part in gateway.openai_view(hidden))
    assert [part["type"] for part in gateway.openai_view(hidden)].count("image_url") == 1


def test_the_openai_view_of_a_failed_call_says_so_and_is_never_empty() -> None:
    import gateway

    assert gateway.openai_view({"content": [image(), text("no such row")], "isError": True})[1] == text(
        "ERROR: no such row"
    )
    assert gateway.openai_view({"content": [text("Error: gone")], "isError": True}) == [text("Error: gone")]
    assert gateway.openai_view({"content": [image()], "isError": True})[0]["text"].startswith("ERROR: ")
    assert gateway.openai_view({"content": []}) == [text("[The tool returned no content.]")]


@pytest.mark.parametrize(
    "options",
    [{"on_unsupported": "explode"}, {"links": "natve"}, {"tool_images": "intool"}],
    ids=lambda options: next(iter(options)),
)
async def test_a_choice_that_there_is_not_is_refused_by_its_name(options: dict[str, Any]) -> None:
    ((option, given),) = options.items()
    words = f"{option} cannot be '{given}'.*it is one of"
    with pytest.raises(InvalidRequest, match=words):
        lower_turn_now([call(CASES["png"][0])], "openai_chat", **options)
    with pytest.raises(InvalidRequest, match=words):
        await lower_turn([call(CASES["png"][0])], "openai_chat", **options)


RAW_PNG = base64.b64decode(PNG)


@pytest.mark.parametrize(
    "result",
    [
        {"jsonrpc": "2.0", "id": 1, "result": {"content": [image()]}},
        {"content": [{"type": "image", "data": RAW_PNG, "mimeType": "image/png"}]},
        {"content": [{"type": "image", "data": memoryview(RAW_PNG), "mimeType": "image/png"}]},
        {"content": ({"type": "resource", "resource": {"uri": "a://b", "blob": bytearray(RAW_PNG)}},)},
    ],
    ids=["the response of JSON-RPC", "bytes", "a view of bytes", "a resource as bytes"],
)
def test_a_result_as_programs_have_it_keeps_its_image(result: dict[str, Any]) -> None:
    assert PNG in json.dumps(lower_turn_now([call(result)], "openai_chat").messages)


def test_an_error_of_json_rpc_is_a_failed_call() -> None:
    result = {"jsonrpc": "2.0", "id": 1, "error": {"code": -32602, "message": "Unknown tool"}}
    assert "ERROR: Unknown tool" in str(lower_turn_now([call(result)], "openai_chat").messages)


@pytest.mark.parametrize("content", ["hello", ["hello"]])
def test_content_that_is_a_string_is_text(content: Any) -> None:
    assert "hello" in str(lower_turn_now([call({"content": content})], "openai_chat").messages)
    assert "hello" in str(lower_turn_now([call({"content": content})], "anthropic_messages").messages)


def test_what_json_does_not_have_is_refused_by_its_place() -> None:
    calls = [call(CASES["png"][0]), call({"content": [text("a"), {"type": "image", "data": io.BytesIO()}]}, 1)]
    with pytest.raises(InvalidRequest, match=r"calls\[1\]\.result\.content\[1\]\.data is a BytesIO"):
        lower_turn_now(calls, "openai_chat")
    with pytest.raises(InvalidRequest, match=r"calls\[0\]\.result has to be a CallToolResult, not int"):
        lower_turn_now([call(7)], "openai_chat")  # pyright: ignore[reportArgumentType]


def test_dir_lists_the_public_names() -> None:
    import gateway

    assert {*gateway.__all__, "open"} <= set(dir(gateway))


def test_public_names_are_loaded_when_they_are_used() -> None:
    import subprocess
    import sys

    code = "import sys, gateway; print('pydantic' in sys.modules); gateway.lift; print('mcp' in sys.modules)"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout.split() == ["False", "False"]
    import gateway

    assert all(getattr(gateway, name) for name in gateway.__all__)
    with pytest.raises(AttributeError):
        gateway.no_such_name  # noqa: B018
