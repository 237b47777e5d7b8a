"""An MCP server on stdio without an SDK: a resource, a template and a prompt, and no tools."""

import json
import sys

RESOURCE = {
    "uri": "memo://one",
    "name": "one",
    "title": "The first",
    "mimeType": "text/plain",
    "description": "A memo.\x1b[2J\nIts second line.",
}
LISTS = {
    "tools/list": {"tools": []},
    "resources/list": {"resources": [RESOURCE]},
    "resources/templates/list": {"resourceTemplates": [{"uriTemplate": "memo://{name}", "name": "memo"}]},
    "prompts/list": {"prompts": [{"name": "summarise", "description": "Summarises a memo."}]},
}
INITIALIZED = {
    "protocolVersion": "2025-11-25",
    "capabilities": {"tools": {}, "resources": {}, "prompts": {}},
    "serverInfo": {"name": "lists", "version": "1"},
}


for line in sys.stdin:
    message = json.loads(line)
    if "id" in message and "method" in message:
        result = INITIALIZED if message["method"] == "initialize" else LISTS.get(message["method"], {})
        print(json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": result}), flush=True)
