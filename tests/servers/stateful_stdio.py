"""A stdio server with state, from the standard library alone: `python stateful_stdio.py NAME`.

`count` counts its calls, `sleep` takes its time, `ask` asks the host and returns the answer. The only resource,
`memo://NAME`, changes with each count.
"""

import json
import os
import queue
import sys
import threading
import time

URI = f"memo://{sys.argv[1]}"
TOOLS = [{"name": name, "inputSchema": {"type": "object"}} for name in ("count", "sleep", "ask")]
LISTS = {
    "tools/list": {"tools": TOOLS},
    "resources/list": {"resources": [{"uri": URI, "name": "memo"}]},
    "resources/templates/list": {"resourceTemplates": []},
    "prompts/list": {"prompts": []},
    "resources/subscribe": {},
    "resources/unsubscribe": {},
}
written = threading.Lock()
calls = 0
answers = {}


def write(message):
    with written:
        sys.stdout.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
        sys.stdout.flush()


def answer(message):
    global calls
    method, params = message["method"], message.get("params") or {}
    if method == "initialize":
        about = {"tools": {}, "resources": {"subscribe": True}}
        info = {"name": "stateful", "version": "1"}
        return {"protocolVersion": params["protocolVersion"], "capabilities": about, "serverInfo": info}
    if method != "tools/call":
        return LISTS.get(method)
    if params["name"] == "sleep":
        time.sleep(params["arguments"]["seconds"])
    if params["name"] == "ask":
        return {"content": [{"type": "text", "text": ask(message["id"])}]}
    calls += 1
    write({"method": "notifications/resources/updated", "params": {"uri": URI}})
    return {"content": [{"type": "text", "text": f"{calls} {os.getpid()}"}]}


def ask(question):
    schema = {"type": "object", "properties": {"answer": {"type": "string"}}}
    waiting = answers[f"q{question}"] = queue.Queue()
    params = {"message": "Really?", "requestedSchema": schema}
    write({"id": f"q{question}", "method": "elicitation/create", "params": params})
    return waiting.get(timeout=60)["content"]["answer"]


def reply(message):
    result = answer(message)
    error = {"code": -32601, "message": "unknown method"}
    write({"id": message["id"], **({"error": error} if result is None else {"result": result})})


for line in sys.stdin:
    message = json.loads(line)
    if "id" in message and "result" in message:
        answers[message["id"]].put(message["result"])
    elif "id" in message and "method" in message:
        threading.Thread(target=reply, args=(message,), daemon=True).start()
