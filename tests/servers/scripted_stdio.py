"""A stdio server that does what a file says, from the standard library alone: `python scripted_stdio.py FILE`.

FILE is JSON: `tools` as tools/list gives them, `results` by tool (one with `refusal` is answered with that JSON-RPC
error, one with `seconds` after these; `echo` gives the arguments as text); `resources` by uri, as items of `contents`;
`listed` as resources/list gives them. Every call is written to FILE.calls, a line of JSON each.
"""

import json
import sys
import time

path = sys.argv[1]
with open(path, encoding="utf-8") as file:
    script = json.load(file)


def answer(method, params):
    if method == "initialize":
        server = {"name": "scripted", "version": "1"}
        able = {"tools": {}, "resources": {}} if "resources" in script else {"tools": {}}
        return {"protocolVersion": params["protocolVersion"], "capabilities": able, "serverInfo": server}
    if method == "tools/list":
        return {"tools": script["tools"]}
    if method == "resources/list" and "listed" in script:
        return {"resources": script["listed"]}
    if method == "resources/read" and params["uri"] in script.get("resources", {}):
        return {"contents": [{"uri": params["uri"], **script["resources"][params["uri"]]}]}
    if method != "tools/call":
        return {"refusal": {"code": -32601, "message": "Method not found"}}
    with open(path + ".calls", "a", encoding="utf-8") as calls:
        calls.write(json.dumps([params["name"], params.get("arguments")]) + "\n")
    if params["name"] == "echo":
        return {"content": [{"type": "text", "text": json.dumps(params.get("arguments"))}]}
    result = dict(script["results"][params["name"]])
    time.sleep(result.pop("seconds", 0))
    return result


for line in sys.stdin:
    message = json.loads(line)
    if "id" in message and "method" in message:
        result = answer(message["method"], message.get("params") or {})
        reply = {"error": result["refusal"]} if "refusal" in result else {"result": result}
        sys.stdout.write(json.dumps({"jsonrpc": "2.0", "id": message["id"], **reply}) + "\n")
        sys.stdout.flush()
