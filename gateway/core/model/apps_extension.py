"""The extension by which hosts declare that they show pages (`capabilities.extensions`).

Source: https://github.com/modelcontextprotocol/ext-apps/blob/main/specification/2026-01-26/apps.mdx
"""

from collections.abc import Mapping
from typing import Any

from gateway.core.model.json_values import as_object

EXTENSION = "io.modelcontextprotocol/ui"


def declares(capabilities: Mapping[str, Any]) -> bool:
    """Whether a host declares the extension; some clients declare it without showing anything."""
    return isinstance(_extensions(capabilities).get(EXTENSION), Mapping)


def undeclared(capabilities: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the capabilities without the extension."""
    if not declares(capabilities):
        return capabilities
    rest = {key: value for key, value in _extensions(capabilities).items() if key != EXTENSION}
    return {**capabilities, "extensions": rest}


def _extensions(capabilities: Mapping[str, Any]) -> Mapping[str, Any]:
    declared = capabilities.get("extensions")
    return as_object(declared)
