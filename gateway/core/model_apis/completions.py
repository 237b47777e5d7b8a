"""Completions of any model API: their tool calls, SDK objects as plain JSON, and chunks of a stream joined."""

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from gateway.core.fact_words import plain
from gateway.core.model.json_values import as_object, is_dict, is_list, is_object
from gateway.core.model_apis.sdk_json import objects_without_nulls, without_nulls
from gateway.errors import InvalidRequest

_LONGEST_SHOWN = 500
_SHOWN = 10


@dataclass(frozen=True)
class ToolCall:
    """One call that a model asks for. `id` is the API's id of it, empty if the API gave none (older Gemini).

    `malformed` is what the model wrote instead of a JSON object; then `arguments` is empty, and no tool is called.
    """

    id: str
    name: str
    arguments: Mapping[str, Any] = field(default_factory=dict[str, Any])
    malformed: str | None = None


def tool_call(call_id: Any, name: Any, arguments: Any) -> ToolCall:
    """Read a call whose arguments are JSON text or an object; missing arguments count as empty."""
    identity, called = _text(call_id), _text(name)
    if arguments is None or arguments == "":
        return ToolCall(identity, called)
    parsed = arguments
    if isinstance(arguments, str):
        try:
            parsed = json.loads(arguments)
        except (ValueError, RecursionError):
            return ToolCall(identity, called, malformed=arguments)
    if not is_dict(parsed):
        written = arguments if isinstance(arguments, str) else json.dumps(arguments, default=str)
        return ToolCall(identity, called, malformed=written)
    return ToolCall(identity, called, parsed)


def function_calls(calls: Any) -> tuple[ToolCall, ...]:
    """Return the calls of a message in OpenAI's original form: `{"id", "function": {"name", "arguments"}}` each."""
    found = [(call.get("id"), as_object(call.get("function"))) for call in objects_without_nulls(calls)]
    return tuple(tool_call(call_id, function.get("name"), function.get("arguments")) for call_id, function in found)


def first_message(completion: Any) -> Mapping[str, Any]:
    """Return the message of the first choice, in OpenAI's original form. Raises InvalidRequest: not a completion."""
    answered = completion_with(completion, "choices")
    choices = objects_without_nulls(answered["choices"])
    if not choices:
        raise _not_a_completion(answered, "choices")
    return as_object(choices[0].get("message"))


def only_message(completion: Any) -> Mapping[str, Any]:
    """Return the message of a completion without choices. Raises InvalidRequest: not a completion."""
    return as_object(completion_with(completion, "message")["message"])


def assistant_message(message: Mapping[str, Any]) -> dict[str, Any]:
    """Convert a message to the form for a history: with content, and calls without their index in a stream."""
    calls = [without_nulls(call, "index") for call in objects_without_nulls(message.get("tool_calls"))]
    kept = without_nulls(message, "tool_calls")
    return {"content": "", **kept, "role": "assistant", **({"tool_calls": calls} if calls else {})}


def completion_with(completion: Any, *members: str) -> Mapping[str, Any]:
    """Convert a completion to wire JSON (`as_json`). It has at least one of the members, by which its API is known.

    Raises:
        InvalidRequest: it is another API's, an error, or no completion at all.
    """
    answered = as_json(completion)
    if all(answered.get(member) is None for member in members):
        raise _not_a_completion(answered, *members)
    return answered


def _not_a_completion(answered: Mapping[str, Any], *members: str) -> InvalidRequest:
    if error := answered.get("error"):
        said = as_object(error).get("message", error)
        return InvalidRequest(
            f"this is an error of the model API, not a completion: {plain(str(said), _LONGEST_SHOWN)}"
        )
    given = [plain(key, 40) for key, value in answered.items() if value not in (None, [], {})]
    there = ", ".join(given[:_SHOWN]) or "nothing"
    wanted = " or ".join(repr(member) for member in members)
    return InvalidRequest(f"this is not a completion of the chosen API: it needs {wanted}, and has {there}")


def as_json(completion: Any) -> Mapping[str, Any]:
    """Convert a completion to wire JSON: a mapping unchanged, an SDK's object by its own dump, without unset members.

    Raises:
        InvalidRequest: it is neither.
    """
    if is_object(completion):
        return completion
    dump: Any = getattr(completion, "model_dump", None)
    if callable(dump):
        # SDKs construct their objects without validation, so a dump may encounter values that the types do not have.
        return as_object(dump(mode="json", by_alias=True, exclude_none=True, warnings=False))
    dump = getattr(completion, "to_dict", None)
    if callable(dump):
        return as_object(dump())
    raise InvalidRequest(f"a completion must be the SDK's object or its JSON, not {type(completion).__name__}")


def _text(value: Any) -> str:
    return value if isinstance(value, str) else ""


def chunks_as_json(chunks: Iterable[Any]) -> list[Mapping[str, Any]]:
    """Convert each chunk or event of a streamed response with `as_json`.

    Raises:
        InvalidRequest: there is none, or one of them is not a chunk.
    """
    read = [as_json(chunk) for chunk in chunks]
    if not read:
        raise InvalidRequest("the stream has no chunks")
    return read


def parsed(written: Any) -> Any:
    """Parse JSON text, for APIs that send arguments in pieces and expect them back as an object.

    Empty text means no arguments. Text that is not a JSON object is returned unchanged: that call is malformed.
    """
    if not isinstance(written, str):
        return written
    call = tool_call(None, None, written)
    return written if call.malformed is not None else dict(call.arguments)


def gathered(message: dict[str, Any], delta: Mapping[str, Any], *names: str) -> None:
    """Add a piece to a message: text to text, lists to lists; members in `names` are replaced."""
    for key, piece in delta.items():
        known = message.get(key)
        if piece is None:
            continue
        if isinstance(piece, str) and isinstance(known, str) and key not in names:
            message[key] = known + piece
        elif is_list(piece) and is_list(known):
            message[key] = [*known, *piece]
        elif is_object(piece) and is_dict(known):
            gathered(known, piece, *names)
        else:
            message[key] = dict(piece) if is_object(piece) else piece


def gathered_calls(pieces: Iterable[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Assemble calls that come in pieces, in the order in which they began; a piece without an index is a whole."""
    calls: dict[Any, dict[str, Any]] = {}
    for place, piece in enumerate(pieces):
        index = piece.get("index")
        gathered(calls.setdefault(("own", place) if index is None else index, {}), piece, "id", "type", "index", "name")
    return list(calls.values())


def joined_choice(chunks: Iterable[Mapping[str, Any]], *, whole_calls: bool = False) -> dict[str, Any]:
    """Join chunks in OpenAI's form into a completion: its first choice. `whole_calls`: no call comes in pieces."""
    message: dict[str, Any] = {}
    pieces: list[dict[str, Any]] = []
    for chunk in chunks:
        for choice in objects_without_nulls(chunk.get("choices"))[:1]:
            delta = without_nulls(as_object(choice.get("delta")))
            pieces += objects_without_nulls(delta.pop("tool_calls", None))
            gathered(message, delta, "role", "id")
    calls = pieces if whole_calls else gathered_calls(pieces)
    return {"choices": [{"message": {**message, **({"tool_calls": calls} if calls else {})}}]}
