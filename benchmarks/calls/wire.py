"""MCP as bytes, without the SDK: what the driver sends, and what the raw upstream answers."""

import base64
import io
import json
import random
import struct
import zlib
from collections.abc import Callable, Mapping, Sequence
from enum import StrEnum
from functools import cache
from typing import Any, Final

META: Final = "io.modelcontextprotocol/"
CLIENT: Final = {"name": "benchmark", "version": "1"}
SERVER: Final = {"name": "raw", "version": "1"}
MEGABYTE: Final = 1_000_000
ARGUMENTS: Final = {"note": "as usual"}
"""Every call has an argument, as real ones have."""


class Era(StrEnum):
    """Both ends of a path speak the same one."""

    STATELESS = "2026-07-28"
    HANDSHAKE = "2025-11-25"


def request(era: Era, number: int, method: str, params: Mapping[str, Any] | None = None) -> bytes:
    """One JSON-RPC request."""
    full: dict[str, Any] = dict(params or {})
    if era is Era.STATELESS:
        full["_meta"] = {
            f"{META}protocolVersion": era.value,
            f"{META}clientInfo": CLIENT,
            f"{META}clientCapabilities": {},
        }
    return _dumped({"jsonrpc": "2.0", "id": number, "method": method, "params": full})


def initialize(number: int) -> bytes:
    """The request that opens a session."""
    params = {"protocolVersion": Era.HANDSHAKE.value, "capabilities": {}, "clientInfo": CLIENT}
    return _dumped({"jsonrpc": "2.0", "id": number, "method": "initialize", "params": params})


INITIALIZED: Final = b'{"jsonrpc":"2.0","method":"notifications/initialized"}'


def http_head(
    era: Era, path: str, host: str, method: str, name: str | None, session: str | None, more: Sequence[str] = ()
) -> bytes:
    """The head of a POST, up to the value of content-length; `more` are further headers."""
    lines = [
        f"POST {path} HTTP/1.1",
        f"host: {host}",
        "content-type: application/json",
        "accept: application/json, text/event-stream",
        *more,
    ]
    if era is Era.STATELESS:
        lines += [f"mcp-protocol-version: {era}", f"mcp-method: {method}"]
        lines += [] if name is None else [f"mcp-name: {name}"]
    elif session is not None:
        lines += [f"mcp-protocol-version: {era}", f"mcp-session-id: {session}"]
    elif method != "initialize":
        lines += [f"mcp-protocol-version: {era}"]
    return "\r\n".join([*lines, "content-length: "]).encode()


def tools(count: int) -> list[dict[str, Any]]:
    """The tools of a server: those that are called, and others up to the count."""
    schema = {"type": "object", "properties": {"note": {"type": "string", "description": "Anything at all."}}}
    named = [
        {"name": name, "description": f"Returns {name}.", "inputSchema": schema}
        | ({"outputSchema": OUTPUT_SCHEMA} if name == "structured" else {})
        for name in RESULTS
    ]
    filling = [
        {"name": f"other_{number:05}", "description": "One of many tools, never called.", "inputSchema": schema}
        for number in range(count - len(named))
    ]
    return named + filling


OUTPUT_SCHEMA: Final[dict[str, Any]] = {
    "type": "object",
    "properties": {
        "rows": {
            "type": "array",
            "items": {
                "type": "object",
                "properties": {
                    "id": {"type": "integer"},
                    "name": {"type": "string"},
                    "score": {"type": "number"},
                    "tags": {"type": "array", "items": {"type": "string"}},
                },
                "required": ["id", "name", "score", "tags"],
            },
        }
    },
    "required": ["rows"],
}


def _text() -> dict[str, Any]:
    return {"content": [{"type": "text", "text": "The quick brown fox jumps over the lazy dog. " * 22}]}


def _structured() -> dict[str, Any]:
    rows = [{"id": n, "name": f"row number {n}", "score": n / 7, "tags": ["one", "two"]} for n in range(20)]
    data = {"rows": rows}
    return {"content": [{"type": "text", "text": json.dumps(data)}], "structuredContent": data}


def _noise(size: int) -> Callable[[], dict[str, Any]]:
    def result() -> dict[str, Any]:
        return _image(noise_png(size), "image/png")

    return result


def _photo() -> dict[str, Any]:
    from PIL import Image

    small = Image.frombytes("RGB", (400, 300), random.Random(0).randbytes(400 * 300 * 3))  # noqa: S311
    written = io.BytesIO()
    small.resize((4_000, 3_000), Image.Resampling.BICUBIC).save(written, "JPEG", quality=90)
    return _image(written.getvalue(), "image/jpeg")


def _image(data: bytes, media_type: str) -> dict[str, Any]:
    return {"content": [{"type": "image", "data": base64.b64encode(data).decode(), "mimeType": media_type}]}


RESULTS: Final[Mapping[str, Callable[[], dict[str, Any]]]] = {
    "text": _text,
    "structured": _structured,
    "image_10k": _noise(10_000),
    "image_1m": _noise(MEGABYTE),
    "image_8m": _noise(8 * MEGABYTE),
    "photo": _photo,
}
"""What each tool returns; `photo` has 12 megapixels."""


@cache
def result_bytes(tool: str, era: Era) -> bytes:
    """The result of a tool, as it stands in the answer."""
    more = {"resultType": "complete"} if era is Era.STATELESS else {}
    return _dumped(RESULTS[tool]() | more)


def noise_png(size: int) -> bytes:
    """A PNG that cannot be compressed, of about that many bytes."""
    edge = int((size / 3) ** 0.5)
    noise = random.Random(size)  # noqa: S311
    rows = b"".join(b"\0" + noise.randbytes(3 * edge) for _ in range(edge))
    head = struct.pack(">IIBBBBB", edge, edge, 8, 2, 0, 0, 0)
    chunks = ((b"IHDR", head), (b"IDAT", zlib.compress(rows, 1)), (b"IEND", b""))
    return b"\x89PNG\r\n\x1a\n" + b"".join(
        struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data)) for kind, data in chunks
    )


class Answers:
    """What a server says: prepared once, so that answering costs next to nothing."""

    def __init__(self, era: Era, count: int) -> None:
        self._era = era
        self._hints: dict[str, Any] = (
            {"resultType": "complete", "ttlMs": 0, "cacheScope": "private"} if era is Era.STATELESS else {}
        )
        self._list = _dumped({"tools": tools(count), **self._hints})

    def answer(self, message: bytes) -> bytes | None:
        """The answer to a request; None for a notification."""
        asked = json.loads(message)
        if "id" not in asked:
            return None
        result = self._result(asked.get("method"), asked.get("params") or {})
        body = b'"error":{"code":-32601,"message":"Method not found"}' if result is None else b'"result":' + result
        return b'{"jsonrpc":"2.0","id":' + _dumped(asked["id"]) + b"," + body + b"}"

    def _result(self, method: str | None, params: Mapping[str, Any]) -> bytes | None:
        match method:
            case "tools/call":
                return result_bytes(params["name"], self._era)
            case "tools/list":
                return self._list
            case "initialize" if self._era is Era.HANDSHAKE:
                return _dumped(
                    {"protocolVersion": Era.HANDSHAKE.value, "capabilities": {"tools": {}}, "serverInfo": SERVER}
                )
            case "server/discover" if self._era is Era.STATELESS:
                said: dict[str, Any] = {
                    "supportedVersions": [Era.STATELESS.value],
                    "capabilities": {"tools": {}},
                    **self._hints,
                }
                return _dumped(said | {"_meta": {f"{META}serverInfo": SERVER}})
            case "ping":
                return b"{}"
            case _:
                return None


def _dumped(value: Any) -> bytes:
    return json.dumps(value, separators=(",", ":")).encode()
