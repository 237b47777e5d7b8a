"""Tool results in Gemini generateContent: `functionResponse` parts, whose `response` is any JSON object.

google-adk puts a whole CallToolResult there, Gemini CLI a string with one into `response.error`; LangChain puts the
media of a response before it, where the API refuses it (https://github.com/googleapis/js-genai/issues/933). The API
takes the names of fields in either spelling, `functionResponse` and `function_response`, and either base64.
"""

from collections.abc import Mapping
from typing import Any, cast

from gateway.core.model.blocks import Block
from gateway.core.model.envelope import Envelope
from gateway.core.model.turn import Answer, Turn
from gateway.core.model_apis.requests.found_results import (
    Dialect,
    Finder,
    FoundTurn,
    RepairedTurn,
    Where,
    Write,
    objects,
    value_at,
)
from gateway.core.model_apis.requests.gateway_lines import handles_in
from gateway.core.model_apis.requests.result_formats import envelope_of, has_media, is_exact

_SPELLINGS = ("functionResponse", "function_response")
_MEDIA = ("inlineData", "inline_data")


def find(request: Mapping[str, Any]) -> tuple[FoundTurn, ...]:
    """The turns with media in their results: the responses of one content."""
    finder = Finder()
    for place, content in objects(request.get("contents")):
        parts, where = objects(content.get("parts")), ("contents", place, "parts")
        responses = [(index, key) for index, part in parts for key in _SPELLINGS if isinstance(part.get(key), dict)]
        strays = _strays(parts, [index for index, _ in responses])
        for index, key in responses:
            _look(finder, (*where, index, key), value_at(request, (*where, index, key)), strays.get(index, []))
        if responses:
            finder.end_turn((*where, responses[-1][0] + 1))
    return tuple(finder.turns)


def _strays(parts: list[tuple[int, dict[str, Any]]], responses: list[int]) -> dict[int, list[tuple[int, Any]]]:
    """What stands before the last response, media being among it, by the response that it belongs to.

    That is the next response if media comes before the first one (LangChain), else the one before (the AI SDK). What
    comes after the last response is where the API takes it; it is taken along only to stay beside its own response.
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
    inside = [part for _, part in objects(response.get("parts"))]
    around = [part.get("text", part) for _, part in strays]
    beside = [block for part in (*inside, *around) for block in envelope_of(part).blocks]
    if not strays and not has_media(spoken) and not handles_in(spoken) and all(map(_is_own, inside)):
        # Only the parts hold media: then they are in the API's own form, and right if the model takes them there.
        whole = spoken.model_copy(update={"blocks": (*spoken.blocks, *beside)})
        finder.envelope(where, call, whole, native=True)
        return
    blocks: tuple[Block, ...] = (*spoken.blocks, *beside)
    whole = spoken.model_copy(update={"blocks": blocks})
    finder.envelope(where, call, whole, taken=tuple(index for index, _ in strays))


def _is_own(part: dict[str, Any]) -> bool:
    return not any(key in part for key in _MEDIA) or is_exact(part)


def _envelope_of(said: Any) -> Envelope:
    members = cast("dict[str, Any]", said) if isinstance(said, dict) else {}
    is_error = set(members) == {"error"}
    for key in ("output", "error", "result"):
        if set(members) == {key}:
            return envelope_of(members[key], is_error=is_error)
    return envelope_of(said)


def put(holder: Any, key: Any, answer: Answer, write: Write) -> None:
    """The response and the parts of a `functionResponse` anew."""
    new: Any = write(Turn((answer,)))[0]["parts"][0]["functionResponse"]
    old = {name: value for name, value in holder[key].items() if name not in ("response", "parts")}
    holder[key] = {**old, **{name: new[name] for name in ("response", "parts") if name in new}}


def follow_up(turn: RepairedTurn, write: Write) -> list[Any]:
    """Parts that come after the responses of the same content."""
    return list(write(Turn((), turn.follow_ups))[-1]["parts"])


DIALECT = Dialect(find, put, follow_up)
