"""An upstream on stdio that writes small things without end: they are read in turns, and nobody else waits for that."""

import time
from typing import Any

FLOOD = r"""
import json, os, sys, threading

NOTICE = {"jsonrpc": "2.0", "method": "notifications/message", "params": {"level": "info", "data": "x"}}
UNKNOWN = {"progressToken": "nobody's", "progress": 1}
PROGRESS = {"jsonrpc": "2.0", "method": "notifications/progress", "params": UNKNOWN}
ANSWER = {"jsonrpc": "2.0", "id": "nobody's", "result": {}}
LINES = {
    "blank": (1, b"\n"),
    "words": (1, b"x\n"),
    "objects": (1, b"{}\n"),
    "batches": (1, b"[]\n"),
    "notices": (1, json.dumps(NOTICE).encode() + b"\n"),
    "progress": (1, json.dumps(PROGRESS).encode() + b"\n"),
    "answers": (1, json.dumps(ANSWER).encode() + b"\n"),
    "log": (2, b"x\n"),
}
wanted = None

def flood():
    while True:
        if wanted is None:
            begun.wait()
        else:
            file, line = LINES[wanted]
            os.write(file, line * (65_536 // len(line)))

begun = threading.Event()
threading.Thread(target=flood, daemon=True).start()

for line in sys.stdin:
    message = json.loads(line)
    if "id" not in message or "method" not in message:
        continue
    method, params = message["method"], message.get("params") or {}
    result = {"content": [{"type": "text", "text": "fine"}]}
    if method == "initialize":
        server = {"name": "evil", "version": "1"}
        result = {"protocolVersion": params["protocolVersion"], "capabilities": {"tools": {}}, "serverInfo": server}
    elif method == "tools/list":
        result = {"tools": [{"name": name, "inputSchema": {"type": "object"}} for name in LINES]}
    else:
        wanted = params["name"]
        begun.set()
        continue
    os.write(1, json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": result}).encode() + b"\n")
"""
KINDS = ("blank", "words", "objects", "batches", "notices", "progress", "answers", "log")


def test_small_lines_without_end(attacked: Any) -> None:
    gateway = attacked({"evil": FLOOD}, more={"evil": "timeout.call = 1.5"})
    host = gateway.client("claude-code")
    host.tools()
    for kind in KINDS:
        with gateway.watched(kind) as others:
            began = time.monotonic()
            assert host.call(f"evil__{kind}")["isError"], kind
            assert time.monotonic() - began < 30, kind
        assert not others.failures, kind
        assert others.longest < 5, kind
        assert others.growth < 100 * 2**20, kind
    host.close()
