"""Read JSON that replicas share, which a gateway of another version, or anything else, may have written."""

import json
import logging
from collections.abc import Mapping
from typing import Any, cast

from gateway.serving.http.repeated import RepeatedLines

logger = logging.getLogger(__name__)

_lines = RepeatedLines(logger)
_BROKEN = "a record that replicas share is broken, or of another version of the gateway: it counts as missing"


def read_json(text: str | None) -> Any:
    """Return the value; None if there is none, or it cannot be read, which the log says."""
    if text is None:
        return None
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        _lines.warn("record", _BROKEN)
        return None


def read_record(text: str | None) -> Mapping[str, Any] | None:
    """Return an object, likewise."""
    found = read_json(text)
    return cast("Mapping[str, Any]", found) if isinstance(found, dict) else None
