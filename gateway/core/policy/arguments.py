"""Conditions on the arguments of a call, as JSON schemas. A check is bounded, and never fetches anything."""

from collections.abc import Mapping
from typing import Any

import jsonschema_rs

from gateway.core.tools.catalogue.check_cost import TooMuchWork, check_steps
from gateway.core.tools.catalogue.compile_schema import compile_schema


class ArgumentCondition:
    """A JSON schema that arguments fit or do not fit.

    Raises:
        ValueError: it is not a valid schema, refers to others, or could take too long to check.
    """

    def __init__(self, schema: Mapping[str, Any]) -> None:
        try:
            self._schema, self._validator = compile_schema(schema)
        except TooMuchWork as error:
            raise ValueError(f"cannot be checked: {error}") from None
        except jsonschema_rs.ValidationError as error:
            raise ValueError(f"is not a JSON schema: {error.message}") from None
        if self._schema != schema:  # patterns were left out of it
            raise ValueError("has a pattern that is invalid or too large, or has lookaround or backreferences")

    def holds(self, arguments: Mapping[str, Any]) -> bool | None:
        """Whether the arguments fit. None if that would be too much work to find out."""
        try:
            check_steps(self._schema, arguments)
            return self._validator.is_valid(arguments)
        except (TooMuchWork, ValueError):  # ValueError: nested deeper than the validator goes
            return None
