"""DSPy 3.4.1 (ReActV2 with native function calling) on Chat Completions, measured (2026-11-23)."""

from collections.abc import Mapping
from typing import Any

from gateway.hosts.simulators.host import nameless_host
from gateway.hosts.simulators.python_objects import contents_text
from gateway.hosts.simulators.results import blocks, is_error, lacks_structured, malformed, texts_of
from gateway.hosts.simulators.seen import Seen, SeenText, failed_result


def see(result: Mapping[str, Any], tool: Mapping[str, Any] | None = None) -> Seen:
    """Return what the model behind DSPy gets: the texts; only where there is none, the other blocks as Python objects.

    Structured content is not read (measured).
    """
    if problem := malformed(result):
        return failed_result(f"Execution error: {problem}", flagged=False)
    if lacks_structured(result, tool):
        return failed_result("Execution error: it did not return structured content", flagged=False)
    if is_error(result):  # measured: the texts at the end of a traceback
        return Seen((SeenText(f"Execution error in give: Failed to call a MCP tool: {texts_of(result)}", "error"),))
    if any(block["type"] == "text" for block in blocks(result)):
        return Seen((SeenText(texts_of(result)),))
    return Seen((SeenText(contents_text(blocks(result)), "json"),))


# The default clientInfo of the Python SDK; the revision was not recorded, it is the SDK's.
DSPY = nameless_host("dspy", "DSPy", see, profile="dspy")
