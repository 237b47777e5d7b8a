"""Gemini generateContent: the content of the first candidate becomes the model's content unchanged.

https://ai.google.dev/gemini-api/docs/function-calling; google-genai 3.4.0 (GenerateContentResponse,
FunctionDeclaration).

- Completions: a part's `thoughtSignature` must be returned in the part that it came in:
  https://ai.google.dev/gemini-api/docs/thought-signatures.
- Turns: as many functionResponse parts as calls, in one content, media after the last; from Gemini 3 on, their `parts`
  hold media. In a response, the API knows the keys `output` and `error`. Text and media lose their order within a
  response, so the text keeps a marker for each piece of media.
- Requests: results are `functionResponse` parts, whose `response` is any JSON object. google-adk puts a whole
  CallToolResult there, Gemini CLI a string with one into `response.error`; LangChain puts the media of a response
  before it, where the API refuses it (https://github.com/googleapis/js-genai/issues/933). The API accepts both
  spellings of field names, `functionResponse` and `function_response`, and both alphabets of base64.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from gateway.core.model.blocks import Block
from gateway.core.model.envelope import Envelope
from gateway.core.model.json_values import as_dict, as_object
from gateway.core.model.turn import Answer, Media, Part, Turn, Words
from gateway.core.model_apis.completions import ToolCall, chunks_as_json, completion_with, tool_call
from gateway.core.model_apis.requests.find_lines import handles_in
from gateway.core.model_apis.requests.found_results import Finder, FoundTurn, RepairedTurn, Where
from gateway.core.model_apis.requests.request_edits import WriteTurn, value_at
from gateway.core.model_apis.requests.result_formats import envelope_of, has_media, is_exact
from gateway.core.model_apis.sdk_json import numbered_objects, objects_without_nulls
from gateway.core.model_apis.tool_schemas.input_schemas import parameters
from gateway.core.model_apis.turns.references import gemini_uri
from gateway.core.tools.catalogue.names import NameRules

# -- Describing tools and reading a completion -------------------------------------------------------------------------


NAMES = NameRules(64, re.compile("^[^A-Za-z_]|[^A-Za-z0-9_-]"))
"""FunctionDeclaration.name: begins with a letter or an underscore; 64 characters in v1beta, 128 elsewhere."""


def schemas(tools: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Convert MCP tools to `tools` of a request: one `{"functionDeclarations": [...]}`, or nothing without tools.

    The schema goes under `parametersJsonSchema`, which takes JSON Schema; `parameters` takes only OpenAPI's subset.
    """
    declared = [
        {
            "name": tool["name"],
            "description": tool.get("description") or "",
            "parametersJsonSchema": parameters(tool),
        }
        for tool in tools
    ]
    return [{"functionDeclarations": declared}] if declared else []


def tool_calls(completion: Any) -> tuple[ToolCall, ...]:
    """Return the function calls of the first candidate, in order. Raises InvalidRequest: not a response.

    Older models give calls no id; then `id` is empty, and results are matched to calls by order.
    """
    calls = [as_object(part.get("functionCall") or part.get("function_call")) for part in _parts(completion)]
    return tuple(tool_call(call.get("id"), call["name"], call.get("args")) for call in calls if call.get("name"))


def assistant_messages(completion: Any) -> list[dict[str, Any]]:
    """Return the model's content; empty if it said nothing at all, because parts must not be empty."""
    parts = _parts(completion)
    return [{"role": "model", "parts": parts}] if parts else []


def _parts(completion: Any) -> list[dict[str, Any]]:
    # A refused prompt has no candidates.
    return _parts_of(completion_with(completion, "candidates", "promptFeedback", "usageMetadata", "responseId"))


def _parts_of(answered: Mapping[str, Any]) -> list[dict[str, Any]]:
    candidates = objects_without_nulls(answered.get("candidates"))
    return objects_without_nulls(as_object(candidates[0].get("content")).get("parts")) if candidates else []


def joined(chunks: Iterable[Any]) -> dict[str, Any]:
    """Join the chunks of a stream into a response. Raises InvalidRequest: there are no chunks.

    Text is concatenated except across a signature, which has to stay in its own part.
    """
    parts: list[dict[str, Any]] = []
    for part in (part for chunk in chunks_as_json(chunks) for part in _parts_of(chunk)):
        text = part.get("text")
        if parts and isinstance(text, str) and _goes_on(parts[-1], part):
            parts[-1] = {**parts[-1], **part, "text": parts[-1]["text"] + text}
        elif text != "" or set(part) - {"text", "thought"}:
            parts.append(part)
    return {"candidates": [{"content": {"role": "model", "parts": parts}}]}


def _goes_on(before: Mapping[str, Any], part: Mapping[str, Any]) -> bool:
    kinds = {"text", "thought"}
    same = set(before) <= kinds and set(part) <= kinds and bool(before.get("thought")) == bool(part.get("thought"))
    return same and isinstance(before.get("text"), str)


# -- Lowering a turn ---------------------------------------------------------------------------------------------------


def write_turn(turn: Turn) -> list[dict[str, Any]]:
    """Write the one content after the model's: `{"role": "user", "parts": [...]}`."""
    parts: list[dict[str, Any]] = [{"functionResponse": _response(answer)} for answer in turn.answers]
    parts += [write_part(part) for part in turn.follow_up_parts]
    return [{"role": "user", "parts": parts}]


def user_message(parts: Sequence[Part]) -> dict[str, Any]:
    """Write a user content with these parts."""
    return {"role": "user", "parts": [write_part(part) for part in parts]}


def write_part(part: Part) -> dict[str, Any]:
    """Write one part of a content: `text`, `inlineData`, or `fileData` for content that the API fetches itself."""
    if isinstance(part, Words):
        return {"text": part.text}
    if part.ref:
        return {"fileData": {"mimeType": part.media_type, "fileUri": gemini_uri(part)}}
    return {"inlineData": _inline(part)}


def _response_part(media: Media) -> dict[str, Any]:
    ((kind, value),) = write_part(media).items()
    return {kind: {**value, "displayName": media.label}}


def _response(answer: Answer) -> dict[str, Any]:
    # Older models give calls no id; their results are matched by order.
    call = {"id": answer.call.id, "name": answer.call.name} if answer.call.id else {"name": answer.call.name}
    if answer.raw is not None:
        return {**call, "response": {}, **answer.raw}
    response: dict[str, Any] = {
        **call,
        "response": {"error" if answer.is_error else "output": answer.text},
    }
    if answer.media:
        response["parts"] = [_response_part(media) for media in answer.media]
    return response


def _inline(media: Media) -> dict[str, str]:
    return {"mimeType": media.media_type, "data": media.data}


# -- Tool results in a request -----------------------------------------------------------------------------------------


_SPELLINGS = ("functionResponse", "function_response")
_MEDIA = ("inlineData", "inline_data")


def find_results(request: Mapping[str, Any]) -> tuple[FoundTurn, ...]:
    """Find the turns with media in their results: the responses of one content."""
    finder = Finder()
    for place, content in numbered_objects(request.get("contents")):
        parts, where = numbered_objects(content.get("parts")), ("contents", place, "parts")
        responses = [(index, key) for index, part in parts for key in _SPELLINGS if isinstance(part.get(key), dict)]
        strays = _strays(parts, [index for index, _ in responses])
        for index, key in responses:
            _look(finder, (*where, index, key), value_at(request, (*where, index, key)), strays.get(index, []))
        if responses:
            finder.end_turn((*where, responses[-1][0] + 1))
    return tuple(finder.turns)


def _strays(parts: list[tuple[int, dict[str, Any]]], responses: list[int]) -> dict[int, list[tuple[int, Any]]]:
    """Return the parts before the last response that contain or accompany media, by the response they belong to.

    That is the next response if media comes before the first one (LangChain), else the previous one (the AI SDK). Media
    after the last response is where the API accepts it; it is moved only to stay beside its own response.
    """
    media = [index for index, part in parts if any(key in part for key in _MEDIA)]
    if not responses or not media or media[0] > responses[-1]:
        return {}
    leads = media[0] < responses[0]
    strays: dict[int, list[tuple[int, Any]]] = {}
    for index, part in parts:
        between = index > responses[0] and index < responses[-1] and isinstance(part.get("text"), str)
        if not between and (index not in media or (leads and index > responses[-1])):
            continue
        owner = next(at for at in responses if at > index) if leads else max(at for at in responses if at < index)
        strays.setdefault(owner, []).append((index, part))
    return strays


def _look(finder: Finder, where: Where, response: dict[str, Any], strays: list[tuple[int, Any]]) -> None:
    call = finder.result(response.get("id"), response.get("name"))
    said = response.get("response")
    spoken = _envelope_of(said) if said is not None else Envelope()
    inside = [part for _, part in numbered_objects(response.get("parts"))]
    around = [part.get("text", part) for _, part in strays]
    beside = [block for part in (*inside, *around) for block in envelope_of(part).blocks]
    if not strays and not has_media(spoken) and not handles_in(spoken) and all(map(_is_own, inside)):
        # If only the parts hold media, it is in the API's own form, and correct if the model accepts it there.
        whole = spoken.model_copy(update={"blocks": (*spoken.blocks, *beside)})
        finder.envelope(where, call, whole, native=True)
        return
    blocks: tuple[Block, ...] = (*spoken.blocks, *beside)
    whole = spoken.model_copy(update={"blocks": blocks})
    finder.envelope(where, call, whole, taken=tuple(index for index, _ in strays))


def _is_own(part: dict[str, Any]) -> bool:
    return not any(key in part for key in _MEDIA) or is_exact(part)


def _envelope_of(said: Any) -> Envelope:
    members = as_dict(said) or {}
    is_error = set(members) == {"error"}
    for key in ("output", "error", "result"):
        if set(members) == {key}:
            return envelope_of(members[key], is_error=is_error)
    return envelope_of(said)


def put_result(holder: Any, key: Any, answer: Answer, write: WriteTurn) -> None:
    """Replace the response and the parts of a `functionResponse`."""
    new: Any = write(Turn((answer,)))[0]["parts"][0]["functionResponse"]
    old = {name: value for name, value in holder[key].items() if name not in ("response", "parts")}
    holder[key] = {**old, **{name: new[name] for name in ("response", "parts") if name in new}}


def follow_up(turn: RepairedTurn, write: WriteTurn) -> list[Any]:
    """Write the parts that follow the responses of the same content."""
    return list(write(Turn((), turn.follow_ups))[-1]["parts"])
