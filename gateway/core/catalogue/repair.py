"""What upstreams get wrong in declaring a tool or a resource, and what becomes of it.

Some hosts validate a whole list at once, so that one malformed tool costs them all of them. A tool that cannot be used
as declared is withheld; a malformed member that a tool can do without is left out. Everything else stays as it came,
members that we do not know included.
Source of the shapes: https://modelcontextprotocol.io/specification/2025-11-25/schema (Tool, ToolAnnotations, Icon).
"""

import re
from collections.abc import Callable, Mapping
from typing import Any, cast

from gateway.core.model.wire import WireObject


def unusable(tool: Any) -> str | None:
    """Why a tool cannot be offered at all, in words; None when it can."""
    if not isinstance(tool, Mapping):
        return "it is no object"
    declared = cast("WireObject", tool)
    name = declared.get("name")
    if not isinstance(name, str) or not name.strip():
        return "it has no name"
    schema = declared.get("inputSchema")
    if not is_object_schema(schema):
        return 'its inputSchema is no schema of type "object"'
    return None


def repaired(tool: WireObject) -> tuple[dict[str, Any], tuple[str, ...]]:
    """The tool without what a host would fail on, and each change in words. What is right stays the same object."""
    edited, changes = dict(tool), list[str]()
    for member, is_right in _MEMBERS.items():
        if member in edited and not is_right(edited[member]):
            del edited[member]
            changes.append(f"malformed {member} left out")
    annotations = edited.get("annotations")
    if annotations is not None:
        wrong = [hint for hint, value in annotations.items() if not _HINTS.get(hint, _anything)(value)]
        if wrong:
            edited["annotations"] = {hint: value for hint, value in annotations.items() if hint not in wrong}
            changes.extend(f"malformed annotations.{hint} left out" for hint in wrong)
    changes.extend(_tamed(edited))
    return edited, tuple(changes)


def repaired_resource(declared: Any, key: str) -> dict[str, Any] | None:
    """A resource, or a resource template, without what a host would fail on; `key` is the member that has to be a uri.

    None when it cannot be listed at all: it is no object, or has no uri or no name.
    """
    if not isinstance(declared, Mapping):
        return None
    resource = dict(cast("WireObject", declared))
    for member in (key, "name"):
        if not isinstance(resource.get(member), str) or not resource[member]:
            return None
    for member, is_right in _RESOURCE_MEMBERS.items():
        if member in resource and not is_right(resource[member]):
            del resource[member]
    for member in ("name", "title", "description"):
        if member in resource:
            resource[member] = visible(resource[member])
    return resource


def _tamed(tool: dict[str, Any]) -> list[str]:
    """Makes control characters visible in what hosts print: escape sequences there can hide text or fake it."""
    changes = list[str]()
    for member in ("title", "description"):
        if member in tool and (tame := visible(tool[member])) != tool[member]:
            tool[member] = tame
            changes.append(f"control characters in its {member} made visible")
    annotations = tool.get("annotations")
    if annotations and (title := annotations.get("title")) and (tame := visible(title)) != title:
        tool["annotations"] = {**annotations, "title": tame}
        changes.append("control characters in its annotations.title made visible")
    return changes


def visible(text: str) -> str:
    """The text with control characters as the pictures that Unicode has for them; tabs and line breaks stay."""
    return text.translate(_PICTURES) if _CONTROL.search(text) else text


_CONTROL = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f]")
_PICTURES: Mapping[int, int] = {
    **{code: 0x2400 + code for code in range(0x20) if chr(code) not in "\t\n\r"},
    0x7F: 0x2421,
    **dict.fromkeys(range(0x80, 0xA0), 0xFFFD),
}


def is_object_schema(schema: Any) -> bool:
    """Whether a schema is one for objects, as far as hosts look at it."""
    if not isinstance(schema, Mapping):
        return False
    members = cast("WireObject", schema)
    return (
        members.get("type") == "object"
        and isinstance(members.get("properties", {}), Mapping)
        and _are_texts(members.get("required", []))
    )


def _is_text(value: Any) -> bool:
    return isinstance(value, str)


def _is_flag(value: Any) -> bool:
    return isinstance(value, bool)


def _is_count(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0


def _is_object(value: Any) -> bool:
    return isinstance(value, Mapping)


def _are_texts(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(item, str) for item in cast("list[Any]", value))


def _are_icons(value: Any) -> bool:
    return isinstance(value, list) and all(
        isinstance(icon, Mapping) and isinstance(cast("WireObject", icon).get("src"), str)
        for icon in cast("list[Any]", value)
    )


def _anything(_: Any) -> bool:
    return True


_MEMBERS: Mapping[str, Callable[[Any], bool]] = {
    "title": _is_text,
    "description": _is_text,
    "outputSchema": _is_object,
    "annotations": _is_object,
    "icons": _are_icons,
    "execution": _is_object,
    "_meta": _is_object,
}
_RESOURCE_MEMBERS: Mapping[str, Callable[[Any], bool]] = {
    "title": _is_text,
    "description": _is_text,
    "mimeType": _is_text,
    "size": _is_count,
    "annotations": _is_object,
    "icons": _are_icons,
    "_meta": _is_object,
}
_HINTS: Mapping[str, Callable[[Any], bool]] = {
    "title": _is_text,
    "readOnlyHint": _is_flag,
    "destructiveHint": _is_flag,
    "idempotentHint": _is_flag,
    "openWorldHint": _is_flag,
}
