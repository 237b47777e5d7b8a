"""Semantic Kernel 1.45.0 on Chat Completions, measured (2026-11-23)."""

from collections.abc import Mapping
from typing import Any

from gateway.hosts.simulators.host import nameless_host
from gateway.hosts.simulators.python_objects import contents_text
from gateway.hosts.simulators.results import blocks, lacks_structured, malformed
from gateway.hosts.simulators.seen import Seen, SeenText, failed_result


def see(result: Mapping[str, Any], tool: Mapping[str, Any] | None = None) -> Seen:
    """Return what the model behind Semantic Kernel gets: Python objects that have the content twice.

    Structured content is not read, and the error flag does not arrive (measured). No limit on text was found.
    """
    if problem := malformed(result):
        return failed_result(f"Error: {problem}", flagged=False)
    if lacks_structured(result, tool):
        return failed_result("Error: it has an output schema but did not return structured content", flagged=False)
    if any(block["type"] == "resource_link" for block in blocks(result)):  # measured: the text beside it is lost too
        return failed_result("Error: Unsupported content type: resource_link", flagged=False)
    return Seen((SeenText(f"[{', '.join(map(_written, blocks(result)))}]", "json"),))


def _written(block: Mapping[str, Any]) -> str:
    inner = contents_text([block])[1:-1]
    if block["type"] == "text":
        return f"TextContent(inner_content={inner}, ai_model_id=None, metadata={{}}, text={block['text']!r})"
    data = block.get("data") or block.get("resource", {}).get("blob")  # measured: embedded text is there once
    return f"BinaryContent(inner_content={inner}, ai_model_id=None, metadata={{}}, data={data!r})"


# The default clientInfo of the Python SDK; the revision was not recorded, it is the SDK's.
SEMANTIC_KERNEL = nameless_host("semantic-kernel", "Semantic Kernel", see, profile="semantic-kernel", writes_twice=True)
