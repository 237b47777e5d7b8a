"""Converting content to the form that a tool requires, and putting it in the place of its handle."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, cast

from gateway.core.model.kinds import Kind
from gateway.core.tools.arguments.parameters import Form, Parameter, Place

_TYPED_KINDS = {"3d": "three_d_model"}
"""Blazen's names for kinds, if they differ from ours."""


@dataclass(frozen=True)
class Content:
    """The content of a reference. Only what the form needs is set: `data` (base64), `path`, `link`."""

    kind: Kind
    media_type: str
    size: int
    handle: str | None = None
    name: str | None = None
    data: str | None = None
    path: str | None = None
    link: str | None = None


def built(form: Form, content: Content) -> Any:
    """Build the value of an argument."""
    match form:
        case "base64":
            return content.data
        case "data-uri":
            return f"data:{content.media_type};base64,{content.data}"
        case "named-data-uri":
            named = f";name={_escaped(content.name)}" if content.name else ""
            return f"data:{content.media_type}{named};base64,{content.data}"
        case "path":
            return content.path
        case "url":
            return content.link
        case "object":
            return {
                "kind": _TYPED_KINDS.get(content.kind, content.kind),
                "handle_id": content.handle,
                "mime_type": content.media_type,
                "byte_size": content.size,
                "display_name": content.name,
                "source": {"type": "base64", "data": content.data},
            }
        case "openai-file":
            named = {"file_name": content.name} if content.name else {}
            return {"download_url": content.link, "file_id": content.handle, "mime_type": content.media_type, **named}


def place_content(arguments: Mapping[str, Any], values: Mapping[Place, tuple[Parameter, Content]]) -> Mapping[str, Any]:
    """Put content in its places in the arguments, and its media type in the member beside each. All else stays."""
    changed: Any = arguments
    for place, (parameter, content) in values.items():
        changed = _with(changed, place, built(parameter.form, content))
        if parameter.beside is not None:
            changed = _with(changed, (*place[:-1], parameter.beside), content.media_type)
    return cast("Mapping[str, Any]", changed)


def _with(value: Any, place: Place, new: Any) -> Any:
    if not place:
        return new
    step, rest = place[0], place[1:]
    if isinstance(step, int):
        items = cast("list[Any]", value)
        return [*items[:step], _with(items[step], rest, new), *items[step + 1 :]]
    members = cast("Mapping[str, Any]", value)
    return {**members, step: _with(members.get(step), rest, new)}


_UNRESERVED = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~")


def _escaped(name: str) -> str:
    """Percent-encode a name for a URI (RFC 3986 section 2)."""
    encoded = name.encode("utf-8", "replace")
    return "".join(chr(byte) if chr(byte) in _UNRESERVED else f"%{byte:02X}" for byte in encoded)
