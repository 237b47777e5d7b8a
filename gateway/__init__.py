"""One MCP server in front of many, whose results arrive in the shape that each host really shows its model.

As a library: `lift` reads a CallToolResult into an `Envelope`, and `lower_turn` writes the results of a turn in the
form that a model API accepts. `open` (in process) and `connect` (over HTTP) give an agent loop the tools of a gateway
as a `Toolset`. Nothing is imported before it is used.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from gateway._version import __version__ as __version__

if TYPE_CHECKING:
    from gateway.agents import Toolset
    from gateway.agents import sync as sync
    from gateway.agents.connect_gateway import connect
    from gateway.agents.open import open as open
    from gateway.content.arguments.program import resolve_arguments
    from gateway.content.media import MediaWorkers
    from gateway.content.provider_files import ProviderFiles
    from gateway.content.shaping.histories import Resolved, resolve_messages
    from gateway.content.shaping.results import openai_view
    from gateway.content.shaping.turns import LoweredTurn, lower_turn, lower_turn_now
    from gateway.content.store import ContentStore, MemoryStore, open_store
    from gateway.core.model.envelope import Envelope
    from gateway.core.results.lift_result import lift
    from gateway.core.tools.inputs import (
        audio_input,
        cad_input,
        directory_note,
        file_input,
        image_input,
        three_d_input,
        video_input,
    )

# Without `open`: whoever imports everything keeps the builtin of that name.
__all__ = [
    "ContentStore",
    "Envelope",
    "LoweredTurn",
    "MediaWorkers",
    "MemoryStore",
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
    "open_store",
    "openai_view",
    "resolve_arguments",
    "resolve_messages",
    "three_d_input",
    "video_input",
]

_HOMES = {
    "ContentStore": "gateway.content.store",
    "Envelope": "gateway.core.model.envelope",
    "LoweredTurn": "gateway.content.shaping.turns",
    "MediaWorkers": "gateway.content.media",
    "MemoryStore": "gateway.content.store",
    "ProviderFiles": "gateway.content.provider_files",
    "Resolved": "gateway.content.shaping.histories",
    "Toolset": "gateway.agents",
    "audio_input": "gateway.core.tools.inputs",
    "cad_input": "gateway.core.tools.inputs",
    "connect": "gateway.agents.connect_gateway",
    "directory_note": "gateway.core.tools.inputs",
    "file_input": "gateway.core.tools.inputs",
    "image_input": "gateway.core.tools.inputs",
    "lift": "gateway.core.results.lift_result",
    "lower_turn": "gateway.content.shaping.turns",
    "lower_turn_now": "gateway.content.shaping.turns",
    "open": "gateway.agents.open",
    "open_store": "gateway.content.store",
    "openai_view": "gateway.content.shaping.results",
    "resolve_arguments": "gateway.content.arguments.program",
    "resolve_messages": "gateway.content.shaping.histories",
    "three_d_input": "gateway.core.tools.inputs",
    "video_input": "gateway.core.tools.inputs",
}


def __dir__() -> list[str]:
    return sorted({*globals(), *_HOMES, "sync"})


def __getattr__(name: str) -> Any:
    if name == "sync":
        return import_module("gateway.agents.sync")
    if name not in _HOMES:
        raise AttributeError(f"module 'gateway' has no attribute {name!r}")
    return getattr(import_module(_HOMES[name]), name)
