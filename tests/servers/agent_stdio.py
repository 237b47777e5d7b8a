"""A stdio server for the tests of toolsets, from the standard library alone.

`picture` gives text and an image, `numbers` structured content, `fail` an error, `refuse` a JSON-RPC error, `echo` its
arguments. `together` is answered only when it was called twice, the later call first; `never` is not answered.
"""

import json
import sys

IMAGE = {
    "type": "image",
    "data": "iVBORw0KGgoAAAANSUhEUgAAAAQAAAADCAIAAAA7ljmRAAAAEElEQVR42mNQSDgARww4OQAdNg8BewpllwAAAABJRU5ErkJggg==",
    "mimeType": "image/png",
}
RESULTS = {
    "picture": {"content": [{"type": "text", "text": "A blue field."}, IMAGE], "_meta": {"seen": 1}},
    "numbers": {"content": [{"type": "text", "text": "Two."}], "structuredContent": {"numbers": [1, 2]}},
    "fail": {"content": [{"type": "text", "text": "It broke."}], "isError": True},
}
EITHER = [{"properties": {"other": {"type": "string"}}, "required": ["other"]}, {"required": ["name"]}]
SCHEMA = {"type": "object", "properties": {"name": {"type": "string"}}, "anyOf": EITHER}
NAMES = [*RESULTS, "refuse", "echo", "together", "never", "a.tool.with" + "_a_long_name" * 6]
TOOLS = [{"name": name, "description": f"Gives {name}. " + "More. " * 300, "inputSchema": SCHEMA} for name in NAMES]
waiting = []


def send(request_id, **answer):
    print(json.dumps({"jsonrpc": "2.0", "id": request_id, **answer}), flush=True)


def text(words):
    return {"content": [{"type": "text", "text": words}]}


def called(request_id, name, arguments):
    if name == "together":
        waiting.append((request_id, arguments))
        if len(waiting) == 2:
            for waiting_id, given in reversed(waiting):
                send(waiting_id, result=text(json.dumps(given)))
    elif name == "refuse":
        send(request_id, error={"code": -32000, "message": "not today"})
    elif name != "never":
        send(request_id, result=RESULTS.get(name) or text(json.dumps(arguments)))


if __name__ == "__main__":
    for line in sys.stdin:
        message = json.loads(line)
        if "id" not in message or "method" not in message:
            continue
        params = message.get("params") or {}
        match message["method"]:
            case "initialize":
                info = {"name": "agent", "version": "1"}
                revision = params["protocolVersion"]
                result = {"protocolVersion": revision, "capabilities": {"tools": {}}, "serverInfo": info}
                send(message["id"], result=result)
            case "tools/list":
                send(message["id"], result={"tools": TOOLS})
            case "tools/call":
                called(message["id"], params["name"], params.get("arguments"))
            case _:
                send(message["id"], error={"code": -32601, "message": "unknown method"})
