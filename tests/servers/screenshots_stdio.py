"""An MCP server on stdio from the standard library alone, for scripts: it takes screenshots, compares them, fails.

`python screenshots_stdio.py [LOG]`: each call that arrives is a line of JSON in the file LOG. Calls run beside one
another, so that a slow one can be cancelled. The screenshots of `old.example/7` and `new.example/7` differ, and all
others of the same number are equal.
"""

import base64
import json
import random
import struct
import sys
import threading
import time
import zlib

WIDTH, HEIGHT = 1280, 800
CHANGED = (7, 13)


def chunk(kind, data):
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))


def screenshot(url):
    """A PNG of the size of a browser's window, with as much in it as a page of text has."""
    number = int(url.rsplit("/", 1)[-1])
    host = url.split("//")[-1].split("/")[0]
    drawn = random.Random(f"{number} {host}" if number in CHANGED else number)
    lines = [bytes(drawn.choice((0x20, 0xF0)) for _ in range(WIDTH // 8)) for _ in range(HEIGHT // 16)]
    blank = b"\0" + b"\xff" * WIDTH
    rows = b"".join(b"".join([blank] * 10 + [b"\0" + bytes(b for b in line for _ in range(8))] * 6) for line in lines)
    header = struct.pack(">IIBBBBB", WIDTH, HEIGHT, 8, 0, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b"")


def pixels(data):
    content, at, found = base64.b64decode(data), 8, b""
    while at < len(content):
        (length,) = struct.unpack(">I", content[at : at + 4])
        if content[at + 4 : at + 8] == b"IDAT":
            found += content[at + 8 : at + 8 + length]
        at += 12 + length
    return zlib.decompress(found)


TEXT = {"type": "string"}
PICTURE = {"type": "string", "contentEncoding": "base64", "contentMediaType": "image/*"}
READS = {"readOnlyHint": True}


def tool(name, description, required=(), *, annotations=READS, output=None, **properties):
    schema = {"type": "object", "properties": properties, "required": list(required)}
    declared = {"name": name, "description": description, "inputSchema": schema, "annotations": annotations}
    return declared | ({"outputSchema": output} if output else {})


DIFFERENCE = {"type": "object", "properties": {"difference": {"type": "number"}}, "required": ["difference"]}
TOOLS = [
    tool("screenshot", "Takes a screenshot of a page.", ["url"], full_page={"type": "boolean"}, url=TEXT),
    tool("compare", "Compares two pictures.", ["a", "b"], output=DIFFERENCE, a=PICTURE, b=PICTURE),
    tool("report", "Gives data, words and a picture."),
    tool("words", "Says its arguments again.", text=TEXT),
    tool("log-lines", "Has a name that Python does not take.", **{"max-lines": {"type": "integer"}}),
    tool("fail", "Fails."),
    tool("wait", "Waits.", seconds={"type": "number"}),
    tool("note", "Gives a text file and a PDF."),
    tool("click", "Clicks.", annotations={}, selector=TEXT),
]


def text(words):
    return {"content": [{"type": "text", "text": words}]}


def picture(url):
    return {"type": "image", "data": base64.b64encode(screenshot(url)).decode(), "mimeType": "image/png"}


def called(name, given):
    match name:
        case "screenshot":
            return {"content": [picture(given["url"])]}
        case "compare":
            first, second = pixels(given["a"]), pixels(given["b"])
            share = sum(a != b for a, b in zip(first, second, strict=True)) / len(first)
            return {**text(json.dumps({"difference": share})), "structuredContent": {"difference": share}}
        case "report":
            blocks = [{"type": "text", "text": "a report"}, picture("http://x/1")]
            return {"content": blocks, "structuredContent": {"pages": 3}}
        case "fail":
            return {**text("the page is gone"), "isError": True}
        case "wait":
            time.sleep(given.get("seconds", 0.2))
            return text("waited")
        case "note":
            blob = base64.b64encode(b"%PDF-1.4\n%%EOF\n").decode()
            files = [
                {"uri": "file:///a/note.txt", "mimeType": "text/plain", "text": "a note"},
                {"uri": "file:///a/note.pdf", "mimeType": "application/pdf", "blob": blob},
            ]
            return {"content": [{"type": "resource", "resource": each} for each in files]}
        case _:
            return text(json.dumps(given))


def answer(request):
    params = request.get("params") or {}
    match request["method"]:
        case "initialize":
            info = {"name": "screenshots", "version": "1"}
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


writing = threading.Lock()


def log(entry):
    if len(sys.argv) > 1:
        with writing, open(sys.argv[1], "a", encoding="utf-8") as file:
            file.write(json.dumps(entry) + "\n")


def respond(request):
    answered = json.dumps({"jsonrpc": "2.0", "id": request["id"], **answer(request)})
    with writing:
        print(answered, flush=True)


for line in sys.stdin:
    request = json.loads(line)
    if request.get("method") in ("tools/call", "notifications/cancelled"):
        log({"method": request["method"], "params": request["params"]})
    if "id" in request and "method" in request:
        threading.Thread(target=respond, args=(request,), daemon=True).start()
