"""The OpenAPI document of the tools that a caller is offered. Pure."""

import re
from collections.abc import Iterable, Mapping
from typing import Any
from urllib.parse import quote

from gateway.core.model.json_values import as_object, as_text, is_list, is_object

VERSION = "3.1.0"

TOOLS_PATH = "/tools"

_ILLEGAL = re.compile(r"[^A-Za-z0-9._-]")
_OF_DIALECTS = frozenset({"$schema", "$id"})
"""Keywords that change how references are read; a document has one way."""

_MEDIA = {
    "mimeType": {"type": "string"},
    "url": {"type": "string", "description": "A link to the content, which expires; `cid:` names a part of the body."},
    "handle": {"type": "string", "description": "Its handle, for arguments of tools that take content."},
    "size": {"type": "integer", "description": "Its size in bytes."},
}
_RESULT: Mapping[str, Any] = {
    "type": "object",
    "required": ["content"],
    "properties": {
        "content": {
            "type": "array",
            "items": {
                "type": "object",
                "required": ["type"],
                "properties": {
                    "type": {
                        "type": "string",
                        "description": "text, image, audio, resource or resource_link, as in MCP",
                    },
                    "text": {"type": "string"},
                    **_MEDIA,
                    "resource": {"type": "object", "properties": {"uri": {"type": "string"}, **_MEDIA}},
                },
            },
        },
        "structuredContent": {"type": "object"},
        "isError": {"type": "boolean"},
    },
}
_ERROR: Mapping[str, Any] = {
    "type": "object",
    "required": ["error"],
    "properties": {"error": {"type": "string", "description": "What happened, and what to do about it."}},
}
_ERRORS = {
    "400": "The body is not a JSON object, or an argument cannot be used.",
    "403": "The caller may not call this tool.",
    "404": "There is no such tool for this caller.",
    "429": "The caller has used up what its limits allow for now.",
    "502": "The server of the tool failed, or cannot be reached.",
    "503": "The gateway has too much to do; Retry-After says when to try again.",
    "504": "The server of the tool took too long.",
}


def document_of(
    tools: Iterable[Mapping[str, Any]], name: str, version: str, base: str, *, needs_token: bool
) -> dict[str, Any]:
    """Return the document of an API at `base` with an operation for each tool."""
    paths: dict[str, Any] = {}
    schemas: dict[str, Any] = {"ToolResult": _RESULT, "ToolError": _ERROR}
    for tool in tools:
        named = as_text(tool.get("name"))
        if named:
            paths[f"{TOOLS_PATH}/{quote(named, safe='')}"] = {"post": _operation(tool, named, schemas)}
    components: dict[str, Any] = {"schemas": schemas}
    document: dict[str, Any] = {
        "openapi": VERSION,
        "info": {"title": name, "version": version},
        "servers": [{"url": base}],
        "paths": paths,
        "components": components,
    }
    if needs_token:
        components["securitySchemes"] = {"token": {"type": "http", "scheme": "bearer"}}
        document["security"] = [{"token": []}]
    return document


def _operation(tool: Mapping[str, Any], name: str, schemas: dict[str, Any]) -> dict[str, Any]:
    arguments = as_object(tool.get("inputSchema"))
    component = _component(f"{name}.arguments", schemas)
    schemas[component] = _within(arguments, f"#/components/schemas/{component}")
    content = {"application/json": {"schema": {"$ref": f"#/components/schemas/{component}"}}}
    operation: dict[str, Any] = {
        "operationId": name,
        "requestBody": {"required": bool(arguments.get("required")), "content": content},
        "responses": {"200": _answer("The result.", _result_schema(tool, name, schemas)), **_failures()},
    }
    title = as_text(tool.get("title")) or as_text(as_object(tool.get("annotations")).get("title"))
    said = {"summary": title, "description": as_text(tool.get("description"))}
    operation |= {key: words for key, words in said.items() if words}
    hints = {key: value for key, value in as_object(tool.get("annotations")).items() if isinstance(value, bool)}
    return {**operation, "x-mcp-annotations": hints} if hints else operation


def _result_schema(tool: Mapping[str, Any], name: str, schemas: dict[str, Any]) -> dict[str, Any]:
    result = {"$ref": "#/components/schemas/ToolResult"}
    output = tool.get("outputSchema")
    if not is_object(output):
        return result
    component = _component(f"{name}.output", schemas)
    schemas[component] = _within(output, f"#/components/schemas/{component}")
    structured = {"structuredContent": {"$ref": f"#/components/schemas/{component}"}}
    return {"allOf": [result, {"type": "object", "properties": structured}]}


def _answer(words: str, schema: Mapping[str, Any]) -> dict[str, Any]:
    return {"description": words, "content": {"application/json": {"schema": schema}, "multipart/mixed": {}}}


def _failures() -> dict[str, Any]:
    error = {"application/json": {"schema": {"$ref": "#/components/schemas/ToolError"}}}
    failed = _answer("The tool failed; the result says why.", {"$ref": "#/components/schemas/ToolResult"})
    return {"422": failed, **{code: {"description": words, "content": error} for code, words in _ERRORS.items()}}


def _component(wanted: str, taken: Mapping[str, Any]) -> str:
    name = legal = _ILLEGAL.sub("_", wanted)
    number = 1
    while name in taken:
        number += 1
        name = f"{legal}_{number}"
    return name


def _within(schema: Any, place: str) -> Any:
    """Return a schema whose references into itself lead to its place in the document."""
    if is_list(schema):
        return [_within(item, place) for item in schema]
    if not is_object(schema):
        return schema
    moved = {
        key: _within(value, place) for key, value in schema.items() if key not in _OF_DIALECTS or key in _named(value)
    }
    reference = moved.get("$ref")
    if isinstance(reference, str) and reference.startswith("#"):
        moved["$ref"] = f"{place}{reference[1:]}"
    return moved


def _named(value: Any) -> frozenset[str]:
    """Return the keywords that are not meant as such here: a property may have any name."""
    return _OF_DIALECTS if is_object(value) else frozenset()
