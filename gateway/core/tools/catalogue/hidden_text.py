"""Making visible what is hidden in the words of tools, prompts, resources and messages.

Escape sequences, control characters and characters that nobody sees can hide text from people that models read.
"""

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from gateway.core.model.json_shape import DEEPEST
from gateway.core.model.json_values import as_object, is_list, is_object
from gateway.core.model.texts import has_hidden, visible, without_hidden

_DEMANDS = frozenset(
    {
        *("const", "default", "enum", "type", "format", "pattern", "required", "dependentRequired", "propertyOrdering"),
        *("$schema", "$id", "$ref", "$anchor", "$dynamicRef", "$dynamicAnchor", "$vocabulary", "$recursiveRef"),
        *("contentEncoding", "contentMediaType", "discriminator"),
    }
)
"""The members of a schema whose texts are compared, or are names: another text would be another demand."""
_BY_NAME = frozenset({"properties", "patternProperties", "$defs", "definitions", "dependentSchemas", "dependencies"})
"""The members of a schema that hold schemas by names, which may be those of members of schemas too."""
_SAMPLES = frozenset({"example", "examples", "enumNames", "enumDescriptions", "markdownEnumDescriptions"})
"""The members of a schema that hold no schemas, but values for people and models to read."""

_BLOCK_WORDS = ("text", "name", "title", "description")
"""The members of a block of content, and of the resource in one, that models and people read."""


def tame_tool(tool: dict[str, Any]) -> list[str]:
    """Make everything visible in the words of a tool, in place, and describe each change."""
    changes = tame_members(tool, ("title", "description"))
    annotations = tool.get("annotations")
    if annotations and (title := annotations.get("title")) and (tame := visible(title)) != title:
        tool["annotations"] = {**annotations, "title": tame}
        changes.append(_tamed_words("its annotations.title", title))
    for member in ("inputSchema", "outputSchema"):
        if member in tool and (tame := _tamed_schema(tool[member], DEEPEST)) is not tool[member]:
            tool[member] = tame
            changes.append(f"control or invisible characters in descriptions of its {member} made visible or left out")
    return changes


def tame_members(declared: dict[str, Any], members: Iterable[str]) -> list[str]:
    """Make everything visible in these texts of what is declared, in place, and describe each change."""
    changes = list[str]()
    for member in members:
        if member in declared and (tame := visible(before := declared[member])) != before:
            declared[member] = tame
            changes.append(_tamed_words(f"its {member}", before))
    return changes


def tamed_messages(result: dict[str, Any]) -> dict[str, Any]:
    """Make everything in the description and texts of a `prompts/get` result visible.

    Return the same object if nothing is hidden.
    """
    edited: dict[str, Any] = {}
    described, messages = result.get("description"), result.get("messages")
    if isinstance(described, str) and (tame := visible(described)) is not described:
        edited["description"] = tame
    if is_list(messages):
        after = [_tamed_message(message) for message in messages]
        if _differ(after, messages):
            edited["messages"] = after
    return {**result, **edited} if edited else result


def _tamed_message(message: Any) -> Any:
    content = as_object(message).get("content")
    tame = [_tamed_block(block) for block in content] if is_list(content) else _tamed_block(content)
    if tame is content or (is_list(content) and not _differ(tame, content)):
        return message
    return {**as_object(message), "content": tame}


def _tamed_block(block: Any) -> Any:
    """Leave out what is hidden in the words of a block, and in those of the resource within it."""
    if isinstance(block, str):
        return without_hidden(block)
    if not is_object(block):
        return block
    edited = {key: without_hidden(block[key]) for key in _BLOCK_WORDS if isinstance(block.get(key), str)}
    if is_object(block.get("resource")):
        edited["resource"] = _tamed_block(block["resource"])
    return {**block, **edited} if any(edited[key] is not block[key] for key in edited) else block


def _differ(edited: list[Any], before: list[Any]) -> bool:
    return any(new is not old for new, old in zip(edited, before, strict=True))


def _tamed_words(what: str, text: str) -> str:
    """Describe what `visible` does to a text."""
    done = "invisible characters in {} left out" if has_hidden(text) else "control characters in {} made visible"
    return done.format(what)


def _tamed_schema(schema: Any, left: int) -> Any:
    """Make everything visible in what describes and demands nothing, wherever it is in a schema.

    Members that no version of JSON Schema has are taken for such words, or for schemas: models read them too. Returns
    the same object if nothing is hidden, down to `left` levels. Linear.
    """
    return _tamed_value(schema, left, _tamed_schema, _tamed_member)


def _tamed_member(key: str, below: Any, left: int) -> Any:
    if key in _DEMANDS:
        return below
    if key in _SAMPLES:
        return _tamed_sample(below, left)
    if key not in _BY_NAME or not is_object(below):
        return _tamed_schema(below, left)
    # A list in `dependencies` holds names.
    return _with_changed(below, lambda _, one: one if is_list(one) else _tamed_schema(one, left - 1))


def _tamed_sample(sample: Any, left: int) -> Any:
    """Make everything visible in a value that is only shown; the same object if nothing is hidden."""
    tame = _tamed_value(sample, left, _tamed_sample, lambda _, one, below: _tamed_sample(one, below))
    if not is_object(tame) or not left or not any(map(has_hidden, tame)):
        return tame
    return {visible(key): one for key, one in tame.items()}


def _tamed_value(value: Any, left: int, item: Callable[[Any, int], Any], member: Callable[[str, Any, int], Any]) -> Any:
    """Make a text visible, or the parts of a container with `item` and `member`, which have one level less."""
    if isinstance(value, str):
        return visible(value)
    if is_list(value) and left:
        tame = [item(one, left - 1) for one in value]
        return tame if _differ(tame, value) else value
    if not is_object(value) or not left:
        return value
    return _with_changed(value, lambda key, one: member(key, one, left - 1))


def _with_changed(value: Mapping[str, Any], change: Callable[[str, Any], Any]) -> Mapping[str, Any]:
    """Change each member of an object; the same object if none is changed."""
    edited = {key: change(key, one) for key, one in value.items()}
    return edited if any(edited[key] is not one for key, one in value.items()) else value
