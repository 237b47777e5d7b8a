"""What of a host's request goes on to an upstream."""

from collections.abc import Mapping
from typing import Any, cast

PROTOCOL_VERSION = "io.modelcontextprotocol/protocolVersion"
CLIENT_INFO = "io.modelcontextprotocol/clientInfo"
CLIENT_CAPABILITIES = "io.modelcontextprotocol/clientCapabilities"
LOG_LEVEL = "io.modelcontextprotocol/logLevel"
SUBSCRIPTION_ID = "io.modelcontextprotocol/subscriptionId"
SERVER_INFO = "io.modelcontextprotocol/serverInfo"

OF_ONE_HOP = frozenset(
    {PROTOCOL_VERSION, CLIENT_INFO, CLIENT_CAPABILITIES, LOG_LEVEL, SUBSCRIPTION_ID, "progressToken"}
)
"""The `_meta` keys of a request that belong to one connection and mean nothing on the next."""


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
