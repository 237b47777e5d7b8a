"""Haystack (mcp-haystack 2.1.1) on Chat Completions and on Responses, measured (2026-11-23): the same on both."""

from collections.abc import Mapping
from typing import Any

from gateway.hosts.simulators.host import nameless_host
from gateway.hosts.simulators.python_objects import contents_text
from gateway.hosts.simulators.results import blocks, dump, is_error, lacks_structured, malformed
from gateway.hosts.simulators.seen import Seen, SeenText, failed_result


def see(result: Mapping[str, Any], tool: Mapping[str, Any] | None = None) -> Seen:
    """Return what the model behind Haystack gets: the whole result as JSON, base64 and structured content included."""
    if problem := malformed(result):
        return failed_result(f"Failed to invoke the tool: {problem}", flagged=False)
    if lacks_structured(result, tool):
        return failed_result(
            "Failed to invoke the tool: it has an output schema but did not return structured content", flagged=False
        )
    if is_error(result):  # measured: Python objects, and words that say so
        return Seen((SeenText(f"Tool returned an error: {contents_text(blocks(result))}", "json"),))
    return Seen((SeenText(dump({**result, "isError": False}), "json"),))


# The default clientInfo of the Python SDK; the revision was not recorded, it is the SDK's.
HAYSTACK = nameless_host("haystack", "Haystack", see, profile="haystack")
