"""Google ADK 2.13.0 with Gemini 2.5 and Gemini 3, measured (2026-11-20): the same cells."""

from collections.abc import Mapping
from typing import Any

from gateway.hosts.simulators.host import SimulatedHost
from gateway.hosts.simulators.results import dump, is_error, lacks_structured, malformed
from gateway.hosts.simulators.seen import Seen, SeenText, failed_result


def see(result: Mapping[str, Any], tool: Mapping[str, Any] | None = None) -> Seen:
    """Return what the model behind ADK gets: the result as JSON, including media, structured content and `_meta`.

    No limit was found: 6,012,612 characters of base64 arrived.
    """
    if problem := malformed(result):
        return failed_result(f"the tool failed: {problem}")
    if lacks_structured(result, tool):  # measured: the model reads an error
        return failed_result("Tool has an output schema but did not return structured content")
    # The JSON is a value of the function's response, so nothing in a text is escaped a second time (measured: 200,000
    # characters stayed 200,000); here it is written out so that it can be read.
    return Seen((SeenText(dump({**result, "isError": is_error(result)}), "json"),), flagged=is_error(result))


# Measured: initialize at 2025-11-25; no capabilities.
GOOGLE_ADK = SimulatedHost(
    name="google-adk",
    title="Google ADK",
    client_info={"name": "google-adk", "version": "2.13.0"},
    revision="2025-11-25",
    see=see,
    shows=frozenset(),
)
