"""An upstream whose answers are nobody's, come twice, or come too late: the right answer still arrives, once."""

import threading
from contextlib import closing

EVIL = r"""
import json, sys, time

def send(**message):
    print(json.dumps({"jsonrpc": "2.0", **message}), flush=True)

def text(words):
    return {"content": [{"type": "text", "text": words}]}

def answer(method, params):
    if method == "initialize":
        server = {"name": "evil", "version": "1"}
        return {"protocolVersion": params["protocolVersion"], "capabilities": {"tools": {}}, "serverInfo": server}
    if method == "tools/list":
        names = ("right", "never", "neither", "flood")
        return {"tools": [{"name": name, "inputSchema": {"type": "object"}} for name in names]}
    return text("right")

def spurious(id):
    wrong = text("wrong")
    for other in (None, -1, 10**30, 1.5, True, "", str(id) + "x", "x" * 10_000, [id], {"id": id}, id + 1_000_000):
        send(id=other, result=wrong)
    send(id=id + 1, method="ping")  # a request of its own, with an id of ours
    send(method="notifications/cancelled", params={"requestId": id})
    send(method="notifications/cancelled", params={"requestId": "nobody's"})
    for token in (id, str(id), -1, None, "x" * 10_000, [id]):
        send(method="notifications/progress", params={"progressToken": token, "progress": 1})
    print("null\n0\n[]\n[1]\n{}\n\"x\"\n{\"jsonrpc\": \"2.0\"}", flush=True)

held = []
for line in sys.stdin:
    message = json.loads(line)
    if message.get("method") == "notifications/cancelled":
        for id in held:
            send(id=id, result=text("too late"))  # and again with every later cancellation
    if "id" not in message or "method" not in message:
        continue
    id, name = message["id"], (message.get("params") or {}).get("name")
    if name == "never":
        held.append(id)
        continue
    if name == "right":
        spurious(id)
    if name == "neither":
        print(json.dumps({"jsonrpc": "1.0", "id": id, "result": text("wrong")}), flush=True)
    if name == "flood":
        for place in range(2_000):
            send(method="notifications/progress", params={"progressToken": id, "progress": place})
            send(id=10**9 + place, result=text("x" * 1_000))
    result = answer(message["method"], message.get("params") or {})
    send(id=id, result=result)
    send(id=id, result=text("again"))
    send(id=id, error={"code": -32603, "message": "and again"})
"""


def said(answer):
    return [block.get("text") for block in answer.get("content", ())] or answer


def test_answers_to_nobody_twice_and_too_late(attacked):
    gateway = attacked({"evil": EVIL}, more={"evil": "session = 'shared'\ntimeout.call = 15"})
    with (
        gateway.watched() as watch,
        closing(gateway.client("cursor")) as one,
        closing(gateway.client("other", modern=True)) as other,
    ):
        for _ in range(10):
            assert said(one.call("evil__right")) == ["right"]
            assert said(other.call("evil__right")) == ["right"]
        given_up = threading.Thread(target=one.call, args=("evil__never",))
        given_up.start()
        for _ in range(20):
            assert said(other.call("evil__right")) == ["right"]
        given_up.join(60)
        for _ in range(5):
            assert said(one.call("evil__right")) == ["right"]
        (error,) = said(one.call("evil__neither"))
        assert "answered with something that is not a JSON-RPC response" in error
        assert said(other.call("evil__flood")) == ["right"]
        assert said(one.call("evil__right")) == ["right"]
    assert not watch.failures
    assert watch.longest < 5
    assert watch.growth < 100 * 2**20
