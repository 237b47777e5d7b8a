"""The server behind the fleet: Streamable HTTP with sessions (2025-06-18), whose tools answer with marks.

    python -m benchmarks.fleet.upstream PORT

A mark names the host and the call that it was made for, so that it is seen when somebody else gets it.
"""

import asyncio
import base64
import itertools
import json
import random
import struct
import sys
import uuid
import zlib
from collections import Counter
from collections.abc import AsyncGenerator, Mapping
from typing import Any, Final

import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import Route

REVISION: Final = "2025-06-18"
TOOLS: Final = ("echo", "picture", "count", "slow", "ask")
_EDGE: Final = 48
_QUESTION_SECONDS: Final = 60.0
_PIXELS: Final = zlib.compress(
    b"".join(b"\0" + random.Random(row).randbytes(3 * _EDGE) for row in range(_EDGE)),  # noqa: S311
    1,
)


def picture(mark: str) -> bytes:
    """Return a PNG that bears the mark, and that no other has the bytes of."""
    head = struct.pack(">IIBBBBB", _EDGE, _EDGE, 8, 2, 0, 0, 0)
    chunks = ((b"IHDR", head), (b"tEXt", b"Comment\0" + mark.encode()), (b"IDAT", _PIXELS), (b"IEND", b""))
    return b"\x89PNG\r\n\x1a\n" + b"".join(
        struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data)) for kind, data in chunks
    )


class Server:
    """All sessions: how often each has counted, and the questions that wait for an answer."""

    def __init__(self) -> None:
        self._sessions: dict[str, int] = {}
        self._questions: dict[str, asyncio.Future[Mapping[str, Any]]] = {}
        self._numbers = itertools.count(1)
        self.carried_out: Counter[str] = Counter()
        """How often each marked call was made: no gateway may repeat one by itself."""

    async def respond(self, request: Request) -> Response:
        """Answer one request of a client."""
        session = request.headers.get("mcp-session-id")
        if request.method == "DELETE":
            self._sessions.pop(session or "", None)
            return Response(status_code=204)
        if request.method != "POST":
            return Response(status_code=405, headers={"Allow": "POST, DELETE"})
        message: dict[str, Any] = await request.json()
        if "method" not in message:
            return self._answered(message)
        if "id" not in message:
            return Response(status_code=202)
        method: str = message["method"]
        params: dict[str, Any] = message.get("params") or {}
        if method == "initialize":
            session = uuid.uuid4().hex
            self._sessions[session] = 0
            info = {"name": "fleet", "version": "1"}
            result: dict[str, Any] = {"protocolVersion": REVISION, "capabilities": {"tools": {}}, "serverInfo": info}
            return JSONResponse(_result(message, result), headers={"Mcp-Session-Id": session})
        if session not in self._sessions:
            return JSONResponse(_error(message, -32600, "no such session"), 404)
        if method == "tools/list":
            schema = {"type": "object"}
            return JSONResponse(_result(message, {"tools": [{"name": name, "inputSchema": schema} for name in TOOLS]}))
        if method != "tools/call":
            return JSONResponse(_error(message, -32601, "unknown method") if method != "ping" else _result(message, {}))
        return await self._call(message, params["name"], params.get("arguments") or {}, session)

    async def carried(self, request: Request) -> Response:
        """Answer how often each marked call was made."""
        return JSONResponse(self.carried_out)

    async def _call(
        self, message: Mapping[str, Any], tool: str, arguments: Mapping[str, Any], session: str
    ) -> Response:
        mark = str(arguments.get("mark", ""))
        self.carried_out[mark] += 1
        if tool == "ask":
            return StreamingResponse(self._ask(message, mark), media_type="text/event-stream")
        if tool == "slow":
            await asyncio.sleep(float(arguments["seconds"]))
        if tool == "count":
            self._sessions[session] += 1
            return JSONResponse(_result(message, _text(f"{self._sessions[session]} {mark}")))
        if tool == "picture":
            data = base64.b64encode(picture(mark)).decode()
            return JSONResponse(
                _result(message, {"content": [{"type": "image", "data": data, "mimeType": "image/png"}]})
            )
        return JSONResponse(_result(message, _text(f"done {mark}")))

    async def _ask(self, message: Mapping[str, Any], mark: str) -> AsyncGenerator[str]:
        question = f"q{next(self._numbers)}"
        answer = self._questions[question] = asyncio.get_running_loop().create_future()
        schema = {"type": "object", "properties": {"answer": {"type": "string"}}}
        params = {"message": f"Really, {mark}?", "requestedSchema": schema}
        yield _event({"jsonrpc": "2.0", "id": question, "method": "elicitation/create", "params": params})
        try:
            async with asyncio.timeout(_QUESTION_SECONDS):
                content: Mapping[str, Any] = (await answer).get("content") or {}
            yield _event(_result(message, _text(f"{content.get('answer')} {mark}")))
        except TimeoutError:
            yield _event(_error(message, -32000, "the host has not answered"))
        finally:
            self._questions.pop(question, None)

    def _answered(self, message: Mapping[str, Any]) -> Response:
        waiting = self._questions.get(str(message.get("id")))
        if waiting is not None and not waiting.done():
            waiting.set_result(message.get("result") or {})
        return Response(status_code=202)


def _text(words: str) -> dict[str, Any]:
    return {"content": [{"type": "text", "text": words}]}


def _result(message: Mapping[str, Any], result: Mapping[str, Any]) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": message["id"], "result": result}


def _error(message: Mapping[str, Any], code: int, words: str) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": message["id"], "error": {"code": code, "message": words}}


def _event(message: Mapping[str, Any]) -> str:
    return f"event: message\ndata: {json.dumps(message)}\n\n"


def application() -> Starlette:
    """Return the server, at `/mcp`; `/carried` says which calls were made how often."""
    server = Server()
    return Starlette(
        routes=[
            Route("/mcp", server.respond, methods=["GET", "POST", "DELETE"]),
            Route("/carried", server.carried),
        ]
    )


if __name__ == "__main__":
    uvicorn.run(application(), host="127.0.0.1", port=int(sys.argv[1]), log_level="warning", access_log=False)
