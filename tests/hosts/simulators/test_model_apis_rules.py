"""The stand-ins of the model APIs: for each rule one request that is accepted, and one that is refused."""

import base64
import copy
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

from gateway.testing.model_apis import APIS, refusals, seen
from gateway.testing.model_apis.histories import history

GOLDEN = Path(__file__).parents[2] / "core" / "model_apis" / "golden"
Change = Callable[[dict[str, Any]], None]


def picture(image_format: str, size: tuple[int, int] = (40, 30)) -> str:
    buffer = io.BytesIO()
    Image.new("RGB", size, "red").save(buffer, image_format)
    return base64.b64encode(buffer.getvalue()).decode()


PNG, GIF, WEBP, JPEG = (picture(name) for name in ("PNG", "GIF", "WEBP", "JPEG"))
SVG = base64.b64encode(b'<svg xmlns="http://www.w3.org/2000/svg" width="6" height="4"/>').decode()
WAV = base64.b64encode(b"RIFF\x64\0\0\0WAVEfmt " + bytes(100)).decode()
PDF = base64.b64encode(b"%PDF-1.4\n" + bytes(range(256))).decode()
MP4 = base64.b64encode(b"\0\0\0\x18ftypisom" + bytes(100)).decode()
HEAVY = base64.b64encode(base64.b64decode(PNG) + bytes(3_600_000)).decode()
NAMES = {"PNG": PNG, "GIF": GIF, "WebP": WEBP, "WAV": WAV, "PDF": PDF, "MP4": MP4, "of a converted image": PNG}

# Nine letters and digits are an id that every API accepts; Mistral accepts no other.
ID = "call{:05d}"


def uri(data: str = PNG, media_type: str = "image/png") -> str:
    return f"data:{media_type};base64,{data}"


def calls(count: int = 1) -> list[dict[str, Any]]:
    return [{"id": ID.format(number), "name": f"tool_{number}"} for number in range(count)]


def chat_image(url: str | None = None) -> dict[str, Any]:
    return {"type": "image_url", "image_url": {"url": url or uri()}}


def tool(content: Any = "done", number: int = 0) -> dict[str, Any]:
    return {"role": "tool", "tool_call_id": ID.format(number), "content": content}


def user(*parts: dict[str, Any]) -> dict[str, Any]:
    return {"role": "user", "content": list(parts)}


def chat(*messages: dict[str, Any], count: int = 1, api: str = "openai_chat", **more: Any) -> dict[str, Any]:
    return {**history(api, calls(count), messages), **more}


def output(*parts: dict[str, Any], call_id: str | None = None) -> dict[str, Any]:
    return {"type": "function_call_output", "call_id": call_id or ID.format(0), "output": list(parts) or "done"}


def responses(*items: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {**history("openai_responses", calls(), items), **more}


def block(data: str = PNG, media_type: str = "image/png") -> dict[str, Any]:
    return {"type": "image", "source": {"type": "base64", "media_type": media_type, "data": data}}


def text(words: str = "done") -> dict[str, Any]:
    return {"type": "text", "text": words}


def result(*content: Any, number: int = 0, **more: Any) -> dict[str, Any]:
    return {"type": "tool_result", "tool_use_id": ID.format(number), "content": list(content), **more}


def anthropic(*blocks: dict[str, Any], count: int = 1, **more: Any) -> dict[str, Any]:
    return {**history("anthropic_messages", calls(count), [{"role": "user", "content": list(blocks)}]), **more}


def response(number: int = 0, parts: list[Any] | None = None, **more: Any) -> dict[str, Any]:
    held = {"parts": parts} if parts is not None else {}
    given = {"id": ID.format(number), "name": f"tool_{number}", "response": {"output": "done"}, **held, **more}
    return {"functionResponse": given}


def inline(data: str = PNG, media_type: str = "image/png") -> dict[str, Any]:
    return {"inlineData": {"mimeType": media_type, "data": data}}


def gemini(*parts: dict[str, Any], count: int = 1, **more: Any) -> dict[str, Any]:
    return {**history("gemini", calls(count), [{"role": "user", "parts": list(parts)}]), **more}


def spoken_between(text: str) -> dict[str, Any]:
    """The model says this, in a content by itself, before its call is answered."""
    request = gemini(response())
    said = {"role": "model", "parts": [{"text": text}]}
    return {**request, "contents": [*request["contents"][:-1], said, request["contents"][-1]]}


def unsigned(request: dict[str, Any]) -> dict[str, Any]:
    for part in request["contents"][1]["parts"]:
        part.pop("thoughtSignature", None)
    return request


def step(held: Any, call_id: str | None = None) -> dict[str, Any]:
    return {"type": "function_result", "call_id": call_id or ID.format(0), "name": "tool_0", "result": held}


def interaction(*steps: dict[str, Any]) -> dict[str, Any]:
    return history("gemini_interactions", calls(), steps)


def content(kind: str, media_type: str, data: str = PNG) -> dict[str, Any]:
    return {"type": kind, "mime_type": media_type, "data": data}


def shown(kind: str, file_format: str, data: str = PNG, **more: Any) -> dict[str, Any]:
    return {kind: {"format": file_format, "source": {"bytes": data}, **more}}


def bedrock(*held: dict[str, Any], status: str = "success", tool_id: str | None = None, **more: Any) -> dict[str, Any]:
    outcome = {"toolUseId": tool_id or ID.format(0), "status": status, "content": list(held)}
    made = [{**call, "id": tool_id or call["id"]} for call in calls()]
    return {**history("bedrock_converse", made, [{"role": "user", "content": [{"toolResult": outcome}]}]), **more}


def ollama(**message: Any) -> dict[str, Any]:
    return history("ollama", calls(), [{"role": "tool", "tool_name": "tool_0", "content": "done", **message}])


def documents(count: int) -> list[dict[str, Any]]:
    return [shown("document", "pdf", PDF, name=f"page {number}") for number in range(count)]


def strict(parameters: dict[str, Any], api: str = "openai_chat") -> dict[str, Any]:
    function = {"name": "f", "strict": True, "parameters": parameters}
    if api == "openai_responses":
        return responses(output(), tools=[{"type": "function", **function}])
    return chat(tool(), tools=[{"type": "function", "function": function}])


def closed(named: dict[str, Any], **more: Any) -> dict[str, Any]:
    """An object as strict mode wants it."""
    return {
        "type": "object",
        "properties": named,
        "required": list(named),
        "additionalProperties": False,
        **more,
    }


def nested(levels: int) -> dict[str, Any]:
    return closed({"a": nested(levels - 1)}) if levels > 1 else closed({"a": NULLABLE})


NULLABLE = {"type": ["string", "null"]}
DEEP = closed({"a": {"type": "array", "items": closed({"b": {"$ref": "#/$defs/c"}})}}, **{"$defs": {"c": NULLABLE}})


def called(name: str, api: str = "openai_chat", answer: Any = None) -> dict[str, Any]:
    return history(api, [{"id": ID.format(0), "name": name}], [answer or tool()])


# (api, rule): what is accepted, what is refused, and a word of why
RULES: dict[tuple[str, str], tuple[dict[str, Any], dict[str, Any], str]] = {
    ("openai_chat", "no image on a tool message"): (
        chat(tool(), user(chat_image())),
        chat(tool([text(), chat_image()])),
        "only allowed for messages with role 'user'",
    ),
    ("openai_chat", "no sound on a tool message"): (
        chat(tool(), user({"type": "input_audio", "input_audio": {"data": WAV, "format": "wav"}})),
        chat(tool([{"type": "input_audio", "input_audio": {"data": WAV, "format": "wav"}}])),
        "'input_audio' is not allowed",
    ),
    ("openai_chat", "tool messages stand together"): (
        chat(tool(), tool(number=1), user(chat_image()), count=2),
        chat(tool(), user(chat_image()), tool(number=1), count=2),
        "did not have response messages: call00001",
    ),
    ("openai_chat", "every call is answered"): (
        chat(tool(), tool(number=1), count=2),
        chat(tool(), count=2),
        "did not have response messages: call00001",
    ),
    ("openai_chat", "nothing else is answered"): (chat(tool()), chat(tool(), tool(number=7)), "must be a response to"),
    ("openai_chat", "an answer comes once"): (chat(tool()), chat(tool(), tool()), "must be a response to"),
    ("openai_chat", "roles"): (chat(tool()), chat(tool(), {"role": "robot", "content": "x"}), "'robot' is not one of"),
    ("openai_chat", "content is not an empty array"): (chat(tool("")), chat(tool([])), "not empty"),
    ("openai_chat", "an assistant says or calls something"): (
        chat(tool(), {"role": "assistant", "content": "ok"}),
        chat(tool(), {"role": "assistant", "content": None}),
        "got null",
    ),
    ("openai_chat", "whole base64"): (
        chat(tool(), user(chat_image())),
        chat(tool(), user(chat_image(uri(PNG[:40] + "\n" + PNG[40:])))),
        "invalid base64",
    ),
    ("openai_chat", "addresses are data or web"): (
        chat(tool(), user(chat_image("https://example.com/a.png"))),
        chat(tool(), user(chat_image("lab://img/a.png"))),
        "invalid base64",
    ),
    ("openai_chat", "types of images"): (
        chat(tool(), user(chat_image(uri(GIF, "image/gif")))),
        chat(tool(), user(chat_image(uri(PNG, "image/jpg")))),
        "unsupported image",
    ),
    ("openai_chat", "images are images"): (
        chat(tool(), user(chat_image(uri(JPEG, "image/png")))),
        chat(tool(), user(chat_image(uri(SVG, "image/png")))),
        "unsupported image",
    ),
    ("openai_chat", "detail"): (
        chat(tool(), user({"type": "image_url", "image_url": {"url": uri(), "detail": "original"}})),
        chat(tool(), user({"type": "image_url", "image_url": {"url": uri(), "detail": "huge"}})),
        "'huge' is not one of",
    ),
    ("openai_chat", "formats of sound"): (
        chat(tool(), user({"type": "input_audio", "input_audio": {"data": WAV, "format": "mp3"}})),
        chat(tool(), user({"type": "input_audio", "input_audio": {"data": WAV, "format": "flac"}})),
        "'flac' is not one of",
    ),
    ("openai_chat", "kinds of parts"): (
        chat(tool(), user({"type": "file", "file": {"file_data": uri(PDF, "application/pdf")}})),
        chat(tool(), user({"type": "video_url", "video_url": {"url": uri(MP4, "video/mp4")}})),
        "'video_url' is not one of",
    ),
    ("openai_chat", "a file has content"): (
        chat(tool(), user({"type": "file", "file": {"file_id": "file-1"}})),
        chat(tool(), user({"type": "file", "file": {"filename": "a.pdf"}})),
        "file_data or file_id",
    ),
    ("openai_chat", "names of functions"): (called("a-b_1"), called("a.b"), "must match"),
    ("openai_chat", "strict: closed objects"): (
        strict(closed({"a": NULLABLE})),
        strict({"type": "object", "properties": {"a": NULLABLE}, "required": ["a"]}),
        "'additionalProperties' is required to be supplied and to be false",
    ),
    ("openai_chat", "strict: all required"): (
        strict(closed({"a": NULLABLE})),
        strict({**closed({"a": NULLABLE, "b": NULLABLE}), "required": ["a"]}),
        "every key in properties. Missing 'b'",
    ),
    ("openai_chat", "strict: what is required exists"): (
        strict(closed({})),
        strict({**closed({}), "required": ["a"]}),
        "Extra required key 'a'",
    ),
    ("openai_chat", "strict: inside of arrays"): (
        strict(DEEP),
        strict(closed({"a": {"type": "array", "items": {"type": "object", "properties": {}}}})),
        "'additionalProperties' is required",
    ),
    ("openai_chat", "strict: an object at the top"): (
        strict(closed({})),
        strict({"anyOf": [closed({})]}),
        "must not have 'anyOf' at the top level",
    ),
    ("openai_chat", "strict: combinators"): (
        strict(closed({"a": {"anyOf": [NULLABLE, {"type": "integer"}]}})),
        strict(closed({"a": {"oneOf": [NULLABLE, {"type": "integer"}]}})),
        "'oneOf' is not permitted",
    ),
    ("openai_chat", "strict: limits"): (
        strict(closed({"a": {"type": "string", "format": "date"}})),
        strict(closed({"a": {"type": "string", "minLength": 1}})),
        "'minLength' is not permitted",
    ),
    ("openai_chat", "strict: formats"): (
        strict(closed({"a": {"type": "string", "format": "uuid"}})),
        strict(closed({"a": {"type": "string", "format": "uri"}})),
        "'uri' is not a valid format",
    ),
    ("openai_chat", "strict: every value has a type"): (
        strict(closed({"a": {"type": "string", "enum": ["x"]}})),
        strict(closed({"a": {"description": "Anything."}})),
        "must have a 'type' key",
    ),
    ("openai_chat", "strict: items have one too"): (
        strict(closed({"a": {"type": "array", "items": NULLABLE}})),
        strict(closed({"a": {"type": "array"}})),
        "array schema missing items",
    ),
    ("openai_chat", "strict: references lead to definitions"): (
        strict(closed({"a": {"$ref": "#"}, "b": NULLABLE})),
        strict(closed({"a": {"$ref": "#/properties/b"}, "b": NULLABLE})),
        "reference can only point to definitions",
    ),
    ("openai_chat", "strict: references stand alone"): (
        strict(DEEP),
        strict(closed({"a": {"$ref": "#", "description": "x"}})),
        "$ref cannot have keywords",
    ),
    ("openai_chat", "strict: depth"): (strict(nested(10)), strict(nested(11)), "11 levels of nesting"),
    ("openai_chat", "strict: properties"): (
        strict(closed({f"p{number}": NULLABLE for number in range(5_000)})),
        strict(closed({f"p{number}": NULLABLE for number in range(5_001)})),
        "5001 parameters exceed the limit",
    ),
    ("openai_responses", "strict: closed objects"): (
        strict(closed({"a": NULLABLE}), "openai_responses"),
        strict({"type": "object", "properties": {}}, "openai_responses"),
        "'additionalProperties' is required",
    ),
    ("deepseek", "no image on a tool message"): (chat(tool()), chat(tool([chat_image()])), "role 'user'"),
    ("deepseek", "models that know text alone"): (
        chat(tool(), user(chat_image()), model="deepseek-vl"),
        chat(tool(), user(chat_image()), model="deepseek-chat"),
        "unknown variant `image_url`",
    ),
    ("vllm", "the template of Kimi"): (
        chat(tool([chat_image()]), model="qwen3-vl"),
        chat(tool([chat_image()]), model="moonshotai/Kimi-K2.5"),
        "role 'user'",
    ),
    ("vllm", "the assistant speaks before a user"): (
        chat(tool(), {"role": "assistant", "content": "x"}, user(chat_image()), model="ministral-3-8b-instruct-2512"),
        chat(tool(), user(chat_image()), model="ministral-3-8b-instruct-2512"),
        "Unexpected role 'user' after role 'tool'",
    ),
    ("vllm", "the tools of Ministral write"): (
        chat(tool(), model="ministral-3-8b-instruct-2512"),
        chat(tool([chat_image()]), model="ministral-3-8b-instruct-2512"),
        "Unexpected content chunk types in tool message",
    ),
    ("llama_cpp", "the template of Devstral"): (
        chat(tool([chat_image()]), model="devstral-small-2-24b-instruct-2512"),
        chat(tool(), user(chat_image()), model="devstral-small-2-24b-instruct-2512"),
        "must alternate user and assistant",
    ),
    ("vllm", "no files"): (
        chat(tool([{"type": "video_url", "video_url": {"url": uri(MP4, "video/mp4")}}])),
        chat(tool(), user({"type": "file", "file": {"file_data": uri(PDF, "application/pdf")}})),
        "'file' is not one of",
    ),
    ("together", "tool content is text"): (chat(tool("x")), chat(tool([chat_image()])), "role 'user'"),
    ("groq", "no member that it does not know"): (
        chat(tool([text(), chat_image()])),
        chat(tool([{**text(), "id": "1"}])),
        "extra members",
    ),
    ("groq", "documents are JSON"): (
        chat(tool([{"type": "document", "document": {"data": {"a": 1}}}])),
        chat(tool([{"type": "document", "document": {"data": PDF}}])),
        "an object is expected",
    ),
    ("mistral", "nine letters and digits"): (
        history("mistral", calls(), [tool()]),
        history("mistral", [{"id": "call_0", "name": "a"}], [{**tool(), "tool_call_id": "call_0"}]),
        "with a length of 9",
    ),
    ("mistral", "a user does not follow a tool"): (
        chat(tool([chat_image()])),
        chat(tool(), user(chat_image())),
        "Unexpected role 'user' after role 'tool'",
    ),
    ("mistral", "chunks"): (
        chat(tool([{"type": "document_url", "document_url": uri(PDF, "application/pdf")}])),
        chat(tool([{"type": "image", "base64": PNG}])),
        "'image' is not one of",
    ),
    ("mistral", "sound is a plain string"): (
        chat(tool([{"type": "input_audio", "input_audio": WAV}])),
        chat(tool([{"type": "input_audio", "input_audio": {"data": WAV, "format": "wav"}}])),
        "a string is expected",
    ),
    ("mistral", "as many results as calls"): (
        chat(tool(), tool(number=1), count=2),
        chat(tool(), count=2),
        "Not the same number",
    ),
    ("mistral", "the assistant is not last"): (
        chat(tool()),
        chat(tool(), {"role": "assistant", "content": "ok"}),
        "Expected last role",
    ),
    ("mistral", "images are images"): (
        chat(tool([chat_image()])),
        chat(tool([chat_image(uri(SVG, "image/svg+xml"))])),
        "could not be loaded",
    ),
    ("cohere", "tool content is text or JSON"): (
        chat(tool([text(), {"type": "document", "document": {"data": {"a": 1}}}]), user(chat_image())),
        chat(tool([chat_image()])),
        "'image_url' is not one of",
    ),
    ("cohere", "every call is answered"): (chat(tool()), chat(tool(), count=2), "missing tool results"),
    ("ollama", "content is a string"): (ollama(), ollama(content=[text()]), "a string is expected"),
    ("ollama", "images are plain base64"): (ollama(images=[PNG]), ollama(images=[uri()]), "invalid base64"),
    ("ollama", "images that it decodes"): (ollama(images=[WEBP]), ollama(images=[GIF]), "unknown format"),
    ("openai_responses", "outputs without sound"): (
        responses(output({"type": "input_text", "text": "x"}, {"type": "input_image", "image_url": uri()})),
        responses(output({"type": "input_audio", "input_audio": {"data": WAV, "format": "wav"}})),
        "'input_audio' is not one of",
    ),
    ("openai_responses", "the address of an image is a string"): (
        responses(output({"type": "input_image", "image_url": uri(), "detail": "auto"})),
        responses(output({"type": "input_image", "image_url": {"url": uri()}})),
        "a string is expected",
    ),
    ("openai_responses", "an image has content"): (
        responses(output({"type": "input_image", "file_id": "file-1"})),
        responses(output({"type": "input_image"})),
        "is required",
    ),
    ("openai_responses", "every call has an output"): (
        responses(output()),
        responses({"role": "user", "content": "and?"}),
        "No tool output found for function call call00000",
    ),
    ("openai_responses", "every output has a call"): (
        responses(output(), output(call_id="other"), previous_response_id="resp_1"),
        responses(output(), output(call_id="other")),
        "No tool call found for function call output with call_id other",
    ),
    ("openai_responses", "types of images"): (
        responses(output({"type": "input_image", "image_url": uri(WEBP, "image/webp")})),
        responses(output({"type": "input_image", "image_url": uri(SVG, "image/svg+xml")})),
        "unsupported image",
    ),
    ("anthropic_messages", "beside an error only text"): (
        anthropic(result(text(), is_error=True), text("the image:"), block()),
        anthropic(result(text(), block(), is_error=True)),
        "all content must be type `text`",
    ),
    ("anthropic_messages", "an error says something"): (
        anthropic(result()),
        anthropic(result(is_error=True)),
        "content cannot be empty",
    ),
    ("anthropic_messages", "no empty text"): (
        anthropic(result(text(), block())),
        anthropic(result(text(""), block())),
        "must be non-empty",
    ),
    ("anthropic_messages", "no blank text"): (anthropic(result()), anthropic(result(text(" \n"))), "non-whitespace"),
    ("anthropic_messages", "results come first"): (
        anthropic(result(block()), text()),
        anthropic(text(), result(block())),
        "must come before",
    ),
    ("anthropic_messages", "all results in the next message"): (
        anthropic(result(), result(number=1), count=2),
        {**anthropic(result(), count=2), "messages": [*anthropic(result(), count=2)["messages"],
                                                     {"role": "user", "content": [result(number=1)]}]},
        "without `tool_result` blocks immediately after: call00001",
    ),
    ("anthropic_messages", "types of images"): (
        anthropic(result(block(GIF, "image/gif"))),
        anthropic(result(block(SVG, "image/svg+xml"))),
        "'image/svg+xml' is not one of",
    ),
    ("anthropic_messages", "the type is true"): (
        anthropic(result(block(JPEG, "image/jpeg"))),
        anthropic(result(block(JPEG, "image/png"))),
        "does not match the provided media type image/png",
    ),
    ("anthropic_messages", "members"): (
        anthropic(result(block())),
        anthropic(result({**block(), "media_type": "image/png"})),
        "extra members",
    ),
    ("anthropic_messages", "kinds of blocks"): (
        anthropic(result({"type": "document", "title": "a",
                          "source": {"type": "base64", "media_type": "application/pdf", "data": PDF}})),
        anthropic(result({"type": "audio", "source": {"type": "base64", "media_type": "audio/wav", "data": WAV}})),
        "'audio' is not one of",
    ),
    ("anthropic_messages", "a hundred images"): (
        anthropic(result(*[block()] * 100)),
        anthropic(result(*[block()] * 101)),
        "101, at most 100",
    ),
    ("anthropic_messages", "pixels"): (
        anthropic(result(block(picture("PNG", (8_000, 1))))),
        anthropic(result(block(picture("PNG", (8_001, 1))))),
        "exceed 8000 pixels",
    ),
    ("anthropic_messages", "pixels of many images"): (
        anthropic(result(block(picture("PNG", (2_001, 1))), *[block()] * 19)),
        anthropic(result(block(picture("PNG", (2_001, 1))), *[block()] * 20)),
        "exceed 2000 pixels",
    ),
    ("anthropic_messages", "weight"): (
        anthropic(result(block())),
        anthropic(result(block(base64.b64encode(base64.b64decode(PNG) + bytes(4_000_000)).decode()))),
        "exceeds the maximum",
    ),
    ("anthropic_messages", "the size of a request"): (
        anthropic(result(*[block(HEAVY)] * 6)),
        anthropic(result(*[block(HEAVY)] * 7)),
        "Request exceeds the maximum size",
    ),
    ("anthropic_messages", "whole base64"): (
        anthropic(result(block())),
        anthropic(result(block(PNG.rstrip("=") + "\n"))),
        "invalid base64",
    ),
    ("anthropic_messages", "max_tokens"): (
        anthropic(result()),
        {name: value for name, value in anthropic(result()).items() if name != "max_tokens"},
        "max_tokens: it is required",
    ),
    ("anthropic_messages", "ids"): (
        history("anthropic_messages", [{"id": "a-B_1", "name": "x"}],
                [{"role": "user", "content": [{**result(), "tool_use_id": "a-B_1"}]}]),
        history("anthropic_messages", [{"id": "a.b", "name": "x"}],
                [{"role": "user", "content": [{**result(), "tool_use_id": "a.b"}]}]),
        "String should match pattern",
    ),
    ("gemini", "as many responses as calls"): (
        gemini(response(), response(1), count=2),
        gemini(response(), count=2),
        "number of function response parts",
    ),
    ("gemini", "responses at once"): (
        gemini(response()),
        {**gemini(response()), "contents": [*gemini(response())["contents"], {"parts": [response()]}]},
        "immediately after",
    ),
    ("gemini", "nothing is said between"): (
        spoken_between(""),
        spoken_between("Wait."),
        "number of function response parts",
    ),
    ("gemini", "ids"): (gemini(response()), gemini(response(id="other")), "do not match"),
    ("gemini", "names"): (gemini(response()), gemini(response(name="other")), "do not match"),
    ("gemini", "media follows the last response"): (
        gemini(response(), response(1), inline(), count=2),
        gemini(response(), inline(), response(1), count=2),
        "come before",
    ),
    ("gemini", "media types in a response"): (
        gemini(response(parts=[inline(WEBP, "image/webp"), inline(PDF, "application/pdf")])),
        gemini(response(parts=[inline(GIF, "image/gif")])),
        "Unsupported MIME type: image/gif",
    ),
    ("gemini", "media types"): (
        gemini(response(), inline(WAV, "audio/wav"), inline(MP4, "video/mp4"), inline(GIF, "image/gif")),
        gemini(response(), inline(SVG, "image/svg+xml")),
        "Unsupported MIME type: image/svg+xml",
    ),
    ("gemini", "a response is an object"): (
        gemini(response()),
        gemini(response(response=["done"])),
        "an object is expected",
    ),
    ("gemini", "a part is one thing"): (gemini(response()), gemini({**response(), "text": "x"}), "exactly one of"),
    ("gemini", "members"): (gemini(response()), gemini(response(output="x")), "extra members"),
    ("gemini", "whole base64"): (
        gemini(response(parts=[inline()])),
        gemini(response(parts=[inline(uri())])),
        "invalid base64",
    ),
    ("gemini", "either alphabet of base64"): (
        gemini(response(parts=[inline(PDF.translate(str.maketrans("+/", "-_")), "application/pdf")])),
        gemini(response(parts=[inline(PDF.translate(str.maketrans("+/", "*.")), "application/pdf")])),
        "invalid base64",
    ),
    ("gemini", "signatures, from 3 on"): (
        unsigned(gemini(response(), model="gemini-2.5-pro")),
        unsigned(gemini(response(), model="gemini-3-pro")),
        "missing a thought_signature",
    ),
    ("gemini", "media in responses, before 3"): (
        gemini(response(parts=[inline()]), model="gemini-3-pro"),
        gemini(response(parts=[inline()]), model="gemini-2.5-pro"),
        "Multimodal function responses are not supported",
    ),
    ("gemini_2_5", "media in responses"): (
        gemini(response(), inline()),
        gemini(response(parts=[inline()])),
        "Multimodal function responses are not supported",
    ),
    ("gemini", "names of functions"): (
        history("gemini", [{"id": "1", "name": "a.b"}], [{"parts": [response(id="1", name="a.b")]}]),
        history("gemini", [{"id": "1", "name": "1a"}], [{"parts": [response(id="1", name="1a")]}]),
        "must match",
    ),
    ("gemini_interactions", "media types"): (
        interaction(step([content("image", "image/heic"), content("video", "video/mp4", MP4)])),
        interaction(step([content("image", "image/svg+xml", SVG)])),
        "mime_type image/svg+xml is not supported",
    ),
    ("gemini_interactions", "results"): (interaction(step({"a": 1})), interaction(step(7)), "expected"),
    ("gemini_interactions", "kinds of contents"): (
        interaction(step([content("audio", "audio/wav", WAV)])),
        interaction(step([{"type": "resource", "uri": "a://b"}])),
        "'resource' is not one of",
    ),
    ("gemini_interactions", "every result has a call"): (
        interaction(step("done")),
        interaction(step("done"), step("done", "other")),
        "has no function_call",
    ),
    ("bedrock_converse", "no blank text"): (bedrock({"text": "x"}), bedrock({"text": " "}), "is blank"),
    ("bedrock_converse", "formats of images"): (
        bedrock(shown("image", "png")),
        bedrock(shown("image", "jpg", JPEG)),
        "'jpg' is not one of",
    ),
    ("bedrock_converse", "the format is true"): (
        bedrock(shown("image", "jpeg", JPEG)),
        bedrock(shown("image", "png", JPEG)),
        "does not match",
    ),
    ("bedrock_converse", "one thing in a block"): (
        bedrock({"json": {"a": 1}}),
        bedrock({"text": "x", "json": {"a": 1}}),
        "exactly one of",
    ),
    ("bedrock_converse", "no sound in a result"): (
        bedrock(shown("video", "mp4", MP4)),
        bedrock(shown("audio", "wav", WAV)),
        "exactly one of",
    ),
    ("bedrock_converse", "statuses"): (
        bedrock(shown("image", "png"), status="error"),
        bedrock({"text": "x"}, status="failed"),
        "'failed' is not one of",
    ),
    ("bedrock_converse", "ids"): (
        bedrock({"text": "x"}, tool_id="a.b:c-1"),
        bedrock({"text": "x"}, tool_id="a b"),
        "must satisfy the pattern",
    ),
    ("bedrock_converse", "names of documents"): (
        bedrock({"text": "x"}, shown("document", "pdf", PDF, name="Q3 (final)")),
        bedrock({"text": "x"}, shown("document", "pdf", PDF, name="q3_final.pdf")),
        "can only contain",
    ),
    ("bedrock_converse", "names of documents differ"): (
        bedrock({"text": "x"}, *documents(2)),
        bedrock({"text": "x"}, *documents(1), *documents(1)),
        "duplicate document name",
    ),
    ("bedrock_converse", "text beside a document"): (
        bedrock({"text": "x"}, *documents(1)),
        bedrock(*documents(1)),
        "needs a text block",
    ),
    ("bedrock_converse", "twenty images"): (
        bedrock(*[shown("image", "png")] * 20),
        bedrock(*[shown("image", "png")] * 21),
        "21, at most 20",
    ),
    ("bedrock_converse", "five documents"): (
        bedrock({"text": "x"}, *documents(5)),
        bedrock({"text": "x"}, *documents(6)),
        "6, at most 5",
    ),
    ("bedrock_converse", "weight"): (
        bedrock(shown("image", "png")),
        bedrock(shown("image", "png", base64.b64encode(base64.b64decode(PNG) + bytes(3_750_000)).decode())),
        "exceeds the maximum",
    ),
    ("bedrock_converse", "toolConfig"): (
        bedrock({"text": "x"}),
        bedrock({"text": "x"}, toolConfig=None),
        "toolConfig field must be defined",
    ),
    ("bedrock_converse", "a user begins"): (
        {"messages": [{"role": "user", "content": [shown("image", "png")]}]},
        {"messages": [{"role": "assistant", "content": [{"text": "x"}]}]},
        "must start with a user message",
    ),
    ("bedrock_converse", "only users show"): (
        {"messages": [{"role": "user", "content": [shown("image", "png")]}]},
        {"messages": [{"role": "user", "content": [{"text": "x"}]},
                      {"role": "assistant", "content": [shown("image", "png")]}]},
        "only allowed in messages of the user",
    ),
}  # fmt: skip


@pytest.mark.parametrize(("api", "rule"), RULES)
def test_each_rule_accepts_one_request_and_refuses_another(api: str, rule: str) -> None:
    accepted, refused, why = RULES[api, rule]
    assert refusals(api, accepted) == ()
    assert any(why in sentence for sentence in refusals(api, refused)), refusals(api, refused)


def test_every_api_has_an_example_of_a_refusal() -> None:
    profiles = {name for name in APIS if APIS[name].read.__qualname__ == APIS["openai_chat"].read.__qualname__}
    assert {api for api, _ in RULES} >= set(APIS) - profiles


@pytest.mark.parametrize("path", sorted(GOLDEN.glob("*.json")), ids=lambda path: path.stem)
def test_what_the_library_writes_is_accepted_and_seen(path: Path) -> None:
    api = path.stem
    written = re.sub(r"\bcall_(\d)\b", r"call0000\1", path.read_text("utf-8"))
    for name, data in NAMES.items():
        written = written.replace(f"<base64 {name}>", data)
    messages = json.loads(written)["messages"]
    request = history(api, calls(3), messages)
    assert refusals(api, request) == ()
    named = re.findall(r"\[(image|audio|document|video) \d+: [^\]]*bytes\]", json.dumps(messages))
    found = [one.kind for one in seen(api, request)]
    assert found.count("image") + named.count("image") == 3
    for kind in ("audio", "document", "video"):
        assert found.count(kind) + named.count(kind) == 1, kind


def test_what_is_seen_is_decoded_and_in_order() -> None:
    request = anthropic(result(block(), text(), block(WEBP, "image/webp")), block(GIF, "image/gif"))
    found = seen("anthropic_messages", request)
    assert [(one.kind, one.media_type) for one in found] == [
        ("image", "image/png"),
        ("image", "image/webp"),
        ("image", "image/gif"),
    ]
    assert found[0].content == base64.b64decode(PNG)


def test_a_newer_model_takes_an_image_on_a_tool_message_and_does_not_see_it() -> None:
    request = chat(tool([text(), chat_image()]), model="gpt-5.2")
    assert refusals("openai_chat", request) == ()
    assert seen("openai_chat", request) == ()
    assert len(seen("openai_chat", chat(tool(), user(chat_image()), model="gpt-5.2"))) == 1
    assert len(seen("openai_compat", request)) == 1


def test_gemini_is_read_in_snake_case_too() -> None:
    request = json.loads(
        json.dumps(gemini(response(parts=[inline()])))
        .replace("functionResponse", "function_response")
        .replace("inlineData", "inline_data")
        .replace("mimeType", "mime_type")
    )
    assert refusals("gemini", request) == ()
    assert len(seen("gemini", request)) == 1


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)
ACCEPTED = [(api, accepted) for (api, _), (accepted, _, _) in RULES.items() if len(json.dumps(accepted)) < 5_000]


def places(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [path, *(place for key, item in items for place in places(item, (*path, key)))]


@settings(max_examples=300, deadline=None)
@given(st.data())
def test_no_request_makes_a_stand_in_raise(data: st.DataObject) -> None:
    api, accepted = data.draw(st.sampled_from(ACCEPTED))
    request = copy.deepcopy(accepted)
    *path, last = data.draw(st.sampled_from(places(request)[1:]))
    at = request
    for key in path:
        at = at[key]
    at[last] = data.draw(VALUES)
    assert all(isinstance(sentence, str) for sentence in refusals(api, request))
    seen(api, request)
