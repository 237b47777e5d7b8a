"""Check arguments against a tool's original schema where the host was shown a more permissive one."""

import json
import logging
from collections import OrderedDict
from collections.abc import Mapping
from itertools import islice
from typing import Any, NamedTuple, cast

import jsonschema_rs

from gateway.core.fact_words import plain
from gateway.core.model.json_size import size_of
from gateway.core.model.json_values import is_list
from gateway.core.model.texts import cut
from gateway.core.model.wire import WireObject, text_result
from gateway.core.tools.catalogue.check_cost import TooMuchWork, check_steps
from gateway.core.tools.catalogue.compile_schema import CompiledSchema, compile_schema
from gateway.core.wording import unfit_arguments

logger = logging.getLogger(__name__)

_KEPT = 256
"""Maximum number of compiled schemas kept, most recently used first."""
_MOST = 3
"""Maximum number of mistakes reported per call."""
_LONGEST = 400
_MOST_TOLD_STEPS = 5_000
"""Steps of a check above which its mistakes are not reported one by one, because writing each down is expensive."""
_MOST_COPIED = 50_000_000
"""The same limit for steps times characters of the arguments."""


_MISFIT = "as a whole: they do not fit its input schema"


class ArgumentMistake(NamedTuple):
    """A place in the arguments that does not fit, and what is wrong with it. A missing member has its own place."""

    path: tuple[str | int, ...]
    missing: str | None
    text: str

    @property
    def place(self) -> tuple[str | int, ...]:
        """The path, with the name of what is missing there."""
        return self.path if self.missing is None else (*self.path, self.missing)


class ArgumentChecks:
    """Checks arguments against schemas as upstreams declared them, without ever fetching what a schema refers to.

    jsonschema-rs cannot be interrupted and blocks the whole process, so the work is estimated beforehand. A check that
    would take too long is left to the upstream, which has to check its arguments itself in any case.
    """

    def __init__(self) -> None:
        self._compiled: OrderedDict[int, tuple[WireObject, CompiledSchema | None]] = OrderedDict()

    def refusal(self, tool: str, schema: WireObject | None, arguments: object) -> dict[str, Any] | None:
        """Return an error result that lists each place where the arguments do not fit, and what is expected there.

        Return None if the arguments fit, if there is no schema or none that can be checked against, or if the check
        would be too much work.
        """
        mistakes = self.mistakes(tool, schema, arguments)
        if mistakes is None:
            return None
        words = unfit_arguments(tool, [_told(mistake) for mistake in mistakes] or [_MISFIT])
        return text_result(words, is_error=True)

    def mistakes(
        self, tool: str, schema: WireObject | None, arguments: object, most: int = _MOST
    ) -> list["ArgumentMistake"] | None:
        """Return the first places where the arguments do not fit; none if they could not be found at little cost.

        Return None if the arguments fit, or are not checked: see `refusal`.
        """
        compiled = None if schema is None else self._validator(tool, schema)
        if schema is None or compiled is None:
            return None
        given: Any = {} if arguments is None else arguments
        try:
            steps = check_steps(compiled.schema, given)
            if compiled.validator.is_valid(given):
                return None
            return [_mistake(schema, error) for error in _errors(compiled.validator, given, steps, most)]
        except (TooMuchWork, ValueError) as error:  # ValueError: arguments nested deeper than the validator goes
            logger.debug("arguments of %s were not checked: %s", plain(tool, 100), error)
            return None

    def fits(self, tool: str, schema: WireObject, value: object) -> bool:
        """Whether a value fits a schema for certain: not if checking it would be too much work."""
        compiled = self._validator(tool, schema)
        if compiled is None:
            return False
        try:
            check_steps(compiled.schema, value)
            return compiled.validator.is_valid(value)
        except (TooMuchWork, ValueError):
            return False

    def _validator(self, tool: str, schema: WireObject) -> CompiledSchema | None:
        # Keyed by identity: the schema is kept beside its validator, so no other schema can get the same id.
        kept = self._compiled.get(id(schema))
        if kept is None:
            kept = self._compiled[id(schema)] = (schema, _compiled(tool, schema))
            while len(self._compiled) > _KEPT:
                self._compiled.popitem(last=False)
        self._compiled.move_to_end(id(schema))
        return kept[1]


def _compiled(tool: str, schema: WireObject) -> CompiledSchema | None:
    try:
        return compile_schema(schema)
    except TooMuchWork as error:
        logger.warning("arguments of %s are not checked against its schema: %s", plain(tool, 100), error)
    except ValueError as error:
        logger.debug("a tool's schema cannot be checked against: %s", plain(str(error), 300))
    return None


def _errors(
    validator: jsonschema_rs.Validator, arguments: Any, steps: int, most: int
) -> list[jsonschema_rs.ValidationError]:
    """Return the first mistakes; none if there could be too many, as all are found at once, with copies of values."""
    if steps > _MOST_TOLD_STEPS or steps * size_of(arguments, most=_MOST_COPIED).total > _MOST_COPIED:
        return []
    return list(islice(validator.iter_errors(arguments), most))


def _mistake(schema: WireObject, error: jsonschema_rs.ValidationError) -> ArgumentMistake:
    """Describe one mistake: where it is, what it is, and what the schema says there."""
    wanted = _wanted(schema, error.schema_path)
    told = f" (wanted: {cut(json.dumps(wanted, ensure_ascii=False), _LONGEST)})" if wanted else ""
    kind = error.kind
    missing = kind.property if isinstance(kind, jsonschema_rs.ValidationErrorKind.Required) else None
    return ArgumentMistake(tuple(error.instance_path), missing, f"{plain(error.message, _LONGEST)}{told}")


def _told(mistake: ArgumentMistake) -> str:
    where = "/".join(("", *(plain(str(part), 60) for part in mistake.path)))
    return f"{where or 'as a whole'}: {mistake.text}"


def _wanted(schema: WireObject, path: list[str | int]) -> dict[str, Any]:
    """Return the rule that was broken: the last keyword on the path, with its value."""
    value: Any = schema
    for part in path:
        if isinstance(value, Mapping):
            value = cast("Mapping[str | int, Any]", value).get(part)
        elif is_list(value) and isinstance(part, int) and part < len(value):
            value = value[part]
        else:
            return {}
    return {str(path[-1]): value} if path and value is not None else {}
