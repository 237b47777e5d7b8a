"""JSON that others wrote, narrowed: what has another type than expected counts as empty."""

from collections.abc import Mapping
from typing import Any, cast


def mapping(value: Any) -> Mapping[str, Any]:
    """The value if it is an object, else an empty one."""
    return cast("Mapping[str, Any]", value) if isinstance(value, Mapping) else {}


def elements(value: Any) -> list[Any]:
    """The value if it is a list, else an empty one."""
    return cast("list[Any]", value) if isinstance(value, list) else []


def objects(value: Any) -> list[dict[str, Any]]:
    """The objects of a list, each without its nulls: SDKs write null where the API says nothing."""
    return [without(cast("Mapping[str, Any]", item)) for item in elements(value) if isinstance(item, Mapping)]


def numbered_objects(value: Any) -> list[tuple[int, dict[str, Any]]]:
    """The objects of a list as they are, each with its index."""
    return [
        (index, cast("dict[str, Any]", item)) for index, item in enumerate(elements(value)) if isinstance(item, dict)
    ]


def without(item: Mapping[str, Any], *keys: str) -> dict[str, Any]:
    """The object without its nulls and without `keys`."""
    return {key: value for key, value in item.items() if value is not None and key not in keys}
