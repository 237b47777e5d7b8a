"""Observations: text outside of tool results into which clients put a tool's output, with the gateway's lines in it.

smolagents writes a tool's text into a user message (`Observation:`); CrewAI into the assistant's own message if the
model calls no functions, and then the media goes into the user message that follows. What a model writes by itself is
not a tool's text, so in an assistant message only the text after `Observation:` counts.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple, cast

from gateway.core.model.blocks import TextBlock
from gateway.core.model.envelope import Envelope
from gateway.core.model.json_values import as_list
from gateway.core.model.turn import Answer, Call, Media, Part, Words
from gateway.core.model_apis.requests.find_lines import CAPTION, WHOLE_LINES, namings
from gateway.core.model_apis.requests.found_results import FoundTurn, Piece, Where
from gateway.core.model_apis.requests.request_edits import Target, value_at, with_cache_mark
from gateway.core.model_apis.sdk_json import numbered_objects

COUNTED = WHOLE_LINES | CAPTION
"""The ways of naming content that count here."""

_OBSERVED = "Observation:"
_PLACES = {"gemini": ("contents", "parts"), "openai_responses": ("input", "content")}
_MESSAGES = ("messages", "content")
_TEXTS = frozenset({None, "text", "input_text", "output_text"})
_STRAYS = ("inlineData", "inline_data")
_RESULTS = ("functionResponse", "function_response", "toolResult")


class _Text(NamedTuple):
    where: Where
    text: str


def find_observations(request: Mapping[str, Any], dialect: str) -> tuple[FoundTurn, ...]:
    """Find user texts, and assistant texts with observations, that contain the gateway's lines or captions."""
    key, place = _PLACES.get(dialect, _MESSAGES)
    messages: Any = request.get(key)
    if isinstance(messages, str):
        return tuple(_turn(text, (key,)) for text in _naming([_Text((key,), messages)]))
    return tuple(_turns(numbered_objects(messages), key, place))


def _turns(messages: list[tuple[int, dict[str, Any]]], key: str, place: str) -> Iterator[FoundTurn]:
    following = dict(messages)
    for index, message in messages:
        where = (key, index, place)
        if _is_user(message):
            yield from (_turn(text, (key, index)) for text in _naming(_texts(message.get(place), where)))
        elif message.get("role") in ("assistant", "model") and _takes_media(following.get(index + 1), place):
            texts = [text for text in _naming(_texts(message.get(place), where)) if _is_observed(text.text)]
            yield from (_turn(text, (key, index + 1)) for text in texts)


def _turn(text: _Text, into: Where) -> FoundTurn:
    envelope = Envelope(blocks=(TextBlock(type="text", text=text.text),))
    return FoundTurn((Piece(text.where, 0, Call("", "text", envelope), into=into),), ())


def _is_user(message: Mapping[str, Any] | None) -> bool:
    # Gemini treats a content without a role as the user's.
    return message is not None and (message.get("role") == "user" or ("parts" in message and "role" not in message))


def _texts(content: Any, where: Where) -> list[_Text]:
    """Return the texts of a message, except those before a tool's result, which has to come first."""
    if isinstance(content, str):
        return [_Text(where, content)]
    parts = numbered_objects(content)
    first = max((index for index, part in parts if _is_result(part)), default=-1) + 1
    if first and any(key in part for _, part in parts for key in _STRAYS):
        return []  # the text may belong to a response and move with it: no later index would remain valid
    return [
        _Text((*where, index, "text"), part["text"])
        for index, part in parts
        if index >= first and isinstance(part.get("text"), str) and part.get("type") in _TEXTS
    ]


def _is_result(part: Mapping[str, Any]) -> bool:
    return part.get("type") == "tool_result" or any(key in part for key in _RESULTS)


def _naming(texts: Sequence[_Text]) -> list[_Text]:
    return [text for text in texts if any(naming.how in COUNTED for naming in namings(text.text))]


def _takes_media(message: Mapping[str, Any] | None, place: str) -> bool:
    if message is None or not _is_user(message):
        return False
    content = message.get(place)
    return isinstance(content, str) or (
        isinstance(content, list) and not any(_is_result(part) for _, part in numbered_objects(content))
    )


def _is_observed(text: str) -> bool:
    at = text.find(_OBSERVED)
    return at >= 0 and all(naming.start > at for naming in namings(text))


def in_order(turns: Sequence[FoundTurn], observed: Sequence[FoundTurn]) -> list[FoundTurn]:
    """Merge the turns of results and of texts in the order of the request, and number their pieces accordingly."""
    merged = sorted([*turns, *observed], key=lambda turn: turn.pieces[0].where)
    numbers: dict[tuple[Where, int], int] = {}
    ordered: list[FoundTurn] = []
    for turn in merged:
        pieces: list[Piece] = []
        for piece in turn.pieces:
            known = (piece.where if piece.into else (), piece.result)
            pieces.append(replace(piece, result=numbers.setdefault(known, len(numbers))))
        ordered.append(replace(turn, pieces=tuple(pieces)))
    return ordered


def copied_for(request: Any, piece: Piece) -> list[Where]:
    """Return the places that have to be copied before `put_observation` may change them."""
    if piece.into is None:
        return []
    if len(piece.into) == 1:  # the whole input is one string
        return [piece.into]
    return [(*piece.into, _place(value_at(request, piece.into)))]


def _place(message: Mapping[str, Any]) -> str:
    return "parts" if "parts" in message else "content"


def put_observation(request: Any, piece: Piece, answer: Answer, target: Target) -> None:
    """Rewrite a text with the media where it is named, or with the media before the text of the next user message."""
    into = cast("Where", piece.into)
    if piece.where == into:  # the whole input is one string
        content = [target.write_part(part) for part in answer.parts]
        request[piece.where[0]] = [{"type": "message", "role": "user", "content": content}]
        return
    message = value_at(request, into)
    is_own = piece.where[: len(into)] == into
    holder, key = value_at(request, piece.where[:-1]), piece.where[-1]
    first, rest = answer.parts[0], answer.parts[1:]
    if not is_own:
        holder[key] = _text(first)
        _lead(message, rest, target)
    elif _is_beside(target):
        holder[key] = _joined(answer.parts)
        message["images"] = [*_images(message), *_data(answer.parts)]
    elif key == "text":
        content, at = value_at(request, piece.where[:-2]), cast("int", piece.where[-2])
        old = {name: value for name, value in content[at].items() if name != "cache_control"}
        new = [{**old, "text": _text(first)}, *(target.write_part(part) for part in rest)]
        content[at : at + 1] = with_cache_mark(content[at], new)
    else:
        holder[key] = [target.write_part(part) for part in answer.parts]


def _lead(message: dict[str, Any], parts: Sequence[Part], target: Target) -> None:
    """Put parts before everything else in a message."""
    place = _place(message)
    content = message[place]
    if _is_beside(target):
        message[place] = "\n".join(said for said in (_joined(parts), content) if said)
        message["images"] = [*_data(parts), *_images(message)]
        return
    said = [target.write_part(Words(content))] if isinstance(content, str) else content
    message[place] = [*(target.write_part(part) for part in parts), *said]


def _is_beside(target: Target) -> bool:
    """Whether media is beside a message's text, as with Ollama, whose messages have no parts."""
    return isinstance(target.write_part(Words("")), str)


def _images(message: Mapping[str, Any]) -> list[Any]:
    return as_list(message.get("images"))


def _text(part: Part) -> str:
    return part.text if isinstance(part, Words) else f"[{part.label}]"


def _joined(parts: Sequence[Part]) -> str:
    return "\n".join(part.text for part in parts if isinstance(part, Words))


def _data(parts: Sequence[Part]) -> list[str]:
    return [part.data for part in parts if isinstance(part, Media)]
