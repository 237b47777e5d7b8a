"""JSON as SDKs write it: with null for members that the API leaves out, above all in streamed completions."""

from collections.abc import Mapping
from typing import Any

from gateway.core.model.json_values import as_list, is_dict, objects_in


def objects_without_nulls(value: Any) -> list[dict[str, Any]]:
    """Return the objects of a list, each without its nulls."""
    return [without_nulls(item) for item in objects_in(value)]


def numbered_objects(value: Any) -> list[tuple[int, dict[str, Any]]]:
    """Return the objects of a list unchanged, each with its index."""
    return [(index, item) for index, item in enumerate(as_list(value)) if is_dict(item)]


def without_nulls(item: Mapping[str, Any], *keys: str) -> dict[str, Any]:
    """Return the object without its nulls and without `keys`."""
    return {key: value for key, value in item.items() if value is not None and key not in keys}
