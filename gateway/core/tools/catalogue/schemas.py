"""The input schema of a tool in the form for a host profile."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from gateway.core.model.json_size import wire_bytes
from gateway.core.model.texts import cut
from gateway.core.model.wire import WireObject
from gateway.core.profiles.profile import ToolRules
from gateway.core.tools.catalogue.faults import Fault, faults
from gateway.core.tools.catalogue.object_root import with_object_root
from gateway.core.tools.catalogue.refs import inlined
from gateway.core.tools.catalogue.schema_budget import bare, fit_schema, is_too_deep

_BARE = 16_384
"""Bytes for the names and types of a schema that is too deep or too large, if the host has no limit of its own."""


@dataclass(frozen=True)
class Shown:
    """A schema for a host: each change in words; what it no longer says, as sentences for the tool's description.

    `is_looser`: it accepts arguments that the original does not, so these have to be checked against the original.
    """

    schema: WireObject
    changes: tuple[str, ...] = ()
    sentences: tuple[str, ...] = ()
    is_looser: bool = False


def shown_to(schema: WireObject, rules: ToolRules, look: Callable[[Any], tuple[Fault, ...]] = faults) -> Shown:
    """Return the schema as accepted by a host with these rules; the same object if nothing has to change.

    `look` finds the faults of a schema.
    """
    wants = rules.refs == "inline" or rules.root == "object"
    if (wants or rules.schema_max_bytes is not None) and is_too_deep(schema, look):
        shape, sentence = bare(schema, rules.schema_max_bytes or _BARE)
        return Shown(shape, ("inputSchema nested too deeply for this host: names and types kept",), (sentence,), True)
    shown = _without_alternatives(_without_refs(Shown(schema), rules), rules)
    return _small_enough(shown, rules)


def _without_refs(shown: Shown, rules: ToolRules) -> Shown:
    if rules.refs != "inline":
        return shown
    found = inlined(shown.schema)
    if found is None:
        shape, sentence = bare(shown.schema, rules.schema_max_bytes or _BARE)
        change = "inputSchema would be too large with its references replaced: names and types kept"
        return Shown(shape, (*shown.changes, change), (*shown.sentences, sentence), True)
    schema, looser = found
    if schema == shown.schema:
        return shown
    change = "$ref replaced by its target in inputSchema, because this host drops definitions"
    return Shown(schema, (*shown.changes, change), shown.sentences, shown.is_looser or looser)


def _without_alternatives(shown: Shown, rules: ToolRules) -> Shown:
    if rules.root != "object":
        return shown
    found = with_object_root(shown.schema)
    if found.schema == shown.schema:
        return shown
    change = "alternatives at the root of inputSchema merged into one object, because this host accepts none there"
    return Shown(
        found.schema, (*shown.changes, change), (*shown.sentences, *found.sentences), shown.is_looser or found.is_looser
    )


def _small_enough(shown: Shown, rules: ToolRules) -> Shown:
    limit = rules.schema_max_bytes
    if limit is None or (size := wire_bytes(shown.schema)) <= limit:
        return shown
    beginning = f"inputSchema of {size:,} bytes, and this host takes {limit:,}"
    schema, done = fit_schema(shown.schema, limit)
    if done is not None:
        return Shown(schema, (*shown.changes, f"{beginning}: {done}"), shown.sentences, shown.is_looser)
    shape, sentence = bare(shown.schema, limit)
    return Shown(shape, (*shown.changes, f"{beginning}: names and types kept"), (*shown.sentences, sentence), True)


def with_lost_words(description: str, sentences: tuple[str, ...], longest: int | None) -> str:
    """Append what the schema no longer says to a description, keeping it within the limit."""
    if not sentences:
        return description if longest is None else cut(description, longest)
    words = " ".join(sentences)
    if longest is None:
        return f"{description}\n\n{words}".strip()
    words = cut(words, longest)
    room = longest - len(words) - 2
    return f"{cut(description, room)}\n\n{words}".strip() if room > 0 and description else words
