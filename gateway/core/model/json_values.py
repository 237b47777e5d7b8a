"""Narrowing JSON that comes from outside: whether a value is what it must be, and what it is then.

The guards tell the type checker what `isinstance` alone cannot, the types of what is inside; nothing is copied.
Standard library only.
"""

from collections.abc import Mapping
from typing import Any, TypeGuard


def is_object(value: object) -> TypeGuard[Mapping[str, Any]]:
    """Whether a value is a JSON object."""
    return isinstance(value, Mapping)


def is_dict(value: object) -> TypeGuard[dict[str, Any]]:
    """Whether a value is a JSON object that was just parsed, or is ours to change."""
    return isinstance(value, dict)


def is_list(value: object) -> TypeGuard[list[Any]]:
    """Whether a value is a JSON array."""
    return isinstance(value, list)


def as_object(value: object) -> Mapping[str, Any]:
    """The value if it is a JSON object, else an empty one."""
    return value if is_object(value) else {}


def as_dict(value: object) -> dict[str, Any] | None:
    """The value if it is a JSON object that was just parsed, else None."""
    return value if is_dict(value) else None


def as_list(value: object) -> list[Any]:
    """The value if it is a JSON array, else an empty one."""
    return value if is_list(value) else []


def as_text(value: object) -> str | None:
    """The value if it is a text, else None."""
    return value if isinstance(value, str) else None


def objects_in(value: object) -> list[Mapping[str, Any]]:
    """The objects in a JSON array; none where the value is not one."""
    return [item for item in as_list(value) if is_object(item)]
