"""Logs, traces and metrics: what the gateway tells those who run it.

`Telemetry` is loaded when it is asked for: it stands on OpenTelemetry's API, which only a gateway needs.
"""

from typing import TYPE_CHECKING, Any

from gateway.telemetry.logs import configure_logging, make_formatter
from gateway.telemetry.requests import new_request, request_id

if TYPE_CHECKING:
    from gateway.telemetry.telemetry import Telemetry

__all__ = ["Telemetry", "configure_logging", "make_formatter", "new_request", "request_id"]


def __getattr__(name: str) -> Any:
    if name != "Telemetry":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from gateway.telemetry.telemetry import Telemetry

    return Telemetry
