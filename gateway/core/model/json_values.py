"""Narrowing JSON from outside to the types that it must have.

The guards tell the type checker what `isinstance` alone cannot, the types of the contents; nothing is copied.
Standard library only.
"""

from collections.abc import Mapping
from typing import Any, TypeGuard


def is_object(value: object) -> TypeGuard[Mapping[str, Any]]:
    """Whether a value is a JSON object."""
    return isinstance(value, Mapping)


def is_dict(value: object) -> TypeGuard[dict[str, Any]]:
    """Whether a value is a JSON object that was just parsed, or that we may change."""
    return isinstance(value, dict)


def is_list(value: object) -> TypeGuard[list[Any]]:
    """Whether a value is a JSON array."""
    return isinstance(value, list)


def as_object(value: object) -> Mapping[str, Any]:
    """Return the value if it is a JSON object, else an empty one."""
    return value if is_object(value) else {}


def as_dict(value: object) -> dict[str, Any] | None:
    """Return the value if it is a JSON object that was just parsed, else None."""
    return value if is_dict(value) else None


def as_list(value: object) -> list[Any]:
    """Return the value if it is a JSON array, else an empty one."""
    return value if is_list(value) else []


def as_text(value: object) -> str | None:
    """Return the value if it is a string, else None."""
    return value if isinstance(value, str) else None


def objects_in(value: object) -> list[Mapping[str, Any]]:
    """Return the objects in a JSON array; an empty list if the value is not an array."""
    return [item for item in as_list(value) if is_object(item)]
