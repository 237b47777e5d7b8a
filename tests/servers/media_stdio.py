"""An MCP server on stdio from the standard library alone, of the handshake era: pictures, words, resources.

The pixel of each picture at (x, y) is (x % 256, y % 256, x // 256), so that a test can tell which part it was shown.
"""

import base64
import json
import os
import struct
import sys
import zlib


def png(width, height):
    def chunk(kind, data):
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    rows = bytearray()
    for y in range(height):
        rows += b"\0" + b"".join(bytes((x % 256, y % 256, x // 256)) for x in range(width))
    header = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    body = chunk(b"IHDR", header) + chunk(b"IDAT", zlib.compress(bytes(rows), 1)) + chunk(b"IEND", b"")
    return base64.b64encode(b"\x89PNG\r\n\x1a\n" + body).decode()


def text(words):
    return {"type": "text", "text": words}


def picture(width=40, height=30):
    return {"type": "image", "data": png(width, height), "mimeType": "image/png"}


def words(arguments):
    return "".join(f"line {number}\n" for number in range(arguments["lines"]))


RESULTS = {
    "picture": lambda arguments: {"content": [text("a small one"), picture()]},
    "large_picture": lambda arguments: {"content": [picture(2400, 800)]},
    "both": lambda arguments: {"content": [text("shown"), picture()], "structuredContent": {"n": 1}},
    "failing": lambda arguments: {"content": [text("it broke"), picture()], "isError": True},
    "words": lambda arguments: {"content": [text(words(arguments))]},
    "link": lambda arguments: {
        "content": [{"type": "resource_link", "uri": "made://unlisted", "name": "made", "mimeType": "text/plain"}]
    },
    "pid": lambda arguments: {"content": [text(str(os.getpid()))]},
    "crash": lambda arguments: os._exit(3),
}
OBJECT = {"type": "object"}
TOOLS = [
    {"name": name, "description": f"Gives {name}.", "inputSchema": OBJECT, "annotations": {"readOnlyHint": True}}
    | ({"outputSchema": OBJECT} if name == "both" else {})
    for name in RESULTS
]
RESOURCES = [{"uri": "file:///notes.txt", "name": "notes", "mimeType": "text/plain", "size": 5}]
TEMPLATES = [{"uriTemplate": "db://{table}", "name": "table"}]
READABLE = {"file:///notes.txt": "notes", "db://users": "ann, bob", "made://unlisted": "made here"}


class Refused(Exception):
    pass


def answer(method, params):
    if method == "initialize":
        capabilities = {"tools": {}, "resources": {}}
        server = {"name": "media", "version": "1"}
        return {"protocolVersion": "2025-11-25", "capabilities": capabilities, "serverInfo": server}
    if method == "tools/list":
        return {"tools": TOOLS}
    if method == "tools/call":
        return RESULTS[params["name"]](params.get("arguments") or {})
    if method == "resources/list":
        return {"resources": RESOURCES}
    if method == "resources/templates/list":
        return {"resourceTemplates": TEMPLATES}
    if method == "resources/read":
        if params["uri"] not in READABLE:
            raise Refused(-32002, "Resource not found")
        return {"contents": [{"uri": params["uri"], "mimeType": "text/plain", "text": READABLE[params["uri"]]}]}
    if method == "ping":
        return {}
    raise Refused(-32601, "Method not found")


for line in sys.stdin:
    message = json.loads(line)
    if "id" in message and "method" in message:
        try:
            reply = {"result": answer(message["method"], message.get("params") or {})}
        except Refused as refused:
            reply = {"error": {"code": refused.args[0], "message": refused.args[1]}}
        print(json.dumps({"jsonrpc": "2.0", "id": message["id"], **reply}), flush=True)
