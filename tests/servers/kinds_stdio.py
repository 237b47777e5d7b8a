"""An MCP server on stdio without an SDK: a link to a picture, a picture, a PDF, and a describer.

It is started with the project's folder on `PYTHONPATH`.
"""

import base64
import json
import sys

from tests.content.media.pdf_files import Page, pdf

PNG = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="


def document():
    return base64.b64encode(pdf([Page(["words of the first page"])])).decode()


def described(arguments):
    return {"content": [{"type": "text", "text": f"{arguments['kind']} of {len(arguments['image'])} letters"}]}


LINK = {"type": "resource_link", "uri": "made://shot.png", "name": "shot", "mimeType": "image/png"}
RESULTS = {
    "link": lambda arguments: {"content": [LINK]},
    "picture": lambda arguments: {"content": [{"type": "image", "data": PNG, "mimeType": "image/png"}]},
    "document": lambda arguments: {
        "content": [{"type": "resource", "resource": {"uri": "made://report.pdf", "blob": document()}}]
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
