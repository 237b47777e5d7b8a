"""One MCP server in front of many, whose results arrive in the shape that each host really shows its model.

As a library: `lift` reads a CallToolResult into an `Envelope`, and `lower_turn` writes the results of a turn in the
form that a model API accepts. `open` (in process) and `connect` (over HTTP) give an agent loop the tools of a gateway
as a `Toolset`. Nothing is imported before it is used.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from gateway.core.lifting import lift
    from gateway.core.lowering.openai_view import openai_view
    from gateway.core.model.envelope import Envelope
    from gateway.inputs import (
        audio_input,
        cad_input,
        directory_note,
        file_input,
        image_input,
        three_d_input,
        video_input,
    )
    from gateway.opened import open as open
    from gateway.provider_files import ProviderFiles
    from gateway.shaping.histories import Resolved, resolve_messages
    from gateway.shaping.turns import LoweredTurn, lower_turn, lower_turn_now
    from gateway.toolset import Toolset
    from gateway.toolset.connecting import connect

__version__ = "0.1.0"

# Without `open`: whoever imports everything keeps the builtin of that name.
__all__ = [
    "Envelope",
    "LoweredTurn",
    "ProviderFiles",
    "Resolved",
    "Toolset",
    "audio_input",
    "cad_input",
    "connect",
    "directory_note",
    "file_input",
    "image_input",
    "lift",
    "lower_turn",
    "lower_turn_now",
    "openai_view",
    "resolve_messages",
    "three_d_input",
    "video_input",
]

_HOMES = {
    "Envelope": "gateway.core.model.envelope",
    "LoweredTurn": "gateway.shaping.turns",
    "ProviderFiles": "gateway.provider_files",
    "Resolved": "gateway.shaping.histories",
    "Toolset": "gateway.toolset",
    "audio_input": "gateway.inputs",
    "cad_input": "gateway.inputs",
    "connect": "gateway.toolset.connecting",
    "directory_note": "gateway.inputs",
    "file_input": "gateway.inputs",
    "image_input": "gateway.inputs",
    "lift": "gateway.core.lifting",
    "lower_turn": "gateway.shaping.turns",
    "lower_turn_now": "gateway.shaping.turns",
    "open": "gateway.opened",
    "openai_view": "gateway.core.lowering.openai_view",
    "resolve_messages": "gateway.shaping.histories",
    "three_d_input": "gateway.inputs",
    "video_input": "gateway.inputs",
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'gateway' has no attribute {name!r}")
    return getattr(import_module(_HOMES[name]), name)
