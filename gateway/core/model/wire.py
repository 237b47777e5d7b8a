"""JSON as it travels: parsed, never validated against an SDK's models, never written to."""

from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

Json: TypeAlias = "None | bool | int | float | str | Sequence[Json] | Mapping[str, Json]"
"""Any JSON value."""

WireObject: TypeAlias = Mapping[str, Any]
"""A JSON object as it arrived, or as it is to be sent."""
