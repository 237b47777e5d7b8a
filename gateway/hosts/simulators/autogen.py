"""AutoGen 0.7.5 (autogen-ext, with mcp 1.30, since it cannot be imported with version 2) on Chat Completions, measured
(2026-11-22): its workbench, and its tools without one."""

import base64
import io
import json
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from PIL import Image

from gateway.hosts.simulators.host import nameless_host
from gateway.hosts.simulators.pictures import look
from gateway.hosts.simulators.results import blocks, dump, lacks_structured, malformed
from gateway.hosts.simulators.seen import Form, Seen, SeenText, failed_result


def see(result: Mapping[str, Any], tool: Mapping[str, Any] | None = None) -> Seen:
    """Return what the model behind a McpWorkbench gets: one text.

    Structured content is not read, and the error flag does not arrive (measured). No limit on text was found (200,000
    characters arrived).
    """
    if problem := malformed(result):
        return failed_result(problem, flagged=False)
    if lacks_structured(result, tool):  # measured
        return failed_result("Tool give has an output schema but did not return structured content", flagged=False)
    for block in blocks(result):  # measured: the text beside it is lost too
        if block["type"] in ("audio", "resource_link"):
            return failed_result(f"Unknown content type from server: {block['type']}", flagged=False)
        if block["type"] == "image" and look(block["data"]) is None:
            return failed_result("cannot identify image file <_io.BytesIO object>", flagged=False)
    said = "\n".join(_text(block) for block in blocks(result))
    return Seen((SeenText(said),) if said else ())


def see_tool(result: Mapping[str, Any], tool: Mapping[str, Any] | None = None) -> Seen:
    """Return what the model gets of a tool of `mcp_server_tools`: every block as JSON, including base64."""
    if problem := malformed(result):
        return failed_result(problem, flagged=False)
    if lacks_structured(result, tool):  # measured
        return failed_result("Tool give has an output schema but did not return structured content", flagged=False)
    form: Form = "json" if blocks(result) else "placeholder"
    return Seen((SeenText(json.dumps([_dumped(block) for block in blocks(result)]), form),))


def _text(block: Mapping[str, Any]) -> str:
    match block["type"]:
        case "text":
            return block["text"]
        case "image":
            return f"[Image: {_as_png(block['data'])}]"
        case _:  # measured: embedded text and bytes alike
            return dump(_dumped(block))


def _as_png(data: str) -> str:
    """Encode the image as AutoGen does (measured): a PNG without transparency, whatever it was."""
    out = io.BytesIO()
    with Image.open(io.BytesIO(base64.b64decode(data))) as image:
        image.convert("RGB").save(out, "PNG")
    return base64.b64encode(out.getvalue()).decode()


def _dumped(block: Mapping[str, Any]) -> Mapping[str, Any]:
    return {**block, "annotations": block.get("annotations")}


# Measured: the SDK's default clientInfo; initialize at 2025-11-25. It declares sampling. By its code it refuses each
# request, unless the workbench has a `model_client`.
AUTOGEN = replace(nameless_host("autogen", "AutoGen", see, profile="autogen"), capabilities={"sampling": {}})
AUTOGEN_TOOLS = nameless_host("autogen-tools", "AutoGen, mcp_server_tools", see_tool, profile="autogen")
