"""Arguments of which a tool's input schema says nothing: often a known one, misspelt."""

from collections.abc import Iterator, Mapping
from itertools import islice
from typing import Any, NamedTuple

from gateway.core.model.json_values import as_object
from gateway.core.near_names import did_you_mean

MOST = 3
"""Arguments that are told of: of a thousand unknown ones, the first few say it."""
_LOOKED_AT = 1_000
_OTHER_NAMES = ("patternProperties", "allOf", "anyOf", "oneOf", "$ref", "if")
"""Keywords with which a schema may name arguments in other places than its properties."""


class UnknownArgument(NamedTuple):
    """The name of an argument that the schema does not have, and a question that suggests similar ones, if any."""

    name: str
    question: str | None


def unknown_arguments(schema: Mapping[str, Any], arguments: Mapping[str, Any]) -> Iterator[UnknownArgument]:
    """Yield at most a few arguments that a schema which names its arguments does not have."""
    known = as_object(schema.get("properties"))
    if not known or schema.get("additionalProperties") not in (None, False):
        return
    if any(key in schema for key in _OTHER_NAMES):
        return
    unknown = (name for name in islice(arguments, _LOOKED_AT) if name not in known)
    for name in islice(unknown, MOST):
        yield UnknownArgument(name, did_you_mean(name, list(known)))
