"""What of a host's request goes on to an upstream."""

from collections.abc import Mapping
from typing import Any, cast

from gateway.core.model.wire import OF_ONE_HOP


def onward(params: Mapping[str, Any] | None) -> dict[str, Any]:
    """The params of a request without what belongs to the host's own connection.

    Everything else in `_meta` stays (trace context, what a host says about the call); an empty `_meta` goes.
    """
    kept = dict(params or {})
    meta = kept.pop("_meta", None)
    if isinstance(meta, Mapping):
        passed = {key: value for key, value in cast("Mapping[str, Any]", meta).items() if key not in OF_ONE_HOP}
        if passed:
            kept["_meta"] = passed
    return kept
