"""Raw content: what an upstream provides under `_meta` for one target goes into the tool's message unchanged.

It is as untrusted as any other input: only what is allowed in a tool's content is accepted, within limits, so that it
can be neither another message nor another role.
"""

import copy
from collections.abc import Mapping
from typing import Any

from gateway.core.model.envelope import RAW_KEY, Envelope
from gateway.core.model.json_values import as_object, is_dict, is_list
from gateway.core.model.notes import Note
from gateway.core.profiles.model_profile import ModelProfile, ModelRaw

_MOST_BLOCKS = 100
_MOST_CHARS = 20_000_000
_MOST_VALUES = 100_000
_DEEPEST = 40
_FOREIGN = frozenset({"role", "tool_call_id", "tool_use_id", "tool_calls", "call_id", "toolUseId"})
_JSON: Mapping[str, type] = {"object": dict, "list": list, "string": str}


def raw_content(envelope: Envelope, profile: ModelProfile) -> tuple[Any, Note | None]:
    """Return the content in the API's own form, None if there is none that may be sent, and a note in either case."""
    offered: Any = envelope.meta.get(RAW_KEY)
    if offered is None:
        return None, None
    if not is_dict(offered):
        return None, Note(kind="broken", text=f"{RAW_KEY} is not an object with the names of targets")
    value = offered.get(profile.name)
    if value is None:
        return None, None
    why = _out_of_bounds(value) or _misfit(value, profile.raw)
    if why is None and envelope.is_error and profile.error.text_only and not _only_text(value):
        why = "only text is allowed beside the error flag"
    if why is not None:
        return None, Note(kind="broken", text=f"the raw shape for {profile.name} is not used: {why}")
    return copy.deepcopy(value), Note(
        kind="raw", text=f"the tool's own shape for {profile.name} in place of its content"
    )


def _out_of_bounds(value: Any) -> str | None:
    """Return why a value is too large, too deep or not JSON; None if it is within bounds."""
    waiting: list[tuple[Any, int]] = [(value, 0)]
    chars = values = 0
    while waiting:
        one, depth = waiting.pop()
        values += 1
        if is_dict(one):
            chars += sum(len(str(key)) for key in one)
            waiting += [(member, depth + 1) for member in one.values()]
        elif is_list(one):
            waiting += [(item, depth + 1) for item in one]
        elif isinstance(one, str):
            chars += len(one)
        elif one is not None and not isinstance(one, bool | int | float):
            return f"a {type(one).__name__} is not JSON"
        if depth > _DEEPEST or values > _MOST_VALUES or chars > _MOST_CHARS:
            return "it is too large or nested too deeply"
    return None


def _misfit(value: Any, rules: ModelRaw) -> str | None:
    """Return why a value is not allowed in a tool's message of this API; None if it is."""
    if rules.form == "members":
        return _misfit_members(value, rules)
    if not is_list(value) or not value:
        return "it is not a list of blocks"
    if len(value) > _MOST_BLOCKS:
        return f"it has more than {_MOST_BLOCKS} blocks"
    return next((why for block in value if (why := _misfit_block(block, rules)) is not None), None)


def _misfit_members(value: Any, rules: ModelRaw) -> str | None:
    if not is_dict(value) or not value:
        return "it is not an object"
    for name, member in value.items():
        if name not in rules.kinds:
            return f"only {', '.join(rules.kinds)} may be given"
        if not isinstance(member, tuple(_JSON[kind] for kind in rules.kinds[name])):
            return f"{name} has to be of type {' or '.join(rules.kinds[name])}"
    return None


def _misfit_block(block: Any, rules: ModelRaw) -> str | None:
    if not is_dict(block):
        return "a block is not an object"
    if rules.form == "keyed":
        kind, inner = next(iter(block.items())) if len(block) == 1 else (None, None)
    else:
        kind, inner = block.get("type"), block
    if not isinstance(kind, str) or kind not in rules.kinds:
        return f"a block has to be one of {', '.join(rules.kinds)}"
    if _FOREIGN & block.keys():
        return "a block may not say whose message it is"
    if rules.kinds[kind] and not is_dict(inner):
        return f"{kind} has to be an object"
    missing = [name for name in rules.kinds[kind] if not _is_there(as_object(inner).get(name))]
    if missing:
        return f"{kind} without {', '.join(missing)}"
    return f"an empty {kind}" if rules.form == "keyed" and not _is_there(inner) else None


def _is_there(value: Any) -> bool:
    return bool(value.strip()) if isinstance(value, str) else bool(value)


def _only_text(value: Any) -> bool:
    return all(as_object(block).get("type") == "text" for block in (value if is_list(value) else [value]))
