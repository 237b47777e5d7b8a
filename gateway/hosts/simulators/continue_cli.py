"""Continue CLI 1.5.47 on Responses and on Anthropic's API, measured (2026-11-23): the same on both."""

from collections.abc import Mapping
from typing import Any

from gateway.hosts.simulators.host import SimulatedHost
from gateway.hosts.simulators.results import blocks, dump, is_error, lacks_structured, malformed
from gateway.hosts.simulators.seen import Seen, SeenText, failed_result


def see(result: Mapping[str, Any], tool: Mapping[str, Any] | None = None) -> Seen:
    """Return what the model of Continue gets: the content as JSON, base64 included; structured content is not read."""
    if problem := malformed(result):
        return failed_result(f"Error: {problem}")
    if lacks_structured(result, tool):
        return failed_result("Error: it has an output schema but did not return structured content")
    return Seen((SeenText(dump(blocks(result)), "json"),), flagged=is_error(result))


# The revision was not recorded: it is that of the TypeScript SDK.
CONTINUE_CLI = SimulatedHost(
    name="continue-cli",
    title="Continue CLI",
    client_info={"name": "continue-cli-client", "version": "1.5.47"},
    revision="2025-11-25",
    see=see,
    shows=frozenset(),
)
