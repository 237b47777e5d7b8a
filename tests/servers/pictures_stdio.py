"""A stdio server for the command line's tests, from the standard library alone: pictures, errors, hostile names.

`python pictures_stdio.py [SECONDS]`: answers nothing before so many seconds have passed.
"""

import base64
import json
import os
import struct
import sys
import time
import zlib


def png(width, height):
    """A plain PNG, without any library."""

    def chunk(kind, data):
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    rows = (b"\0" + b"\x20\x60\xc0" * width) * height
    header = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b"")


IMAGE = {"type": "image", "data": base64.b64encode(png(40, 30)).decode(), "mimeType": "image/png"}
SOUND = {"type": "audio", "data": base64.b64encode(b"RIFF\x24\0\0\0WAVEfmt " + bytes(24)).decode()}
RESULTS = {
    "picture": {"content": [{"type": "text", "text": "A blue field.\x1b]0;owned\x07"}, IMAGE]},
    "fail": {"content": [{"type": "text", "text": "It broke."}, IMAGE], "isError": True},
    "sound": {"content": [SOUND | {"mimeType": "../../etc/passwd"}]},
    "../evil\x1b[2J": {"content": [IMAGE]},
}
SCHEMA = {"type": "object", "properties": {"name": {"type": "string"}}}
TOOLS = [
    {"name": name, "description": f"Gives {name}.\nSecond line.", "inputSchema": SCHEMA}
    for name in (*RESULTS, "echo", "refuse", "pid")
]


def answer(request):
    """The result of a request, or its error."""
    params = request.get("params") or {}
    match request["method"]:
        case "initialize":
            info = {"name": "pictures", "version": "1"}
            revision = params["protocolVersion"]
            return {"result": {"protocolVersion": revision, "capabilities": {"tools": {}}, "serverInfo": info}}
        case "tools/list":
            return {"result": {"tools": TOOLS}}
        case "tools/call" if params["name"] in RESULTS:
            return {"result": RESULTS[params["name"]]}
        case "tools/call" if params["name"] == "echo":
            return {"result": {"content": [{"type": "text", "text": json.dumps(params.get("arguments"))}]}}
        case "tools/call" if params["name"] == "pid":
            return {"result": {"content": [{"type": "text", "text": str(os.getpid())}]}}
        case "tools/call":
            return {"error": {"code": -32000, "message": "not today"}}
        case _:
            return {"error": {"code": -32601, "message": "unknown method"}}


time.sleep(float(sys.argv[1]) if len(sys.argv) > 1 else 0)
for line in sys.stdin:
    message = json.loads(line)
    if "id" in message and "method" in message:
        print(json.dumps({"jsonrpc": "2.0", "id": message["id"], **answer(message)}), flush=True)
