"""One MCP server in front of many, whose results arrive in the shape that each host really shows its model.

As a library: `lift` reads a CallToolResult into an `Envelope`, and `lower_turn` writes the results of a turn in the
form that a model API accepts. Nothing is imported before it is used.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from gateway.core.lifting import lift
    from gateway.core.lowering.openai_view import openai_view
    from gateway.core.model.envelope import Envelope
    from gateway.shaping.turns import LoweredTurn, lower_turn, lower_turn_now

__version__ = "0.1.0"

__all__ = ["Envelope", "LoweredTurn", "lift", "lower_turn", "lower_turn_now", "openai_view"]

_HOMES = {
    "Envelope": "gateway.core.model.envelope",
    "LoweredTurn": "gateway.shaping.turns",
    "lift": "gateway.core.lifting",
    "lower_turn": "gateway.shaping.turns",
    "lower_turn_now": "gateway.shaping.turns",
    "openai_view": "gateway.core.lowering.openai_view",
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'gateway' has no attribute {name!r}")
    return getattr(import_module(_HOMES[name]), name)
