"""Files that hosts send and fetch beside the protocol (SEP-2631), as far as calls and lists have to do with them."""

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from gateway.core.model.caller import Caller
from gateway.core.model.json_values import as_list, as_object, is_dict
from gateway.core.model.wire import WireObject
from gateway.core.tools.arguments import Parameter
from gateway.core.tools.arguments.content_declarations import FILE_TAGS
from gateway.core.tools.catalogue import Catalogue


class FileTransfersPort(Protocol):
    """Places to send files to and to fetch them from (`content.links.file_transfers.FileTransfers`)."""

    @property
    def methods(self) -> frozenset[str]: ...
    async def answer(self, method: str, params: Mapping[str, Any], owner: str) -> dict[str, Any]: ...
    def with_handles(self, arguments: Any, owner: str) -> Any: ...
    async def blocks(self, handles: Sequence[str], owner: str) -> list[dict[str, Any]]: ...


def sends_files(caller: Caller) -> bool:
    """Whether a host declares that it can send files."""
    return as_object(caller.capabilities.get("files")).get("upload") is True


async def with_files(
    result: dict[str, Any], kept: Sequence[str], transfers: FileTransfersPort, caller: Caller
) -> dict[str, Any]:
    """Return a result with a block of type `file` for each piece of content that was kept for it.

    They are for hosts that declare that they can fetch files; for others, the result stays as it is.
    """
    if not kept or as_object(caller.capabilities.get("files")).get("download") is not True:
        return result
    return {**result, "content": [*as_list(result.get("content")), *await transfers.blocks(kept, caller.principal)]}


def declaring_files(tools: Sequence[WireObject], catalogue: Catalogue) -> list[WireObject]:
    """Return tools with `x-mcp-file` at each argument that takes content, for hosts that send files."""
    routes = ((tool, catalogue.routes.get(tool["name"])) for tool in tools)
    return [tool if route is None else _declaring(tool, route.parameters) for tool, route in routes]


def _declaring(tool: WireObject, parameters: Sequence[Parameter]) -> WireObject:
    schema = tool.get("inputSchema")
    for parameter in parameters:
        schema = _with_tag(schema, parameter.path, parameter)
    return tool if schema is tool.get("inputSchema") else {**tool, "inputSchema": schema}


def _with_tag(schema: Any, path: Sequence[str | None], parameter: Parameter) -> Any:
    """Return the schema with the tag at a path; the same object if there is no plain text at this path."""
    if not is_dict(schema):
        return schema
    if not path:
        if schema.get("type") != "string":
            return schema
        if any(tag in schema for tag in FILE_TAGS):
            return {**schema, "format": "uri"}
        tag: dict[str, Any] = {"transferModes": ["inline", "upload"]}
        if parameter.accepts:
            tag["accept"] = list(parameter.accepts)
        if parameter.max_bytes is not None:
            tag["maxSize"] = parameter.max_bytes
        return {**schema, "format": "uri", "x-mcp-file": tag}
    step, *rest = path
    if step is None:
        inner = schema.get("items")
        edited = _with_tag(inner, rest, parameter)
        return schema if edited is inner else {**schema, "items": edited}
    properties = schema.get("properties")
    if not is_dict(properties) or step not in properties:
        return schema
    edited = _with_tag(properties[step], rest, parameter)
    return schema if edited is properties[step] else {**schema, "properties": {**properties, step: edited}}
