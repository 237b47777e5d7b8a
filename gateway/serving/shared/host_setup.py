"""The set-up of a host: `initialize`, the log level and the subscriptions, which each gateway is told in turn.

Standard library only.
"""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from gateway.core.model.json_values import as_object
from gateway.core.model.wire import CLIENT_CAPABILITIES, CLIENT_INFO, PROTOCOL_VERSION
from gateway.serving.shared.attachment import Attachment
from gateway.serving.shared.relay_options import RelayOptions

if TYPE_CHECKING:
    from gateway.serving.mcp.early_stdio import EarlyStdio

_MOST_SUBSCRIPTIONS = 1_000
_OWN = "mcp-gateway relay "


class HostSetup:
    """Notes what a host sets up, and repeats it to the next gateway."""

    def __init__(self, opening: "EarlyStdio", options: RelayOptions, toolsets: tuple[str, ...]) -> None:
        self._opening = opening
        self._options = options
        self._toolsets = toolsets
        self._own_ids = 0
        self._introduced: Mapping[str, Any] | None = None
        self._level: Mapping[str, Any] | None = None
        self._subscriptions: dict[str, Mapping[str, Any]] = {}
        self.was_initialized = False

    def description(self) -> dict[str, Any] | None:
        """Describe the host as far as it has introduced itself, so that upstreams can be opened for it."""
        handshake = self._opening.handshake
        started_with = {
            "profile": self._options.profile,
            "model": self._options.model,
            "toolsets": list(self._toolsets),
        }
        if (client := handshake.client) is not None:
            told = {"client_info": client["clientInfo"], "capabilities": client["capabilities"]}
            return {"revision": handshake.revision, **told, **started_with}
        if (envelope := handshake.envelope) is not None:
            told = {"client_info": envelope.get(CLIENT_INFO), "capabilities": envelope.get(CLIENT_CAPABILITIES)}
            return {"revision": envelope[PROTOCOL_VERSION], **told, **started_with}
        return None

    def note(self, message: Mapping[str, Any]) -> None:
        """Note a request or notification of the host, if it sets something up."""
        method, params = message["method"], as_object(message.get("params"))
        if method == "notifications/initialized":
            self.was_initialized = True
        elif method == "logging/setLevel":
            self._level = params
        elif method == "resources/subscribe" and len(self._subscriptions) < _MOST_SUBSCRIPTIONS:
            self._subscriptions[str(params.get("uri"))] = params
        elif method == "resources/unsubscribe":
            self._subscriptions.pop(str(params.get("uri")), None)

    def introduce(self, attachment: Attachment) -> None:
        """Send `initialize` to a gateway that has not had it, if the host has sent it."""
        client = self._opening.handshake.client
        if client is not None and client is not self._introduced:
            self._introduced = client
            self._request(attachment, "initialize", client)

    def repeat(self, attachment: Attachment) -> None:
        """Send all that the host has set up to a new gateway."""
        self._introduced = None
        self.introduce(attachment)
        if self.was_initialized:
            attachment.send({"jsonrpc": "2.0", "method": "notifications/initialized"})
        if self._level is not None:
            self._request(attachment, "logging/setLevel", self._level)
        for params in self._subscriptions.values():
            self._request(attachment, "resources/subscribe", params)

    def _request(self, attachment: Attachment, method: str, params: Mapping[str, Any]) -> None:
        """Send a request of our own, the answer to which the host does not see (`is_own_request`)."""
        self._own_ids += 1
        attachment.send({"jsonrpc": "2.0", "id": f"{_OWN}{self._own_ids}", "method": method, "params": params})


def is_own_request(key: str | int) -> bool:
    """Whether this is the id of a request of `HostSetup`, or one of the host's which looks like it."""
    return isinstance(key, str) and key.startswith(_OWN)
