"""LlamaIndex 0.14.25 with llama-index-tools-mcp 0.6.0, measured (2026-11-22): the same on Chat Completions and on
Responses."""

from collections.abc import Mapping
from typing import Any

from gateway.hosts.simulators.host import SDK_CLIENT, SimulatedHost
from gateway.hosts.simulators.python_objects import result_text
from gateway.hosts.simulators.results import is_error, lacks_structured, malformed
from gateway.hosts.simulators.seen import Seen, SeenText, failed_result


def see(result: Mapping[str, Any], tool: Mapping[str, Any] | None = None) -> Seen:
    """Return what the model behind LlamaIndex gets: the whole result, with `is_error`, as the text of a Python object.

    No limit was found: 6,016,201 characters arrived.
    """
    if malformed(result) or lacks_structured(result, tool):  # measured for missing structured content
        return failed_result("unhandled errors in a TaskGroup (1 sub-exception)", flagged=False)
    return Seen((SeenText(result_text(result), "json"),), flagged=is_error(result))


# Measured: the SDK's default clientInfo; initialize at 2025-11-25.
LLAMA_INDEX = SimulatedHost(
    name="llama-index",
    title="LlamaIndex",
    client_info=SDK_CLIENT,
    revision="2025-11-25",
    see=see,
    shows=frozenset(),
    profile="llama-index",
)
