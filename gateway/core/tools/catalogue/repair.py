"""Repairing what upstreams get wrong in declaring a tool, a prompt or a resource.

Some hosts validate a whole list at once, so that one malformed tool costs them all of them. A declaration that cannot
be used is withheld; a malformed member that is not required is left out. Everything else is kept, including unknown
members. Source of the shapes: https://modelcontextprotocol.io/specification/2025-11-25/schema (Tool, ToolAnnotations,
Prompt, PromptArgument, Resource, Annotations, Icon).
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from pydantic_core import Url

from gateway.core.fact_words import plain
from gateway.core.model.json_shape import DEEPEST as MOST_LEVELS
from gateway.core.model.json_shape import NESTED_TOO_DEEPLY, is_deep
from gateway.core.model.json_values import as_object, is_list, is_object
from gateway.core.model.wire import WireObject
from gateway.core.tools.catalogue.faults import Fault, faults
from gateway.core.tools.catalogue.hidden_text import tame_members, tame_tool
from gateway.core.tools.catalogue.refs import without_broken_refs

_Look = Callable[[Any], tuple[Fault, ...]]
"""A function that finds the faults of a schema: `faults`, or a `FaultMemo`."""


def unusable(tool: Any, look: _Look = faults) -> str | None:
    """Return why a tool cannot be offered at all; None if it can. `look` finds the faults of its schema."""
    if not is_object(tool):
        return "it is not an object"
    name = tool.get("name")
    if not isinstance(name, str) or not name.strip():
        return "it has no name"
    schema = tool.get("inputSchema")
    if NESTED_TOO_DEEPLY in (name, schema) or is_deep(tool):
        return f"it nests deeper than {MOST_LEVELS} levels"
    if not is_object_schema(schema):
        return 'its inputSchema is not a schema of type "object"'
    invalid = next((fault for fault in look(schema) if fault.kind == "malformed"), None)
    return None if invalid is None else f"its inputSchema is invalid ({plain(str(invalid), 200)})"


def withheld(tools: Iterable[Any]) -> Iterator[tuple[str, str]]:
    """Yield the tools that cannot be offered: the name of each for people, and the reason."""
    for place, tool in enumerate(tools, 1):
        if (why := unusable(tool)) is not None:
            yield shown_name(tool, place), why


def shown_name(tool: Any, place: int) -> str:
    """Return the name of a tool for people; for one without a name, its place in the list, counted from 1."""
    name = declared_name(tool)
    return f"tool number {place}" if name is None else plain(name, 100)


def declared_name(declared: Any) -> str | None:
    """Return the name of a tool or a prompt as declared; None if it has none, or one that nested too deeply."""
    name = as_object(declared).get("name")
    return name if isinstance(name, str) and name.strip() and name != NESTED_TOO_DEEPLY else None


def repaired(tool: WireObject, look: _Look = faults) -> tuple[dict[str, Any], tuple[str, ...]]:
    """Remove what a host would fail on from the tool, and describe each change. Valid parts are not copied."""
    edited, changes = _without_malformed(tool, _MEMBERS)
    if "outputSchema" in edited and not _is_sound(edited["outputSchema"], look):
        del edited["outputSchema"]
        changes.insert(0, "malformed outputSchema left out")
    annotations = edited.get("annotations")
    if annotations is not None:
        wrong = [hint for hint, value in annotations.items() if not _HINTS.get(hint, _anything)(value)]
        if wrong:
            edited["annotations"] = {hint: value for hint, value in annotations.items() if hint not in wrong}
            changes.extend(f"malformed annotations.{hint} left out" for hint in wrong)
    changes.extend(tame_tool(edited))
    kinds = {fault.kind for fault in look(edited["inputSchema"])}
    if kinds & {"dangling", "external"} and "deep" not in kinds:
        edited["inputSchema"], broken = without_broken_refs(edited["inputSchema"])
        if broken:
            changes.append(f"references in inputSchema that lead nowhere removed: {plain(', '.join(broken), 200)}")
    return edited, tuple(changes)


def repaired_resource(declared: Any, key: str) -> dict[str, Any] | None:
    """Remove what a host would fail on from a resource or a resource template; `key` is the member that must be a URI.

    None if it cannot be listed at all: it is not an object, nests too deeply, or has no URI or no name. Clients that
    read URIs as such (the Python SDK 1.x) refuse a whole list for one that is none.
    """
    if not is_object(declared):
        return None
    if is_deep(declared):
        return None
    resource, _ = _without_malformed(declared, _RESOURCE_MEMBERS)
    for member in (key, "name"):
        if not _is_text(resource.get(member)) or not resource[member]:
            return None
    if key == "uri" and not _is_uri(resource["uri"]):
        return None
    if (annotations := resource.get("annotations")) is not None:
        resource["annotations"], _ = _without_malformed(annotations, _ANNOTATIONS)
    tame_members(resource, ("name", "title", "description"))
    return resource


def unusable_prompt(prompt: Any) -> str | None:
    """Return why a prompt cannot be offered at all; None if it can."""
    if not is_object(prompt):
        return "it is not an object"
    name, arguments = prompt.get("name"), prompt.get("arguments")
    if not isinstance(name, str) or not name.strip():
        return "it has no name"
    if NESTED_TOO_DEEPLY in (name, arguments) or is_deep(prompt):
        return f"it nests deeper than {MOST_LEVELS} levels"
    if arguments is not None and not (is_list(arguments) and all(map(_has_name, arguments))):
        return "its arguments are not a list of objects with names"
    return None


def repaired_prompt(prompt: WireObject) -> tuple[dict[str, Any], tuple[str, ...]]:
    """Remove what a host would fail on from the prompt, and describe each change. Valid parts are not copied."""
    edited, changes = _without_malformed(prompt, _PROMPT_MEMBERS)
    if edited.get("arguments", ()) is None:
        del edited["arguments"]
    changes += tame_members(edited, ("title", "description"))
    arguments: list[dict[str, Any]] = []
    for argument in edited.get("arguments", ()):
        sound, wrong = _without_malformed(argument, _ARGUMENT_MEMBERS)
        wrong += tame_members(sound, ("title", "description"))
        changes += [f"argument {plain(sound['name'], 100)}: {change}" for change in wrong]
        arguments.append(sound)
    if arguments and arguments != edited["arguments"]:
        edited["arguments"] = arguments
    return edited, tuple(changes)


def _without_malformed(
    declared: WireObject, members: Mapping[str, Callable[[Any], bool]]
) -> tuple[dict[str, Any], list[str]]:
    edited, changes = dict(declared), list[str]()
    for member, is_right in members.items():
        if member in edited and not is_right(edited[member]):
            del edited[member]
            changes.append(f"malformed {member} left out")
    return edited, changes


def is_object_schema(schema: Any) -> bool:
    """Whether a schema is one for objects, as far as hosts check."""
    if not is_object(schema):
        return False
    return (
        schema.get("type") == "object"
        and isinstance(schema.get("properties", {}), Mapping)
        and _are_texts(schema.get("required", []))
    )


def _is_text(value: Any) -> bool:
    return isinstance(value, str) and value != NESTED_TOO_DEEPLY


def _is_uri(text: str) -> bool:
    """Whether strict clients take a text for a URI: by the parser of the Python SDK 1.x, whose lists have `AnyUrl`."""
    try:
        Url(text)
    except ValueError:
        return False
    return True


def _is_flag(value: Any) -> bool:
    return isinstance(value, bool)


def _is_count(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0


def _is_object(value: Any) -> bool:
    return isinstance(value, Mapping)


def _are_texts(value: Any) -> bool:
    return is_list(value) and all(isinstance(item, str) for item in value)


def _is_sound(schema: Any, look: _Look) -> bool:
    """Whether an output schema can be compiled: clients fail on a whole list because of one that cannot."""
    unsound = ("malformed", "dangling", "external")
    return isinstance(schema, Mapping) and not any(fault.kind in unsound for fault in look(schema))


def _are_icons(value: Any) -> bool:
    return is_list(value) and all(map(_is_icon, value))


def _is_icon(value: Any) -> bool:
    if not is_object(value) or not isinstance(value.get("src"), str):
        return False
    return all(is_right(value[member]) for member, is_right in _ICON_MEMBERS.items() if member in value)


def _is_theme(value: Any) -> bool:
    return isinstance(value, str) and value in ("light", "dark")


def _are_roles(value: Any) -> bool:
    return is_list(value) and all(isinstance(role, str) and role in ("user", "assistant") for role in value)


def _is_share(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value <= 1


def _is_execution(value: Any) -> bool:
    """Whether it is what tools say of tasks (2025-11-25, ToolExecution)."""
    support = value.get("taskSupport", "forbidden") if is_object(value) else None
    return isinstance(support, str) and support in ("forbidden", "optional", "required")


def _has_name(value: Any) -> bool:
    return is_object(value) and isinstance(value.get("name"), str)


def _anything(_: Any) -> bool:
    return True


_MEMBERS: Mapping[str, Callable[[Any], bool]] = {
    "title": _is_text,
    "description": _is_text,
    "annotations": _is_object,
    "icons": _are_icons,
    "execution": _is_execution,
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
_ANNOTATIONS: Mapping[str, Callable[[Any], bool]] = {
    "audience": _are_roles,
    "priority": _is_share,
    "lastModified": _is_text,
}
_ICON_MEMBERS: Mapping[str, Callable[[Any], bool]] = {
    "mimeType": _is_text,
    "sizes": _are_texts,
    "theme": _is_theme,
}
_PROMPT_MEMBERS: Mapping[str, Callable[[Any], bool]] = {
    "title": _is_text,
    "description": _is_text,
    "icons": _are_icons,
    "_meta": _is_object,
}
_ARGUMENT_MEMBERS: Mapping[str, Callable[[Any], bool]] = {
    "title": _is_text,
    "description": _is_text,
    "required": _is_flag,
}
_HINTS: Mapping[str, Callable[[Any], bool]] = {
    "title": _is_text,
    "readOnlyHint": _is_flag,
    "destructiveHint": _is_flag,
    "idempotentHint": _is_flag,
    "openWorldHint": _is_flag,
}
