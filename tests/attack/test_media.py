"""Pictures that are small to send and slow to draw: others get theirs meanwhile, and one result ends some time."""

import base64
import threading
import time
from contextlib import closing

EVIL = """
import base64, json, sys

SLOW = (
    '<svg xmlns="http://www.w3.org/2000/svg" width="2000" height="2000">'
    '<filter id="f" x="0" y="0" width="1" height="1"><feTurbulence baseFrequency="0.9" numOctaves="10"/></filter>'
    + '<rect width="2000" height="2000" filter="url(#f)"/>' * 60 + "</svg>"
)
DEEP = '<svg xmlns="http://www.w3.org/2000/svg">' + "<g>" * 990 + '<path d="M0 0h9v9"/>' + "</g>" * 990 + "</svg>"
QUICK = '<svg xmlns="http://www.w3.org/2000/svg" width="9" height="9"/>'

def picture(svg, n):
    data = base64.b64encode(svg.replace("0.9", f"0.{n + 1}").encode()).decode()
    return {"type": "image", "data": data, "mimeType": "image/svg+xml"}

def answer(method, params):
    if method == "initialize":
        server = {"name": "evil", "version": "1"}
        return {"protocolVersion": params["protocolVersion"], "capabilities": {"tools": {}}, "serverInfo": server}
    if method == "tools/list":
        return {"tools": [{"name": name, "inputSchema": {"type": "object"}} for name in ("slow", "quick", "deep")]}
    pictures = {"slow": [picture(SLOW, n) for n in range(8)], "quick": [picture(QUICK, 0)], "deep": [picture(DEEP, 0)]}
    return {"content": pictures[params["name"]]}

for line in sys.stdin:
    message = json.loads(line)
    if "id" in message and "method" in message:
        result = answer(message["method"], message.get("params") or {})
        print(json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": result}), flush=True)
"""


def test_eight_slow_pictures_of_one_result(attacked):
    # One job may take 6 seconds and one result 9, so that this test is short; by default it is 20 and 60.
    gateway = attacked({"evil": EVIL}, config="[media]\ntimeout = 6\nresult_timeout = 9")
    ended: list[float] = []
    said: list[dict] = []

    def look(host):
        said.append(host.call("evil__slow"))
        ended.append(time.monotonic())

    with (
        gateway.watched() as watch,
        closing(gateway.client("cursor", path="/mcp/cursor")) as slow,
        closing(gateway.client("other", path="/mcp/cursor")) as other,
    ):
        began = time.monotonic()
        thread = threading.Thread(target=look, args=(slow,))
        thread.start()
        # The evil one's pictures hold every worker before the other host asks for its own.
        waits = []
        while thread.is_alive() and len(waits) < 5:
            asked = time.monotonic()
            answer = other.call("evil__quick")
            waits.append(time.monotonic() - asked)
            image = next(block for block in answer["content"] if block["type"] == "image")
            assert base64.b64decode(image["data"]).startswith(b"\x89PNG")
            thread.join(0.5)
        thread.join(60)
    print(f"another host's picture took {max(waits):.2f} s at most; the slow result {ended[0] - began:.2f} s")
    assert max(waits) < 5
    assert "longer than 9 s altogether" in said[0]["content"][0]["text"]
    assert not watch.failures
    assert watch.longest < 5


def test_a_picture_that_nests_deep_ends_no_worker(attacked):
    gateway = attacked({"evil": EVIL})
    with gateway.watched() as watch, closing(gateway.client("cursor", path="/mcp/cursor")) as host:
        assert "nest deeper than 300" in host.call("evil__deep")["content"][0]["text"]
    assert not watch.failures
