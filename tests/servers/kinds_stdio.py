"""An MCP server on stdio from the standard library alone: a link to a picture, a picture, a PDF, and a describer."""

import base64
import json
import runpy
import sys
from pathlib import Path

PDFS = runpy.run_path(str(Path(__file__).parents[1] / "content" / "media" / "pdf_files.py"))
PNG = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="


def pdf():
    return base64.b64encode(PDFS["pdf"]([PDFS["Page"](["words of the first page"])])).decode()


def described(arguments):
    return {"content": [{"type": "text", "text": f"{arguments['kind']} of {len(arguments['image'])} letters"}]}


LINK = {"type": "resource_link", "uri": "made://shot.png", "name": "shot", "mimeType": "image/png"}
RESULTS = {
    "link": lambda arguments: {"content": [LINK]},
    "picture": lambda arguments: {"content": [{"type": "image", "data": PNG, "mimeType": "image/png"}]},
    "document": lambda arguments: {
        "content": [{"type": "resource", "resource": {"uri": "made://report.pdf", "blob": pdf()}}]
    },
    "describe": described,
}
TOOLS = [{"name": name, "description": f"Gives {name}.", "inputSchema": {"type": "object"}} for name in RESULTS]


def answer(method, params):
    match method:
        case "initialize":
            server = {"name": "kinds", "version": "1"}
            return {
                "protocolVersion": "2025-11-25",
                "capabilities": {"tools": {}, "resources": {}},
                "serverInfo": server,
            }
        case "tools/list":
            return {"tools": TOOLS}
        case "tools/call":
            return RESULTS[params["name"]](params.get("arguments") or {})
        case "resources/read":
            return {"contents": [{"uri": params["uri"], "mimeType": "image/png", "blob": PNG}]}
        case "resources/list":
            return {"resources": []}
        case "resources/templates/list":
            return {"resourceTemplates": []}
        case _:
            return {}


for line in sys.stdin:
    message = json.loads(line)
    if "id" in message and "method" in message:
        reply = {"result": answer(message["method"], message.get("params") or {})}
        print(json.dumps({"jsonrpc": "2.0", "id": message["id"], **reply}), flush=True)
