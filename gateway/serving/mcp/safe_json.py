"""JSON made safe to pass on, off the event loop if it has many values."""

from typing import Any

from anyio import to_thread

from gateway.core.model.json_safe import is_json_safe, to_json_safe
from gateway.core.model.json_size import MANY_VALUES


async def json_safe(value: Any) -> Any:
    """Return a JSON value without faults (`to_json_safe`). What takes long, or is rare, is done in a thread."""
    if is_json_safe(value, most_values=MANY_VALUES):
        return value
    return await to_thread.run_sync(to_json_safe, value)
