"""Logs, traces and metrics for the operators of a gateway.

`Telemetry` is loaded on first access: it is based on OpenTelemetry's API, which only a running gateway needs.
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
