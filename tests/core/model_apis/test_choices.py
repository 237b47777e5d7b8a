"""What callers and upstreams may choose: raw shapes, files of a provider, links, where images go, what is lost."""

import base64
import io
from typing import Any

import pytest
from PIL import Image

from gateway.config.builtin_profiles import builtin_profiles, model_profiles
from gateway.content.shaping.turns import LoweredTurn, lower_turn, lower_turn_now
from gateway.core.model.effects import Described
from gateway.core.results.decisions import decide
from gateway.core.results.lift_result import lift
from gateway.core.results.lower_mcp import lower
from gateway.errors import ProfileError, UnsupportedContent
from gateway.testing.model_apis import refusals, seen
from gateway.testing.model_apis.histories import history
from tests.content.media import sound_files
from tests.core.model_apis import cases, sdk_types

pytestmark = pytest.mark.anyio
MADE = vars(cases)
SOUND = vars(sound_files)
SDK = vars(sdk_types)
PNG, SVG, PDF = MADE["PNG"], MADE["SVG"], MADE["PDF"]
text, image, blob, link = MADE["text"], MADE["image"], MADE["blob"], MADE["link"]


def calls(*blocks: dict[str, Any], **rest: Any) -> list[dict[str, Any]]:
    result = {"content": list(blocks), **rest}
    return [{"id": "call00000", "name": "look", "arguments": {}, "result": result}]


def lowered(target: str, *blocks: dict[str, Any], options: dict[str, Any] | None = None, **rest: Any) -> LoweredTurn:
    """The turn, which its API has to accept."""
    made = calls(*blocks, **rest)
    turn = lower_turn_now(made, target, **(options or {}))
    strict = len(turn.messages) > 1 or "image_url" not in str(turn.messages)
    SDK["VALIDATORS"].get(target, SDK["openai_chat" if strict else "lax"])(turn.messages)
    assert refusals(target, history(target, made, turn.messages)) == ()
    return turn


def texts(turn: LoweredTurn) -> str:
    return "\n".join(note.text for note in turn.notes)


# -- one provider's raw shape -----------------------------------------------------------------------

SEARCH = {
    "type": "search_result",
    "source": "https://a.example",
    "title": "A",
    "content": [{"type": "text", "text": "found"}],
}
RAW: dict[str, Any] = {
    "anthropic_messages": [SEARCH],
    "openai_responses": [
        {"type": "input_text", "text": "raw"},
        {"type": "input_image", "image_url": f"data:image/png;base64,{PNG}"},
    ],
    "openai_chat": [{"type": "text", "text": "raw"}],
    "groq": [
        {"type": "text", "text": "raw"},
        {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{PNG}"}},
    ],
    "gemini": {"response": {"rows": [1, 2]}, "parts": [{"inlineData": {"mimeType": "image/png", "data": PNG}}]},
    "gemini_2_5": {"response": {"rows": [1, 2]}},
    "gemini_interactions": [{"type": "text", "text": "raw"}],
    "bedrock_converse": [{"json": {"rows": [1, 2]}}],
    "mistral": [{"type": "text", "text": "raw"}],
    "cohere": [{"type": "document", "document": {"data": {"rows": "1"}}}],
    "ollama": {"content": "raw", "images": [PNG]},
}


def contains(value: Any, wanted: Any) -> bool:
    if value == wanted or (isinstance(wanted, dict) and isinstance(value, dict) and wanted.items() <= value.items()):
        return True
    members = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return any(contains(member, wanted) for member in members)


@pytest.mark.parametrize("target", RAW)
def test_a_provider_s_raw_shape_goes_to_that_provider_as_it_is_and_the_others_fall_back(target: str) -> None:
    turn = lowered(target, text("the default"), image(), _meta={"mcp-gateway/raw": RAW})
    assert contains(turn.messages, RAW[target])
    assert "the default" not in str(turn.messages)
    assert [note.kind for note in turn.notes] == ["raw"]
    only = {name: shape for name, shape in RAW.items() if name != target}
    fallen_back = lowered(target, text("the default"), image(), _meta={"mcp-gateway/raw": only})
    assert fallen_back == lowered(target, text("the default"), image())


@pytest.mark.parametrize(
    ("target", "raw"),
    [
        ("anthropic_messages", "text"),
        ("anthropic_messages", []),
        ("anthropic_messages", [{"type": "tool_result", "tool_use_id": "other", "content": "x"}]),
        ("anthropic_messages", [{"role": "assistant", "content": "I say"}]),
        ("anthropic_messages", [{"type": "text", "text": " "}]),
        ("anthropic_messages", [{"type": "text", "text": "x", "role": "system"}]),
        ("anthropic_messages", [{"type": "text", "text": "x"}] * 101),
        ("anthropic_messages", [{"type": "text", "text": "x" * 20_000_001}]),
        ("anthropic_messages", [{"type": "image"}]),
        ("anthropic_messages", [7]),
        ("openai_chat", [{"type": "image_url", "image_url": {"url": "data:image/png;base64,x"}}]),
        ("openai_chat", [{"role": "user", "content": "smuggled"}]),
        ("bedrock_converse", [{"text": "a", "json": {}}]),
        ("bedrock_converse", [{"toolResult": {"toolUseId": "x"}}]),
        ("bedrock_converse", [{"image": "x"}]),
        ("bedrock_converse", [{"text": " "}]),
        ("gemini", [{"text": "x"}]),
        ("gemini", {"response": "text"}),
        ("gemini", {"response": {}, "id": "other"}),
        ("ollama", {"content": "x", "role": "system"}),
        ("cohere", [{"type": "image_url", "image_url": {"url": "x"}}]),
    ],
)
def test_what_may_not_stand_in_a_tool_s_message_is_not_sent(target: str, raw: Any) -> None:
    turn = lowered(target, text("the default"), _meta={"mcp-gateway/raw": {target: raw}})
    plain = lowered(target, text("the default"))
    assert turn.messages == plain.messages
    assert "is not used" in texts(turn)


def test_a_raw_shape_that_is_nested_too_deeply_is_not_sent() -> None:
    deep: Any = "x"
    for _ in range(5_000):
        deep = [deep]
    raw = {"gemini": {"response": {"deep": deep}}, "mistral": "x"}
    assert "too large or nested" in texts(lowered("gemini", text("a"), _meta={"mcp-gateway/raw": raw}))
    for odd in (7, "anthropic_messages", [RAW]):
        assert "not an object" in texts(lowered("gemini", text("a"), _meta={"mcp-gateway/raw": odd}))


def test_beside_anthropic_s_error_flag_a_raw_shape_is_text_only() -> None:
    told = lowered("anthropic_messages", text("broke"), isError=True, _meta={"mcp-gateway/raw": RAW})
    assert "beside the error flag" in texts(told)
    raw = {"anthropic_messages": [{"type": "text", "text": "my own words"}]}
    assert "my own words" in str(lowered("anthropic_messages", isError=True, _meta={"mcp-gateway/raw": raw}).messages)


def test_a_host_whose_room_is_limited_is_not_sent_raw_shapes() -> None:
    envelope = lift({"content": [text("a")], "_meta": {"mcp-gateway/raw": RAW, "x/y": 1}})
    profiles = builtin_profiles()
    assert lower(envelope, profiles["default"], decide(envelope, profiles["default"], {})).result["_meta"] == {"x/y": 1}
    assert (
        lower(envelope, profiles["passthrough"], decide(envelope, profiles["passthrough"], {})).result["_meta"][
            "mcp-gateway/raw"
        ]
        == RAW
    )


# -- files that a provider keeps, and addresses -----------------------------------------------------

FILES = {
    "openai_chat": ("openai-file:file-abc", "application/pdf", {"type": "file", "file": {"file_id": "file-abc"}}),
    "openai_responses": (
        "openai-file:file-abc",
        "image/png",
        {"type": "input_image", "file_id": "file-abc", "detail": "auto"},
    ),
    "anthropic_messages": (
        "anthropic-file:file_abc",
        "application/pdf",
        {"type": "document", "source": {"type": "file", "file_id": "file_abc"}},
    ),
    "gemini": (
        "gemini-file:files/abc",
        "image/png",
        {
            "fileData": {
                "mimeType": "image/png",
                "fileUri": "https://generativelanguage.googleapis.com/v1beta/files/abc",
            }
        },
    ),
    "mistral": ("mistral-file:0b1c", "application/pdf", {"type": "file", "file_id": "0b1c"}),
}


@pytest.mark.parametrize("target", FILES)
async def test_a_file_that_a_provider_keeps_goes_there_by_its_id(target: str) -> None:
    uri, media_type, wanted = FILES[target]
    turn = await lower_turn(calls(link(uri, mimeType=media_type)), target)
    assert contains(turn.messages, wanted)
    assert "a provider's file" in texts(turn)


async def test_gemini_interactions_gets_a_file_by_its_uri() -> None:
    turn = await lower_turn(calls(link("gemini-file:files/abc", mimeType="video/mp4")), "gemini_interactions")
    uri = "https://generativelanguage.googleapis.com/v1beta/files/abc"
    assert contains(turn.messages, {"type": "video", "mime_type": "video/mp4", "uri": uri})


@pytest.mark.parametrize("target", sorted(model_profiles()))
def test_another_provider_s_file_is_named_and_noted(target: str) -> None:
    foreign = "anthropic-file:file_x" if target != "anthropic_messages" else "openai-file:file-x"
    turn = lowered(target, link(foreign, mimeType="application/pdf"))
    assert foreign in str(turn.messages)
    assert "a provider's file that this API cannot read" in texts(turn)


@pytest.mark.parametrize(
    "uri", ["openai-file:", "openai-file:../../x y", "openai-file:a/b/c", 'openai-file:a"b', "OPENAI-FILE:\x00"]
)
def test_what_is_no_id_is_a_line(uri: str) -> None:
    turn = lowered("openai_responses", link(uri, mimeType="application/pdf"))
    assert "file_id" not in str(turn.messages)


ADDRESSES = {
    "openai_responses": ("https://a.example/x.png", "image/png", {"image_url": "https://a.example/x.png"}),
    "anthropic_messages": (
        "https://a.example/x.pdf",
        "application/pdf",
        {"type": "url", "url": "https://a.example/x.pdf"},
    ),
    "gemini": ("https://a.example/x.png", "image/png", {"fileUri": "https://a.example/x.png"}),
    "gemini_interactions": ("https://a.example/x.mp4", "video/mp4", {"uri": "https://a.example/x.mp4"}),
    "bedrock_converse": ("s3://bucket/x.png", "image/png", {"s3Location": {"uri": "s3://bucket/x.png"}}),
    "mistral": ("https://a.example/x.png", "image/png", {"url": "https://a.example/x.png"}),
    "vllm": ("https://a.example/x.png", "image/png", {"url": "https://a.example/x.png"}),
}


@pytest.mark.parametrize("target", sorted(model_profiles()))
def test_an_address_is_handed_on_only_where_the_caller_asks_for_it(target: str) -> None:
    uri, media_type, wanted = ADDRESSES.get(target, ("https://a.example/x.png", "image/png", {}))
    block = link(uri, mimeType=media_type)
    as_text = lower_turn_now(calls(block), target)
    native = lower_turn_now(calls(block), target, links="native")
    assert uri in str(as_text.messages)
    if not wanted:
        assert native == as_text
        return
    assert not contains(as_text.messages, wanted)
    assert contains(native.messages, wanted)
    for odd in (link(uri), link(uri, mimeType="image/x-odd"), link(f"{uri} x", mimeType=media_type)):
        assert not contains(lower_turn_now(calls(odd), target, links="native").messages, wanted)


# -- where images go, and who sees them -------------------------------------------------------------


def in_tool(turn: LoweredTurn) -> bool:
    return len(turn.messages) == 1


@pytest.mark.parametrize("target", ["vllm", "llama_cpp"])
def test_images_go_into_the_tool_s_message_where_the_model_is_known_to_see_them_there(target: str) -> None:
    assert not in_tool(lowered(target, image()))
    assert not in_tool(lowered(target, image(), options={"model": "moonshotai/Kimi-K2.5"}))
    assert in_tool(lowered(target, image(), options={"model": "Qwen/Qwen3.5-35B-A3B"}))
    assert in_tool(lowered(target, image(), options={"tool_images": "in_tool"}))
    chosen = {"model": "qwen3.5", "tool_images": "follow_up"}
    assert not in_tool(lowered(target, image(), options=chosen))


def test_images_follow_a_reply_of_the_assistant_where_roles_have_to_alternate() -> None:
    turn = lowered("vllm", image(), options={"model": "mistralai/Ministral-3-8B-Instruct-2512"})
    assert [message["role"] for message in turn.messages] == ["tool", "assistant", "user"]
    assert turn.messages[1] == {"role": "assistant", "content": "[The images of these results follow.]"}
    assert len(lowered("vllm", text("no image"), options={"tool_images": "after_reply"}).messages) == 1
    turn = lowered("ollama", image(), options={"tool_images": "after_reply"})
    assert [message["role"] for message in turn.messages] == ["tool", "assistant", "user"]


@pytest.mark.parametrize("model", ["Ministral-3-3B-Instruct-2512-GGUF", "ministral-3", "devstral-small-2:24b-q4"])
def test_each_server_of_these_models_has_a_place_of_its_own(model: str) -> None:
    assert in_tool(lowered("llama_cpp", image(), options={"model": f"/models/unsloth_{model}"}))
    assert not in_tool(lowered("openai_chat", image(), options={"model": model}))


@pytest.mark.parametrize("model", ["ministral-3b-2410", "devstral-small-2507", "mistral-small-3.2"])
def test_older_models_of_the_same_names_are_not_meant(model: str) -> None:
    for target in ("llama_cpp", "vllm"):
        assert [one["role"] for one in lowered(target, image(), options={"model": model}).messages] == ["tool", "user"]


def test_ollama_s_images_follow_where_the_caller_says_so() -> None:
    turn = lowered("ollama", image(), options={"tool_images": "follow_up"})
    assert [message["role"] for message in turn.messages] == ["tool", "user"]
    assert turn.messages[1]["images"] == [PNG]


@pytest.mark.parametrize("target", ["anthropic_messages", "gemini", "cohere", "openai_responses"])
def test_an_api_that_leaves_no_choice_says_so(target: str) -> None:
    with pytest.raises(ProfileError, match="does not let you choose"):
        lower_turn_now(calls(image()), target, tool_images="follow_up")


@pytest.mark.parametrize(
    ("target", "model"),
    [
        ("openai_chat", "gpt-3.5-turbo-0125"),
        ("openrouter", "openai/gpt-3.5-turbo"),
        ("openai_responses", "o3-mini"),
        ("anthropic_messages", "claude-2.1"),
        ("bedrock_converse", "us.amazon.nova-micro-v1:0"),
        ("cohere", "command-r-plus-08-2024"),
        ("deepseek", "deepseek-chat"),
        ("groq", "llama-3.3-70b-versatile"),
        ("groq", "openai/gpt-oss-120b"),
    ],
)
def test_a_model_without_vision_gets_lines(target: str, model: str) -> None:
    made = calls(image())
    turn = lowered(target, image(), options={"model": model})
    assert seen(target, history(target, made, turn.messages)) == ()
    assert "[image 1: image/png, 40x30" in str(turn.messages)
    assert "as a line" in texts(turn)
    assert len(seen(target, history(target, made, lowered(target, image()).messages))) == 1


# -- what is unsupported ----------------------------------------------------------------------------


def drawn_pdf() -> str:
    buffer = io.BytesIO()
    Image.new("RGB", (60, 80), "red").save(buffer, "PDF")
    return base64.b64encode(buffer.getvalue()).decode()


async def test_a_document_that_an_api_takes_not_is_its_pages_where_transcoding_is_chosen() -> None:
    made = calls(blob(drawn_pdf(), "doc://scan.pdf", "application/pdf"))
    noted = await lower_turn(made, "groq")
    assert "image_url" not in str(noted.messages)
    transcoded = await lower_turn(made, "groq", on_unsupported="transcode")
    assert "page 1 of 1 of doc://scan.pdf" in str(transcoded.messages)
    assert str(transcoded.messages).count("data:image/") == 1
    assert refusals("groq", history("groq", made, transcoded.messages)) == ()


async def test_sound_of_a_type_that_an_api_takes_not_is_converted() -> None:
    flac = base64.b64encode(SOUND["encoded"]("audio/flac", 1.0)).decode()
    made = calls({"type": "audio", "data": flac, "mimeType": "audio/flac"})
    turn = await lower_turn(made, "openai_chat", model="gpt-audio")
    assert "'format': 'wav'" in str(turn.messages)
    assert "audio/flac to audio/wav" in texts(turn)


class Eyes:
    kinds = ("image",)

    async def describe(self, content: bytes, media_type: str) -> Described:
        return Described("A dot.", "eyes")


async def test_a_model_that_sees_no_images_is_told_what_they_show() -> None:
    made = calls(image())
    turn = await lower_turn(made, "openai_chat", model="gpt-3.5-turbo", describer=Eyes())
    assert "[image 1, described by eyes (image/png, 40x30" in str(turn.messages)
    seeing = await lower_turn(made, "openai_chat", describer=Eyes())
    assert "described" not in str(seeing.messages)


async def test_a_drawing_that_cannot_be_an_image_is_its_source_where_transcoding_is_chosen() -> None:
    made = calls(image(SVG, "image/svg+xml"))
    blind: dict[str, Any] = {"model": "gpt-3.5-turbo"}
    assert "<svg" not in str((await lower_turn(made, "openai_chat", **blind)).messages)
    transcoded = await lower_turn(made, "openai_chat", on_unsupported="transcode", **blind)
    assert "<svg" in str(transcoded.messages)
    assert "image/svg+xml read as text" in texts(transcoded)
    assert "<svg" in str(lower_turn_now(made, "openai_chat", on_unsupported="transcode").messages)
    drawn = await lower_turn(made, "openai_chat", on_unsupported="transcode")
    assert "image_url" in str(drawn.messages)
    assert "<svg" not in str(drawn.messages)
    with pytest.raises(UnsupportedContent):
        await lower_turn(made, "openai_chat", on_unsupported="error", **blind)


@pytest.mark.parametrize("target", sorted(model_profiles()))
def test_a_failure_of_blanks_says_that_it_says_nothing(target: str) -> None:
    turn = lowered(target, text(" "), isError=True)
    assert "The tool failed without saying why." in str(turn.messages)


@pytest.mark.parametrize("target", sorted(model_profiles()))
def test_office_documents_go_where_they_are_taken(target: str) -> None:
    docx = "application/vnd.openxmlformats-officedocument.wordprocessingml.document"
    made = calls(blob(MADE["encoded"](b"PK\x03\x04" + bytes(60)), "files://plan.docx", docx))
    turn = lower_turn_now(made, target)
    request = history(target, made, turn.messages)
    assert refusals(target, request) == ()
    if target in ("bedrock_converse", "gemini_interactions"):
        assert [one.kind for one in seen(target, request)] == ["document"]
    else:
        assert f"[document 1: files://plan.docx, {docx}" in str(turn.messages)


@pytest.mark.parametrize(
    ("content", "media_type", "is_text"),
    [
        (b"a,b\n1,2\n", "text/csv", True),
        ('{"ü": 1}'.encode(), "application/json", True),
        (b"<a/>", "application/vnd.thing+xml", True),
        (b"\xff\xfe\x00", "text/plain", False),
        (b"nul\0", "text/plain", False),
        (b"x" * 400_001, "text/plain", False),
        (b"a,b", "application/x-thing", False),
    ],
)
def test_a_file_of_text_is_text(content: bytes, media_type: str, is_text: bool) -> None:
    turn = lowered("cohere", blob(MADE["encoded"](content), "files://1", media_type))
    assert ("[document 1: files://1" in str(turn.messages)) != is_text
    assert not is_text or content.decode().splitlines()[0] in turn.messages[0]["content"]
