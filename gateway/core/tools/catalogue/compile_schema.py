"""Compiling a schema to check values against, with bounded work: nothing is fetched, and no pattern backtracks.

jsonschema-rs cannot be interrupted and blocks the whole process, so the work has to be estimated beforehand.
"""

from typing import Any, NamedTuple, NoReturn

import jsonschema_rs

from gateway.core.model.json_values import is_dict, is_object
from gateway.core.model.wire import WireObject
from gateway.core.tools.catalogue.check_cost import TooMuchWork, check_compilable
from gateway.core.tools.catalogue.faults import rebuilt
from gateway.core.tools.catalogue.patterns import states
from gateway.core.wording import plain

_MOST_STATES = 2_000
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

    jsonschema-rs's own engine for such patterns (fancy-regex) backtracks without a reliable limit. Raises TooMuchWork
    if property names have such a pattern, because it is then unknown which schema applies to a property.
    """

    def taken(value: Any) -> Any:
        if not is_object(value):
            return value
        edited = rebuilt(value, taken)
        if isinstance(pattern := edited.get("pattern"), str) and not _is_linear(pattern):
            del edited["pattern"]
        of_names = edited.get("patternProperties")
        if is_dict(of_names) and not all(map(_is_linear, of_names)):
            raise TooMuchWork("names of its properties have a pattern that could take too long")
        return edited

    return taken(schema)


def _is_linear(pattern: str) -> bool:
    if states(pattern) > _MOST_STATES:
        return False
    try:
        jsonschema_rs.validator_for({"pattern": pattern}, pattern_options=_LINEAR)
    except ValueError:
        return False
    return True


def _nothing_is_fetched(uri: str) -> NoReturn:
    raise ValueError(f"{plain(uri, 200)} is not fetched")
