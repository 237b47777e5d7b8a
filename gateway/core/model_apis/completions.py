"""Completions of any model API: the calls in them, an SDK's object as plain JSON, and the chunks of a stream joined."""

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from gateway.core.model.json_values import as_object, is_dict, is_list, is_object
from gateway.core.model_apis.sdk_json import objects_without_nulls, without_nulls
from gateway.errors import InvalidRequest


@dataclass(frozen=True)
class ToolCall:
    """One call that a model asks for. `id` is the API's id of it, empty where the API gave none (older Gemini).

    `malformed` is what the model wrote instead of a JSON object; then `arguments` is empty, and nothing is called.
    """

    id: str
    name: str
    arguments: Mapping[str, Any] = field(default_factory=dict[str, Any])
    malformed: str | None = None


def tool_call(call_id: Any, name: Any, arguments: Any) -> ToolCall:
    """A call of arguments as JSON text or as an object; nothing at all counts as no arguments."""
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
    """The calls of a message in the form that OpenAI began with: `{"id", "function": {"name", "arguments"}}` each."""
    found = [(call.get("id"), as_object(call.get("function"))) for call in objects_without_nulls(calls)]
    return tuple(tool_call(call_id, function.get("name"), function.get("arguments")) for call_id, function in found)


def first_message(completion: Any) -> Mapping[str, Any]:
    """The message of the first choice, in the form that OpenAI began with. Raises InvalidRequest: not a completion."""
    choices = objects_without_nulls(as_json(completion).get("choices"))
    return as_object(choices[0].get("message") if choices else None)


def only_message(completion: Any) -> Mapping[str, Any]:
    """The message of a completion that has one, and no choices. Raises InvalidRequest: not a completion."""
    return as_object(as_json(completion).get("message"))


def assistant_message(message: Mapping[str, Any]) -> dict[str, Any]:
    """A message as the history takes it: content is there, and calls are without their place in a stream."""
    calls = [without_nulls(call, "index") for call in objects_without_nulls(message.get("tool_calls"))]
    kept = without_nulls(message, "tool_calls")
    return {"content": "", **kept, "role": "assistant", **({"tool_calls": calls} if calls else {})}


def as_json(completion: Any) -> Mapping[str, Any]:
    """A completion as JSON on the wire: a mapping as it is, an SDK's object by its own dump, without what is not set.

    Raises:
        InvalidRequest: it is neither.
    """
    if is_object(completion):
        return completion
    dump: Any = getattr(completion, "model_dump", None)
    if callable(dump):
        # SDKs construct their objects without validation, so a dump may meet values that the types do not have.
        return as_object(dump(mode="json", by_alias=True, exclude_none=True, warnings=False))
    dump = getattr(completion, "to_dict", None)
    if callable(dump):
        return as_object(dump())
    raise InvalidRequest(f"a completion has to be the SDK's object or its JSON, not {type(completion).__name__}")


def _text(value: Any) -> str:
    return value if isinstance(value, str) else ""


def chunks_as_json(chunks: Iterable[Any]) -> list[Mapping[str, Any]]:
    """The chunks or events of a streamed answer, each as `as_json` has it.

    Raises:
        InvalidRequest: there is none, or one of them is not a chunk.
    """
    read = [as_json(chunk) for chunk in chunks]
    if not read:
        raise InvalidRequest("the stream has no chunks")
    return read


def parsed(written: Any) -> Any:
    """JSON text as the object that it is, for APIs that write arguments in pieces and take them whole.

    Nothing at all is no arguments. What is not an object stays as it is: that call is malformed.
    """
    if not isinstance(written, str):
        return written
    call = tool_call(None, None, written)
    return written if call.malformed is not None else dict(call.arguments)


def gathered(message: dict[str, Any], delta: Mapping[str, Any], *names: str) -> None:
    """Add a piece of a message to what there is: text to text, lists to lists; members in `names` are replaced."""
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
    """The calls that come in pieces, in the order in which they began; a piece without an index is a whole call."""
    calls: dict[Any, dict[str, Any]] = {}
    for place, piece in enumerate(pieces):
        index = piece.get("index")
        gathered(calls.setdefault(("own", place) if index is None else index, {}), piece, "id", "type", "index", "name")
    return list(calls.values())


def joined_choice(chunks: Iterable[Mapping[str, Any]], *, whole_calls: bool = False) -> dict[str, Any]:
    """The completion that chunks in OpenAI's form come to: its first choice. `whole_calls`: no call comes in pieces."""
    message: dict[str, Any] = {}
    pieces: list[dict[str, Any]] = []
    for chunk in chunks:
        for choice in objects_without_nulls(chunk.get("choices"))[:1]:
            delta = without_nulls(as_object(choice.get("delta")))
            pieces += objects_without_nulls(delta.pop("tool_calls", None))
            gathered(message, delta, "role", "id")
    calls = pieces if whole_calls else gathered_calls(pieces)
    return {"choices": [{"message": {**message, **({"tool_calls": calls} if calls else {})}}]}
