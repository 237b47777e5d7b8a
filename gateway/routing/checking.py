"""Arguments held to a tool's own schema, where its host was shown one that takes more."""

import json
import logging
from collections import OrderedDict
from collections.abc import Mapping
from itertools import islice
from typing import Any, NoReturn, cast

import jsonschema_rs

from gateway.core.model.texts import cut
from gateway.core.model.wire import WireObject
from gateway.core.wording import plain, unfit_arguments

logger = logging.getLogger(__name__)

_KEPT = 256
"""How many compiled schemas are kept, the last used."""
_MOST = 3
"""How many mistakes of one call are told."""
_LONGEST = 400


class ArgumentChecks:
    """Checks arguments against schemas as upstreams declared them. Nothing that a schema names is ever fetched."""

    def __init__(self) -> None:
        self._compiled: OrderedDict[int, tuple[WireObject, jsonschema_rs.Validator | None]] = OrderedDict()

    def refusal(self, tool: str, schema: WireObject | None, arguments: object) -> dict[str, Any] | None:
        """The result of a call with arguments that do not fit: an error with each place, and what is wanted there.

        None when they fit, when there is no schema, and when it is one that nothing can be checked against.
        """
        validator = None if schema is None else self._validator(schema)
        if schema is None or validator is None:
            return None
        try:
            found = list(islice(validator.iter_errors({} if arguments is None else arguments), _MOST))
        except ValueError as error:  # arguments nested deeper than the validator goes
            logger.debug("arguments of %s were not checked: %s", plain(tool, 100), error)
            return None
        if not found:
            return None
        words = unfit_arguments(tool, [_mistake(schema, error) for error in found])
        return {"content": [{"type": "text", "text": words}], "isError": True}

    def _validator(self, schema: WireObject) -> jsonschema_rs.Validator | None:
        # By the very schema, which is kept beside its validator: so no other one can come to have the same id.
        kept = self._compiled.get(id(schema))
        if kept is None:
            kept = self._compiled[id(schema)] = (schema, _compiled(schema))
            while len(self._compiled) > _KEPT:
                self._compiled.popitem(last=False)
        self._compiled.move_to_end(id(schema))
        return kept[1]


def _compiled(schema: WireObject) -> jsonschema_rs.Validator | None:
    try:
        return jsonschema_rs.validator_for(dict(schema), retriever=_nothing_is_fetched)
    except ValueError as error:
        logger.debug("a tool's schema cannot be checked against: %s", plain(str(error), 300))
        return None


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
        elif isinstance(value, list) and isinstance(part, int) and part < len(cast("list[Any]", value)):
            value = cast("list[Any]", value)[part]
        else:
            return {}
    return {str(path[-1]): value} if path and value is not None else {}
