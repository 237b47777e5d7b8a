"""An MCP server on stdio from the standard library alone, whose tools give content, and say what they were given.

`python content_stdio.py [LOG]`: each call that arrives is a line of JSON in the file LOG.
"""

import base64
import json
import os
import stat
import struct
import sys
import zlib


def png(width, height):
    def chunk(kind, data):
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    header = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    rows = (b"\0" + b"\x20\x60\xc0" * width) * height
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b"")


def block(kind, content, media_type):
    return {"type": kind, "data": base64.b64encode(content).decode(), "mimeType": media_type}


PNG = png(40, 30)
WAV = b"RIFF\x24\0\0\0WAVEfmt " + bytes(28)
GIVEN = {"picture": block("image", PNG, "image/png"), "sound": block("audio", WAV, "audio/wav")}
TEXT = {"type": "string"}
ENCODED = {"type": "string", "contentEncoding": "base64"}
TAKEN = {
    "see": {"photo": {**ENCODED, "contentMediaType": "image/*", "description": "What to look at."}},
    "hear": {"sound": {**ENCODED, "contentMediaType": "audio/*"}},
    "pair": {
        "image": {"type": "object", "properties": {"data": TEXT, "mimeType": TEXT}, "required": ["data", "mimeType"]}
    },
    "uri": {"file": {"type": "string", "format": "uri", "x-mcp-file": {"accept": ["image/*"], "maxSize": 100_000}}},
    "typed": {"photo": {"type": "string", "x-blazen-content-ref": {"kind": "image"}}},
    "album": {
        "photos": {"type": "array", "items": {"type": "object", "properties": {"photo": ENCODED, "title": TEXT}}}
    },
    "open": {"path": {**TEXT, "description": "A path."}},
    "load": {"url": {**TEXT, "format": "uri"}},
    "any": {"blob": ENCODED},
    "plain": {"words": TEXT},
    "refuse": {"photo": TEXT, "album": {"type": "array", "items": TEXT}, "marked": ENCODED},
}
TOOLS = [
    {"name": name, "inputSchema": {"type": "object", "properties": properties}}
    for name, properties in ({name: {} for name in GIVEN} | TAKEN).items()
]


def seen(arguments):
    """The arguments, and of a path what is there now."""
    path = arguments.get("path")
    if not path or not os.path.isfile(path):
        return {"arguments": arguments}
    with open(path, "rb") as file:
        content = file.read()
    modes = [stat.S_IMODE(os.stat(each).st_mode) for each in (path, os.path.dirname(path))]
    return {"arguments": arguments, "content": base64.b64encode(content).decode(), "modes": modes}


def called(name, arguments):
    if name in GIVEN:
        return {"content": [GIVEN[name]]}
    if name == "refuse":
        return {"content": [{"type": "text", "text": "that is not a picture"}], "isError": True}
    told = json.dumps(seen(arguments))
    if len(sys.argv) > 1:
        with open(sys.argv[1], "a", encoding="utf-8") as log:
            log.write(json.dumps({"name": name, **json.loads(told)}) + "\n")
    return {"content": [{"type": "text", "text": f"{name} was called"}]}


def answer(request):
    params = request.get("params") or {}
    match request["method"]:
        case "initialize":
            info = {"name": "content", "version": "1"}
            revision = params["protocolVersion"]
            return {"result": {"protocolVersion": revision, "capabilities": {"tools": {}}, "serverInfo": info}}
        case "tools/list":
            return {"result": {"tools": TOOLS}}
        case "tools/call":
            return {"result": called(params["name"], params.get("arguments") or {})}
        case "ping":
            return {"result": {}}
        case _:
            return {"error": {"code": -32601, "message": "unknown method"}}


for line in sys.stdin:
    request = json.loads(line)
    if "id" in request and "method" in request:
        print(json.dumps({"jsonrpc": "2.0", "id": request["id"], **answer(request)}), flush=True)
