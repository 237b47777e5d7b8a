"""Reading a CallToolResult as the clients of real hosts do: strictly, and in the same way for all of them."""

import json
from collections.abc import Mapping, Sequence
from typing import Any, cast

from gateway.core.model.json_values import is_dict, is_list

_MEMBERS = {
    "text": ("text",),
    "image": ("data", "mimeType"),
    "audio": ("data", "mimeType"),
    "resource": (),
    "resource_link": ("uri", "name"),
}
_OPTIONAL = ("mimeType", "title", "description")
IMAGE_PREFIX = "image/"
VECTOR = "image/svg+xml"
PDF = "application/pdf"


def malformed(result: Mapping[str, Any]) -> str | None:
    """Return what is wrong with the result, as a typed client sees it; None if it can be read.

    One bad block costs the whole result: measured for the Python SDK 2.3.0 (a block of unknown type, an image without
    mimeType, missing content), and the TypeScript and Rust SDKs read into closed unions of the same members.
    """
    content = result.get("content")
    if not is_list(content):
        return "content is not a list"
    for index, block in enumerate(content):
        if (problem := _malformed_block(block)) is not None:
            return f"content[{index}]: {problem}"
    return None


def _malformed_block(block: Any) -> str | None:
    if not is_dict(block):
        return "no object"
    members = _MEMBERS.get(block.get("type", ""))
    if members is None:
        return f"unknown type {block.get('type')!r}"
    for member in members:
        if not isinstance(block.get(member), str):
            return f"{member} is missing"
    for member in _OPTIONAL:
        if not isinstance(block.get(member), str | None):
            return f"{member} is not text"
    return _malformed_resource(block.get("resource")) if block["type"] == "resource" else None


def _malformed_resource(resource: Any) -> str | None:
    contents = resource if is_dict(resource) else dict[str, Any]()
    if not isinstance(contents.get("uri"), str):
        return "resource.uri is missing"
    if not isinstance(contents.get("mimeType"), str | None):
        return "resource.mimeType is not text"
    if not any(isinstance(contents.get(key), str) for key in ("text", "blob")):
        return "resource has neither text nor blob"
    return None


def blocks(result: Mapping[str, Any]) -> Sequence[Mapping[str, Any]]:
    """Return the content blocks of a result that is not malformed."""
    return cast("Sequence[Mapping[str, Any]]", result["content"])


def is_error(result: Mapping[str, Any]) -> bool:
    """Whether the tool reports that it failed."""
    return result.get("isError") is True


def structured(result: Mapping[str, Any]) -> Any:
    """Return the structured content; None if there is none."""
    return result.get("structuredContent")


def lacks_structured(result: Mapping[str, Any], tool: Mapping[str, Any] | None) -> bool:
    """Whether the tool declares structured content (`outputSchema`) and this result has none without being an error."""
    return bool(tool) and tool.get("outputSchema") is not None and structured(result) is None and not is_error(result)


def dump(value: Any) -> str:
    """Format JSON as JavaScript does: no spaces, no unnecessary escapes."""
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False)


def blob_of(block: Mapping[str, Any]) -> tuple[str, str] | None:
    """Return base64 and media type of an embedded resource with bytes; None for any other block."""
    if block["type"] != "resource" or not isinstance(block["resource"].get("blob"), str):
        return None
    return block["resource"]["blob"], block["resource"].get("mimeType") or "application/octet-stream"


def image_of(block: Mapping[str, Any]) -> tuple[str, str] | None:
    """Return base64 and declared media type of an image block or an embedded image; None for any other block."""
    if block["type"] == "image":
        return block["data"], block["mimeType"]
    blob = blob_of(block)
    return blob if blob and blob[1].startswith(IMAGE_PREFIX) else None


def texts_of(result: Mapping[str, Any]) -> str:
    """Return the text blocks of a result, one per line."""
    return "\n".join(block["text"] for block in blocks(result) if block["type"] == "text")


def plain_link_line(block: Mapping[str, Any]) -> str:
    """Format a link to a resource as one line."""
    parts = [block["name"], block.get("description"), block["uri"]]
    return "Resource link: " + " ".join(part for part in parts if part)
