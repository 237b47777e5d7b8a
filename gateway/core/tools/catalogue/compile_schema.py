"""Compiling a schema to check values against, with bounded work: nothing is fetched, and no pattern backtracks.

jsonschema-rs cannot be interrupted and blocks the whole process, so the work has to be estimated beforehand.
"""

import re
from typing import Any, NamedTuple, NoReturn

import jsonschema_rs

from gateway.core.fact_words import plain
from gateway.core.model.json_values import is_dict, is_object
from gateway.core.model.wire import WireObject
from gateway.core.tools.catalogue.check_cost import TooMuchWork, check_compilable
from gateway.core.tools.catalogue.faults import rebuilt
from gateway.core.tools.catalogue.patterns import compiled_states, states

_MOST_STATES = 2_000
"""For one pattern."""
_MOST_COMPILED_STATES = 100_000
"""For all patterns of a schema, each of which is compiled twice: about 0.2 s."""
_EXTENDED = re.compile(r"(?<!\\)\(\?[a-zA-Z]*x")
"""A flag that JSON Schema's patterns do not have, with which they could not be counted: blanks may be anywhere."""
_LINEAR = jsonschema_rs.RegexOptions(size_limit=1024 * 1024)
"""The engine that never backtracks: https://docs.rs/regex/latest/regex/#untrusted-input."""


class CompiledSchema(NamedTuple):
    """A schema prepared for checking, and its validator."""

    schema: dict[str, Any]
    validator: jsonschema_rs.Validator


def compile_schema(schema: WireObject) -> CompiledSchema:
    """Compile a schema, without the patterns that could take long (`without_slow_patterns`).

    Before each check, `check_steps` has to be asked whether it is not too much work.

    Raises:
        TooMuchWork: it is too large, or its cost cannot be counted.
        ValueError: it is not valid, or refers to others.
    """
    check_compilable(schema)
    linear = without_slow_patterns(schema)
    validator = jsonschema_rs.validator_for(linear, retriever=_nothing_is_fetched, pattern_options=_LINEAR)
    return CompiledSchema(linear, validator)


def without_slow_patterns(schema: WireObject) -> dict[str, Any]:
    """Return the schema without patterns that could take long: those with lookaround or backreferences, or too large.

    Patterns that are small enough one by one may be too many together: then the first of them stay. jsonschema-rs's own
    engine for the others (fancy-regex) backtracks without a reliable limit. Raises TooMuchWork if property names have
    such a pattern, because it is then unknown which schema applies to a property.
    """
    left = _MOST_COMPILED_STATES

    def is_taken(pattern: str) -> bool:
        nonlocal left
        if _EXTENDED.search(pattern) or states(pattern) > _MOST_STATES or (work := compiled_states(pattern)) > left:
            return False
        left -= work
        return _is_linear(pattern)

    def taken(value: Any) -> Any:
        if not is_object(value):
            return value
        edited = rebuilt(value, taken)
        if isinstance(pattern := edited.get("pattern"), str) and not is_taken(pattern):
            del edited["pattern"]
        of_names = edited.get("patternProperties")
        if is_dict(of_names) and not all(map(is_taken, of_names)):
            raise TooMuchWork("names of its properties have a pattern that could take too long")
        return edited

    return taken(schema)


def _is_linear(pattern: str) -> bool:
    try:
        jsonschema_rs.validator_for({"pattern": pattern}, pattern_options=_LINEAR)
    except ValueError:
        return False
    return True


def _nothing_is_fetched(uri: str) -> NoReturn:
    raise ValueError(f"{plain(uri, 200)} is not fetched")
