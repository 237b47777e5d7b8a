"""The output schema with which a tool is offered to a host: as it is declared, opened for one line, or none."""

from typing import Any, NamedTuple

from gateway.core.model.json_values import as_object, is_object
from gateway.core.own_names import LEFT_OUT
from gateway.core.profiles.profile import Profile
from gateway.core.tools.catalogue.repair import is_object_schema

_CLOSING = ("additionalProperties", "unevaluatedProperties")
_LINE = {"type": "string", "description": "What was left out of this content, and how to read it."}


class OfferedSchema(NamedTuple):
    """An output schema, or None if the tool is offered without one, and what was changed, in words."""

    schema: Any
    change: str | None = None


def offered_output_schema(
    declared: Any, profile: Profile, *, for_a_page: bool, objects_only: bool, has_budget: bool = False
) -> OfferedSchema:
    """Return how a host of this profile is offered an output schema.

    `for_a_page`: a page reads the results too. `has_budget`: the tool has a budget in tokens of its own.
    """
    if profile.structured.send != "always" and not for_a_page:
        # Clients fail a call whose tool declares one and whose result has no structured content.
        return OfferedSchema(None, "outputSchema removed, because this host is sent no structured content")
    if objects_only and not is_object_schema(declared):
        return OfferedSchema(None, "outputSchema removed, because this host takes only schemas for objects")
    may_be_cut = has_budget or _has_limit(profile)
    if not may_be_cut or for_a_page or profile.structured.is_read_with_text or not _is_closed(declared):
        return OfferedSchema(declared)
    # What was cut is said in the content itself, since the model may read nothing else.
    opened = {**declared, "properties": {**as_object(declared.get("properties")), LEFT_OUT: _LINE}}
    return OfferedSchema(opened, "outputSchema accepts a line that says what was cut")


def _has_limit(profile: Profile) -> bool:
    """Whether the profile has any limit that structured content is cut to."""
    return any((profile.structured.max_chars, profile.limits.result_chars, profile.tokens.max_result))


def _is_closed(schema: Any) -> bool:
    """Whether an object that fits must not have further members."""
    return is_object(schema) and any(schema.get(keyword) not in (None, True, {}) for keyword in _CLOSING)
