"""Arguments held to a tool's own schema, where its host was shown one that takes more."""

import json
import logging
from collections import OrderedDict
from collections.abc import Mapping
from itertools import islice
from typing import Any, NamedTuple, NoReturn, cast

import jsonschema_rs

from gateway.core.model.json_size import size_of
from gateway.core.model.json_values import is_dict, is_list, is_object
from gateway.core.model.texts import cut
from gateway.core.model.wire import WireObject
from gateway.core.tools.catalogue.check_cost import TooMuchWork, check_compilable, check_steps
from gateway.core.tools.catalogue.faults import rebuilt
from gateway.core.tools.catalogue.patterns import states
from gateway.core.wording import plain, unfit_arguments

logger = logging.getLogger(__name__)

_KEPT = 256
"""How many compiled schemas are kept, the last used."""
_MOST = 3
"""How many mistakes of one call are told."""
_LONGEST = 400
_MOST_STATES = 2_000
_MOST_TOLD_STEPS = 5_000
"""Steps of a check above which its mistakes are not told one by one: to write each down is dear."""
_MOST_COPIED = 50_000_000
"""Steps times characters of the arguments above which they are not either."""
_LINEAR = jsonschema_rs.RegexOptions(size_limit=1024 * 1024)
"""The engine that never goes back: https://docs.rs/regex/latest/regex/#untrusted-input."""


class ArgumentChecks:
    """Checks arguments against schemas as upstreams declared them. Nothing that a schema names is ever fetched.

    jsonschema-rs cannot be interrupted and keeps the whole process waiting, so the work is counted beforehand: a check
    that would be too much is left to the upstream, which has to check its arguments itself in any case.
    """

    def __init__(self) -> None:
        self._compiled: OrderedDict[int, tuple[WireObject, _Compiled | None]] = OrderedDict()

    def refusal(self, tool: str, schema: WireObject | None, arguments: object) -> dict[str, Any] | None:
        """The result of a call with arguments that do not fit: an error with each place, and what is wanted there.

        None when they fit, when there is no schema, when it is one that nothing can be checked against, and when that
        would be too much work.
        """
        compiled = None if schema is None else self._validator(tool, schema)
        if schema is None or compiled is None:
            return None
        given: Any = {} if arguments is None else arguments
        try:
            steps = check_steps(compiled.schema, given)
            if compiled.validator.is_valid(given):
                return None
            mistakes = [_mistake(schema, error) for error in _errors(compiled.validator, given, steps)]
        except (TooMuchWork, ValueError) as error:  # ValueError: arguments nested deeper than the validator goes
            logger.debug("arguments of %s were not checked: %s", plain(tool, 100), error)
            return None
        words = unfit_arguments(tool, mistakes or ["as a whole: they do not fit its input schema"])
        return {"content": [{"type": "text", "text": words}], "isError": True}

    def _validator(self, tool: str, schema: WireObject) -> "_Compiled | None":
        # By the very schema, which is kept beside its validator: so no other one can come to have the same id.
        kept = self._compiled.get(id(schema))
        if kept is None:
            kept = self._compiled[id(schema)] = (schema, _compiled(tool, schema))
            while len(self._compiled) > _KEPT:
                self._compiled.popitem(last=False)
        self._compiled.move_to_end(id(schema))
        return kept[1]


class _Compiled(NamedTuple):
    """A schema as it is checked against, and what checks."""

    schema: dict[str, Any]
    validator: jsonschema_rs.Validator


def _compiled(tool: str, schema: WireObject) -> _Compiled | None:
    try:
        check_compilable(schema)
        linear = _with_linear_patterns(schema)
        validator = jsonschema_rs.validator_for(linear, retriever=_nothing_is_fetched, pattern_options=_LINEAR)
        return _Compiled(linear, validator)
    except TooMuchWork as error:
        logger.warning("arguments of %s are not checked against its schema: %s", plain(tool, 100), error)
    except ValueError as error:
        logger.debug("a tool's schema cannot be checked against: %s", plain(str(error), 300))
    return None


def _with_linear_patterns(schema: WireObject) -> dict[str, Any]:
    """The schema without the patterns that could take long: those with a look around, a reference back, or too large.

    jsonschema-rs's own engine for them (fancy-regex) goes back and forth without an end that could be relied on.
    Raises TooMuchWork where the names of properties have such a pattern: which schema is theirs then cannot be said.
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


def _errors(validator: jsonschema_rs.Validator, arguments: Any, steps: int) -> list[jsonschema_rs.ValidationError]:
    """The first mistakes. None where they could be too many: all are found at once, each with a copy of its value."""
    if steps > _MOST_TOLD_STEPS or steps * size_of(arguments, most=_MOST_COPIED).total > _MOST_COPIED:
        return []
    return list(islice(validator.iter_errors(arguments), _MOST))


def _nothing_is_fetched(uri: str) -> NoReturn:
    raise ValueError(f"{plain(uri, 200)} is not fetched")


def _mistake(schema: WireObject, error: jsonschema_rs.ValidationError) -> str:
    """One mistake: where, what, and what the schema says there."""
    where = "/".join(("", *(plain(str(part), 60) for part in error.instance_path)))
    wanted = _wanted(schema, error.schema_path)
    told = f" (wanted: {cut(json.dumps(wanted, ensure_ascii=False), _LONGEST)})" if wanted else ""
    return f"{where or 'as a whole'}: {plain(error.message, _LONGEST)}{told}"


def _wanted(schema: WireObject, path: list[str | int]) -> dict[str, Any]:
    """The rule that was broken: the last keyword on the path with its value."""
    value: Any = schema
    for part in path:
        if isinstance(value, Mapping):
            value = cast("Mapping[str | int, Any]", value).get(part)
        elif is_list(value) and isinstance(part, int) and part < len(value):
            value = value[part]
        else:
            return {}
    return {str(path[-1]): value} if path and value is not None else {}
