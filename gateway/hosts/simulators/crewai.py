"""CrewAI 1.15.30 with MCP of its own (`Agent(mcps=...)`) and with MCPServerAdapter of crewai-tools, measured
(2026-11-22): the same on Chat Completions and on Responses."""

from collections.abc import Mapping
from typing import Any

from gateway.hosts.simulators.host import nameless_host
from gateway.hosts.simulators.results import blob_of, blocks, is_error, lacks_structured, malformed, structured
from gateway.hosts.simulators.seen import Seen, SeenText, failed_result

ROOM = 892_500
"""Characters: a quarter of the tokens that it counts for the model measured (gpt-5.5), four characters each."""
PREVIEW = 2_000


def see(result: Mapping[str, Any], tool: Mapping[str, Any] | None = None) -> Seen:
    """Return what the model behind `Agent(mcps=...)` gets: one text, in which media is a placeholder.

    The error flag does not arrive (measured). 200,000 characters of text arrived.
    """
    if problem := malformed(result):
        return failed_result(f"Error executing tool: {problem}", flagged=False)
    if lacks_structured(result, tool):  # measured
        return failed_result(
            "Error executing tool: Tool give has an output schema but did not return structured content"
        )
    if not blocks(result):  # measured: the result as a Python object; structured content is read here alone
        said = f"meta=None content=[] structuredContent={structured(result)!r} isError={is_error(result)}"
        return Seen((SeenText(said, "placeholder" if structured(result) is None else "json"),))
    return _fitted(Seen(tuple(map(_part, blocks(result)))))


def _fitted(seen: Seen) -> Seen:
    """Save results over the limit to a file that the model can read in parts (measured with 2,000,000 characters)."""
    if len(seen.text) <= ROOM:
        return seen
    words = "was stored as temporary artifact\n\nPreview of the first 10 lines:"
    return Seen((SeenText(f"{words}\n---\n{seen.text[:PREVIEW]}\n[Preview truncated]\n---", "file"),))


def _part(block: Mapping[str, Any]) -> SeenText:
    """Convert one block; the order is kept (measured)."""
    match block["type"]:
        case "text":
            return SeenText(block["text"])
        case "resource" if blob_of(block) is None:
            return SeenText(block["resource"]["text"])
        case "resource":
            return SeenText(f"[resource: {block['resource']['uri']}]", "placeholder")
        case "resource_link":
            return SeenText(f"[resource_link: {block['uri']}]")
        case _:
            return SeenText(f"[{block['type']}: {block['mimeType']}]", "placeholder")


def see_adapted(result: Mapping[str, Any], tool: Mapping[str, Any] | None = None) -> Seen:
    """Return what the model gets with MCPServerAdapter (measured).

    A single block is text or a Python object, including base64; of several, only the texts arrive, as a list.
    """
    if problem := malformed(result):
        return failed_result(f"Error executing tool: {problem}", flagged=False)
    if lacks_structured(result, tool):  # measured
        return failed_result(
            "Error executing tool: Tool give has an output schema but did not return structured content"
        )
    content = blocks(result)
    if len(content) == 1:
        return _fitted(Seen((_whole(content[0]),)))
    texts = [block["text"] for block in content if block["type"] == "text"]
    return _fitted(Seen((SeenText(str(texts), "text" if texts else "placeholder"),)))


def _whole(block: Mapping[str, Any]) -> SeenText:
    if block["type"] == "text":
        return SeenText(block["text"])
    return SeenText(" ".join(f"{name}={value!r}" for name, value in block.items()), "json")


# Measured: the SDK's default clientInfo; initialize at 2025-11-25.
CREWAI = nameless_host("crewai", "CrewAI", see, profile="crewai")
CREWAI_ADAPTER = nameless_host("crewai-adapter", "CrewAI, MCPServerAdapter", see_adapted, profile="crewai")
