"""A server on stdio with the tools that a file names, as a JSON array; each answers with its name.

There are prompts, resources and templates of these names, too.

python listed_stdio.py TOOLS
"""

import json
import sys
from pathlib import Path


def answer(method, params):
    if method == "initialize":
        info = {"name": "listed", "version": "1"}
        capabilities = {"tools": {}, "prompts": {}, "resources": {}}
        return {"protocolVersion": params["protocolVersion"], "capabilities": capabilities, "serverInfo": info}
    names = json.loads(Path(sys.argv[1]).read_text())
    if method == "tools/list":
        return {"tools": [{"name": name, "inputSchema": {"type": "object"}} for name in names]}
    if method == "prompts/list":
        return {"prompts": [{"name": name} for name in names]}
    if method == "resources/list":
        return {"resources": [{"name": name, "uri": f"doc://{name}"} for name in names]}
    if method == "resources/templates/list":
        return {"resourceTemplates": [{"name": name, "uriTemplate": f"doc://{name}/{{page}}"} for name in names]}
    if method == "tools/call":
        return {"content": [{"type": "text", "text": params["name"]}]}
    return {}


for line in sys.stdin:
    message = json.loads(line)
    if "id" in message and "method" in message:
        result = answer(message["method"], message.get("params"))
        print(json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": result}), flush=True)
