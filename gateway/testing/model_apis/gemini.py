"""Stand-ins for Gemini's generateContent: for Gemini 3 and later, and for earlier models (`gemini_2_5`).

Function responses of earlier models must not contain media. Types: google-genai 3.4.0. As many responses as calls, at
once: the API's own error texts, and https://ai.google.dev/gemini-api/docs/function-calling. Media inside responses:
png, jpeg, webp, pdf and plain text, as in pydantic-ai's google profile. Signatures:
https://ai.google.dev/gemini-api/docs/thought-signatures (Gemini 3). Media types: ai.google.dev/gemini-api/docs, the
pages on images, audio, video and documents.
"""

import re
from collections.abc import Iterable, Mapping
from fnmatch import fnmatchcase
from typing import Any

from gateway.core.model.json_values import is_list, is_object
from gateway.testing.model_apis.read_request import Conversation, Dialect, Kind, Media, Message, Ref, Rule, lines
from gateway.testing.model_apis.rules import named, whole_base64
from gateway.testing.model_apis.shapes import OTHERS, OneMember

_IN_RESPONSE = frozenset({"image/png", "image/jpeg", "image/webp", "application/pdf", "text/plain"})
_TAKEN = re.compile(
    r"image/(png|jpeg|webp|heic|heif|gif)|audio/(wav|x-wav|mp3|mpeg|aiff|aac|ogg|flac|m4a|mp4|opus|webm|pcm|l16).*"
    r"|video/(mp4|mpeg|mov|quicktime|avi|x-flv|mpg|webm|wmv|3gpp)|application/(pdf|json)|text/[a-z-]+"
)
_BLOB = {"mimeType": str, "data": str, "displayName?": str}
_FILE = {"fileUri": str, "mimeType?": str, "displayName?": str}
_BESIDE = {
    "thought?": bool,
    "thoughtSignature?": str,
    "videoMetadata?": dict,
    "mediaResolution?": object,
    "partMetadata?": dict,
}
_MEDIA = {"inlineData": _BLOB, "fileData": _FILE}
_RESPONSE = {
    "name": str,
    "response": dict,
    "id?": str,
    "parts?": [OneMember(_MEDIA, _BESIDE)],
    "willContinue?": bool,
    "scheduling?": str,
}
_PARTS = OneMember(
    {
        "text": str,
        **_MEDIA,
        "functionCall": {"name": str, "args?": dict, "id?": str, "partialArgs?": list, "willContinue?": bool},
        "functionResponse": _RESPONSE,
        "executableCode": OTHERS,
        "codeExecutionResult": OTHERS,
        "toolCall": OTHERS,
        "toolResponse": OTHERS,
    },
    _BESIDE,
)
_CONTENTS = {"role?": frozenset({"user", "model", "function"}), "parts": [_PARTS]}
_STANDARD = str.maketrans("-_", "+/")
"""Converts from the URL-safe alphabet that google-genai uses for bytes. The API takes both, like protobuf's JSON."""
_FREE = frozenset({"args", "response", "parameters", "parametersJsonSchema", "responseSchema", "labels"})
"""Members that contain arbitrary JSON of the caller."""


def _camel(value: Any) -> Any:
    """Convert snake_case members, which the API also takes (https://protobuf.dev/programming-guides/json/)."""
    if is_list(value):
        return [_camel(item) for item in value]
    if not is_object(value):
        return value
    items = value.items()
    named_anew = ((re.sub(r"_([a-z])", lambda found: found[1].upper(), key), item) for key, item in items)
    return {key: item if key in _FREE else _camel(item) for key, item in named_anew}


def _read(request: Mapping[str, Any]) -> list[Message]:
    return [_message(f"contents[{number}]", content) for number, content in enumerate(request["contents"])]


def _message(where: str, content: Mapping[str, Any]) -> Message:
    parts: list[Mapping[str, Any]] = content["parts"]
    called = [part["functionCall"] for part in parts if "functionCall" in part]
    given = [part["functionResponse"] for part in parts if "functionResponse" in part]
    media: list[Media] = []
    for number, part in enumerate(parts):
        for place, inner in enumerate(part.get("functionResponse", {}).get("parts") or ()):
            media += _media(f"{where}.parts[{number}].function_response.parts[{place}]", inner)
        media += _media(f"{where}.parts[{number}]", part)
    return Message(
        where,
        content.get("role") or "user",
        lines(part.get("text") for part in parts if not part.get("thought")),
        tuple(Ref(call.get("id") or "", call["name"]) for call in called),
        tuple(Ref(response.get("id") or "", response["name"]) for response in given),
        tuple(media),
        content,
    )


def _media(where: str, part: Mapping[str, Any]) -> list[Media]:
    if "inlineData" not in part:
        return []
    media_type: str = part["inlineData"]["mimeType"]
    top = media_type.split("/")[0].lower()
    kind: Kind = top if top in ("image", "audio", "video") else "document"
    return [Media(f"{where}.inline_data", kind, media_type, part["inlineData"]["data"].translate(_STANDARD))]


def _as_many(conversation: Conversation) -> Iterable[str]:
    """Every content with calls must be followed by one with as many responses; an id must be that of a call."""
    before: Message | None = None
    # A streamed reply ends in an empty text, which google-genai's own loop sends back as a separate content.
    spoken = [one for one in conversation.messages if one.role != "model" or one.calls or one.text or one.media]
    for message in [*spoken, None]:
        calls = before.calls if before else ()
        answers = message.answers if message else ()
        if answers and not calls and message:
            yield f"{message.where}: Please ensure that function response turn comes immediately after a call turn."
        elif len(calls) != len(answers):
            yield (
                f"{(message or conversation.messages[-1]).where}: Please ensure that the number of function response "
                "parts is equal to the number of function call parts of the function call turn."
            )
        elif message and not _matched(calls, answers):
            yield f"{message.where}: function responses do not match the function calls by id and name"
        before = message


def _matched(calls: tuple[Ref, ...], answers: tuple[Ref, ...]) -> bool:
    by_id = {call.id: call.name for call in calls if call.id}
    if any(answer.id and by_id and by_id.get(answer.id) != answer.name for answer in answers):
        return False
    return sorted(call.name for call in calls) == sorted(answer.name for answer in answers)


def _responses_first(conversation: Conversation) -> Iterable[str]:
    for message in conversation.messages:
        kinds = ["functionResponse" in part for part in (message.raw or {})["parts"]]
        if kinds != sorted(kinds, reverse=True):
            yield f"{message.where}: function response parts come before all other parts"


def _types(conversation: Conversation) -> Iterable[str]:
    for media in conversation.media:
        declared = media.media_type or ""
        inside = "function_response" in media.where
        if declared not in _IN_RESPONSE if inside else not _TAKEN.fullmatch(declared):
            yield f"{media.where}: Unsupported MIME type: {declared}"


def _no_media_in_responses(conversation: Conversation) -> Iterable[str]:
    for message in conversation.messages:
        for number, part in enumerate((message.raw or {})["parts"]):
            if part.get("functionResponse", {}).get("parts"):
                where = f"{message.where}.parts[{number}].function_response.parts"
                yield f"{where}: Multimodal function responses are not supported for this model"


def _signed(conversation: Conversation) -> Iterable[str]:
    """The first call of each content since the last user message must have the signature given by the model."""
    spoken = [place for place, one in enumerate(conversation.messages) if one.role == "user" and not one.answers]
    for message in conversation.messages[spoken[-1] if spoken else 0 :]:
        calls = [part for part in (message.raw or {})["parts"] if "functionCall" in part]
        if calls and not calls[0].get("thoughtSignature"):
            yield f"{message.where}: Function call is missing a thought_signature in functionCall parts."


def _for(pattern: str, rule: Rule) -> Rule:
    """Restrict a rule to models whose names match."""

    def narrowed(conversation: Conversation) -> Iterable[str]:
        model = conversation.model.removeprefix("models/")
        return rule(conversation) if fnmatchcase(model, pattern) else ()

    return narrowed


def _tools(request: Mapping[str, Any]) -> list[str]:
    tools: list[Mapping[str, Any]] = request.get("tools") or []
    return [one["name"] for tool in tools for one in tool.get("functionDeclarations") or ()]


def _dialect(*rules: Rule) -> Dialect:
    common = (_as_many, _responses_first, whole_base64, _types, named(r"[a-zA-Z_][a-zA-Z0-9_.:-]{0,127}"))
    shape = {"contents": [_CONTENTS], "tools?": [{"functionDeclarations?": [{"name": str, **OTHERS}], **OTHERS}]}
    return Dialect({**shape, **OTHERS}, _read, (*common, *rules), _tools, _camel)


GEMINI = _dialect(_for("gemini-[12]*", _no_media_in_responses), _for("gemini-3*", _signed))
GEMINI_2_5 = _dialect(_no_media_in_responses)
