"""A stdio server that counts its starts, from the standard library alone: `python counted_stdio.py FILE`.

Each start, and each call, appends a line to FILE. `pid` gives the process id; `wait` is never answered; `token` gives
the variable TOKEN.
"""

import json
import os
import sys


def note(what):
    with open(sys.argv[1], "a", encoding="utf-8") as file:
        file.write(f"{what}\n")


def answer(method, params):
    if method == "initialize":
        info = {"name": "counted", "version": "1"}
        return {"protocolVersion": params["protocolVersion"], "capabilities": {"tools": {}}, "serverInfo": info}
    if method == "tools/list":
        return {"tools": [{"name": name, "inputSchema": {"type": "object"}} for name in ("pid", "wait", "token")]}
    if method != "tools/call":
        return None
    note(params["name"])
    text = str(os.getpid()) if params["name"] == "pid" else os.environ.get("TOKEN", "")
    return {"content": [{"type": "text", "text": text}]}


note("start")
for line in sys.stdin:
    message = json.loads(line)
    if "id" not in message or "method" not in message:
        continue
    result = answer(message["method"], message.get("params") or {})
    if message["method"] == "tools/call" and message["params"]["name"] == "wait":
        continue
    error = {"code": -32601, "message": "unknown method"}
    reply = {"error": error} if result is None else {"result": result}
    sys.stdout.write(json.dumps({"jsonrpc": "2.0", "id": message["id"], **reply}) + "\n")
    sys.stdout.flush()
