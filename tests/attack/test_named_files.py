"""Texts that look like nothing but beginnings of paths, from an upstream whose files are shown."""

from contextlib import closing

EVIL = """
import json, sys

def answer(method, params):
    if method == "initialize":
        server = {"name": "evil", "version": "1"}
        return {"protocolVersion": params["protocolVersion"], "capabilities": {"tools": {}}, "serverInfo": server}
    if method == "tools/list":
        return {"tools": [{"name": "look", "inputSchema": {"type": "object"}}]}
    texts = [piece * (100_000 // len(piece)) for piece in ("a.", "a.png,", ".pdf")]
    return {"content": [{"type": "text", "text": text} for text in texts * 3]}

for line in sys.stdin:
    message = json.loads(line)
    if "id" in message and "method" in message:
        result = answer(message["method"], message.get("params") or {})
        print(json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": result}), flush=True)
"""


def test_texts_full_of_half_paths(attacked, tmp_path):
    gateway = attacked({"evil": EVIL}, more={"evil": f'files = ["{tmp_path}"]\ncwd = "{tmp_path}"'})
    with gateway.watched() as watch, closing(gateway.client()) as host:
        assert host.call("evil__look")["content"]
    assert not watch.failures
    assert watch.longest < 5
