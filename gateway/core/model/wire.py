"""JSON as it travels: parsed, never validated against an SDK's models, never written to."""

from collections.abc import Mapping
from typing import Any, TypeAlias

WireObject: TypeAlias = Mapping[str, Any]
"""A JSON object as it arrived, or as it is to be sent."""
