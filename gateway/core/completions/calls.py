"""What every dialect shares: a call as a model asked for it, and a completion as plain JSON."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, cast

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
    if not isinstance(parsed, dict):
        written = arguments if isinstance(arguments, str) else json.dumps(arguments, default=str)
        return ToolCall(identity, called, malformed=written)
    return ToolCall(identity, called, cast("dict[str, Any]", parsed))


def as_json(completion: Any) -> Mapping[str, Any]:
    """A completion as JSON on the wire: a mapping as it is, an SDK's object by its own dump, without what is not set.

    Raises:
        InvalidRequest: it is neither.
    """
    if isinstance(completion, Mapping):
        return cast("Mapping[str, Any]", completion)
    dump: Any = getattr(completion, "model_dump", None)
    if callable(dump):
        # SDKs construct their objects without validation, so a dump may meet values that the types do not have.
        return mapping(dump(mode="json", by_alias=True, exclude_none=True, warnings=False))
    dump = getattr(completion, "to_dict", None)
    if callable(dump):
        return mapping(dump())
    raise InvalidRequest(f"a completion has to be the SDK's object or its JSON, not {type(completion).__name__}")


def objects(value: Any) -> list[dict[str, Any]]:
    """The objects of a list, each without its nulls: SDKs write null where the API says nothing."""
    items = cast("list[Any]", value) if isinstance(value, list) else []
    return [without(cast("Mapping[str, Any]", item)) for item in items if isinstance(item, Mapping)]


def mapping(value: Any) -> Mapping[str, Any]:
    """The value if it is an object, else an empty one."""
    return cast("Mapping[str, Any]", value) if isinstance(value, Mapping) else {}


def without(item: Mapping[str, Any], *keys: str) -> dict[str, Any]:
    """The object without its nulls and without `keys`."""
    return {key: value for key, value in item.items() if value is not None and key not in keys}


def _text(value: Any) -> str:
    return value if isinstance(value, str) else ""
