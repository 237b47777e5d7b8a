"""What upstreams get wrong in declaring a tool, a prompt or a resource, and what becomes of it.

Some hosts validate a whole list at once, so that one malformed tool costs them all of them. One that cannot be used as
declared is withheld; a malformed member that it can do without is left out. Everything else stays as it came, members
that we do not know included.
Source of the shapes: https://modelcontextprotocol.io/specification/2025-11-25/schema (Tool, ToolAnnotations, Prompt,
PromptArgument, Resource, Icon).
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, cast

from gateway.core.catalogue.faults import faults
from gateway.core.catalogue.refs import without_broken_refs
from gateway.core.model.texts import visible
from gateway.core.model.wire import WireObject
from gateway.core.wording import plain


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
    invalid = next((fault for fault in faults(schema) if fault.kind == "malformed"), None)
    return None if invalid is None else f"its inputSchema is invalid ({plain(str(invalid), 200)})"


def withheld(tools: Iterable[Any]) -> Iterator[tuple[str, str]]:
    """The tools that cannot be offered: the name of each for people, and why."""
    for place, tool in enumerate(tools, 1):
        if (why := unusable(tool)) is not None:
            yield shown_name(tool, place), why


def shown_name(tool: Any, place: int) -> str:
    """The name of a tool for people; of one without a name, its place in the list, which begins at 1."""
    name = cast("WireObject", tool).get("name") if isinstance(tool, Mapping) else None
    return plain(name, 100) if isinstance(name, str) and name.strip() else f"tool number {place}"


def repaired(tool: WireObject) -> tuple[dict[str, Any], tuple[str, ...]]:
    """The tool without what a host would fail on, and each change in words. What is right stays the same object."""
    edited, changes = _without_malformed(tool, _MEMBERS)
    annotations = edited.get("annotations")
    if annotations is not None:
        wrong = [hint for hint, value in annotations.items() if not _HINTS.get(hint, _anything)(value)]
        if wrong:
            edited["annotations"] = {hint: value for hint, value in annotations.items() if hint not in wrong}
            changes.extend(f"malformed annotations.{hint} left out" for hint in wrong)
    changes.extend(_tamed(edited))
    kinds = {fault.kind for fault in faults(edited["inputSchema"])}
    if kinds & {"dangling", "external"} and "deep" not in kinds:
        edited["inputSchema"], broken = without_broken_refs(edited["inputSchema"])
        if broken:
            changes.append(f"references in inputSchema that lead nowhere taken out: {plain(', '.join(broken), 200)}")
    return edited, tuple(changes)


def repaired_resource(declared: Any, key: str) -> dict[str, Any] | None:
    """A resource, or a resource template, without what a host would fail on; `key` is the member that has to be a uri.

    None when it cannot be listed at all: it is no object, or has no uri or no name.
    """
    if not isinstance(declared, Mapping):
        return None
    resource, _ = _without_malformed(cast("WireObject", declared), _RESOURCE_MEMBERS)
    for member in (key, "name"):
        if not isinstance(resource.get(member), str) or not resource[member]:
            return None
    _visible_members(resource, ("name", "title", "description"))
    return resource


def unusable_prompt(prompt: Any) -> str | None:
    """Why a prompt cannot be offered at all, in words; None when it can."""
    if not isinstance(prompt, Mapping):
        return "it is no object"
    declared = cast("WireObject", prompt)
    name, arguments = declared.get("name"), declared.get("arguments")
    if not isinstance(name, str) or not name.strip():
        return "it has no name"
    if arguments is not None and not (
        isinstance(arguments, list) and all(map(_has_name, cast("list[Any]", arguments)))
    ):
        return "its arguments are no list of objects with names"
    return None


def repaired_prompt(prompt: WireObject) -> tuple[dict[str, Any], tuple[str, ...]]:
    """The prompt without what a host would fail on, and each change in words. What is right stays the same object."""
    edited, changes = _without_malformed(prompt, _PROMPT_MEMBERS)
    if edited.get("arguments", ()) is None:
        del edited["arguments"]
    changes += _visible_members(edited, ("title", "description"))
    arguments: list[dict[str, Any]] = []
    for argument in edited.get("arguments", ()):
        sound, wrong = _without_malformed(argument, _ARGUMENT_MEMBERS)
        wrong += _visible_members(sound, ("title", "description"))
        changes += [f"argument {plain(sound['name'], 100)}: {change}" for change in wrong]
        arguments.append(sound)
    if arguments and arguments != edited["arguments"]:
        edited["arguments"] = arguments
    return edited, tuple(changes)


def _tamed(tool: dict[str, Any]) -> list[str]:
    """Makes control characters visible in what hosts print: escape sequences there can hide text or fake it."""
    changes = _visible_members(tool, ("title", "description"))
    annotations = tool.get("annotations")
    if annotations and (title := annotations.get("title")) and (tame := visible(title)) != title:
        tool["annotations"] = {**annotations, "title": tame}
        changes.append("control characters in its annotations.title made visible")
    return changes


def _without_malformed(
    declared: WireObject, members: Mapping[str, Callable[[Any], bool]]
) -> tuple[dict[str, Any], list[str]]:
    edited, changes = dict(declared), list[str]()
    for member, is_right in members.items():
        if member in edited and not is_right(edited[member]):
            del edited[member]
            changes.append(f"malformed {member} left out")
    return edited, changes


def _visible_members(declared: dict[str, Any], members: Iterable[str]) -> list[str]:
    """Makes control characters visible in what hosts print."""
    changes = list[str]()
    for member in members:
        if member in declared and (tame := visible(declared[member])) != declared[member]:
            declared[member] = tame
            changes.append(f"control characters in its {member} made visible")
    return changes


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


def _is_sound_schema(value: Any) -> bool:
    """Clients compile the output schemas of a list, and one that cannot be compiled costs them all of it."""
    unsound = ("malformed", "dangling", "external")
    return isinstance(value, Mapping) and not any(fault.kind in unsound for fault in faults(value))


def _are_icons(value: Any) -> bool:
    return isinstance(value, list) and all(
        isinstance(icon, Mapping) and isinstance(cast("WireObject", icon).get("src"), str)
        for icon in cast("list[Any]", value)
    )


def _has_name(value: Any) -> bool:
    return isinstance(value, Mapping) and isinstance(cast("WireObject", value).get("name"), str)


def _anything(_: Any) -> bool:
    return True


_MEMBERS: Mapping[str, Callable[[Any], bool]] = {
    "title": _is_text,
    "description": _is_text,
    "outputSchema": _is_sound_schema,
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
