"""Objects of the MCP Python SDK 2 as text, including base64.

Measured (2026-11-22) in the requests of frameworks that pass them to their model unchanged.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from gateway.hosts.simulators.results import blocks, is_error, structured

_SHOWN = {
    "text": ("text", "annotations", "meta"),
    "image": ("data", "mimeType", "annotations", "meta"),
    "audio": ("data", "mimeType", "annotations", "meta"),
    "resource": ("resource", "annotations", "meta"),
}
_CLASSES = {"text": "TextContent", "image": "ImageContent", "audio": "AudioContent", "resource": "EmbeddedResource"}
_LINK = ("name", "title", "uri", "description", "mimeType", "size", "icons", "annotations", "meta", "type")
_CONTENTS = ("uri", "mimeType", "meta")
_PYTHON = {"mimeType": "mime_type", "lastModified": "last_modified"}


def result_text(result: Mapping[str, Any]) -> str:
    """Return `str()` of a CallToolResult."""
    return (
        f"meta={_value(result.get('_meta'))} content={contents_text(blocks(result))} "
        f"structured_content={structured(result)!r} is_error={is_error(result)} result_type='complete'"
    )


def contents_text(content: Sequence[Mapping[str, Any]]) -> str:
    """Return `str()` of a list of content blocks."""
    return f"[{', '.join(map(_block, content))}]"


def _block(block: Mapping[str, Any]) -> str:
    if block["type"] == "resource_link":
        return _object("ResourceLink", block, _LINK)
    return _object(_CLASSES[block["type"]], block, ("type", *_SHOWN[block["type"]]))


def _object(name: str, members: Mapping[str, Any], shown: Sequence[str]) -> str:
    return f"{name}({', '.join(f'{_PYTHON.get(key, key)}={_member(members, key)}' for key in shown)})"


def _member(members: Mapping[str, Any], key: str) -> str:
    if key == "resource":
        kind = "text" if "text" in members["resource"] else "blob"
        return _object(f"{kind.title()}ResourceContents", members["resource"], (*_CONTENTS, kind))
    if key == "annotations" and members.get(key) is not None:
        return _object("Annotations", members[key], ("audience", "priority", "lastModified"))
    return _value(members.get("_meta" if key == "meta" else key))


def _value(value: Any) -> str:
    return repr(value)
