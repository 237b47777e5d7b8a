"""The upstream of the suite's scenarios of tasks (SEP-2663): `python -m tests.conformance.tasks`, at 2026-07-28 only.

It says `listening on <url>` on stderr once it does. The SDK has no tasks, so requests are answered in raw JSON.
"""

import asyncio
import secrets
import socket
import sys
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import Any

import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

REVISION = "2026-07-28"
EXTENSION = "io.modelcontextprotocol/tasks"
_META = "io.modelcontextprotocol/"
_OVER = ("completed", "failed", "cancelled")
_QUESTION = {
    "method": "elicitation/create",
    "params": {
        "mode": "form",
        "message": "Go on?",
        "requestedSchema": {
            "type": "object",
            "properties": {"name": {"type": "string"}, "confirm": {"type": "boolean"}},
        },
    },
}
_NAMED = {"tools/call": "name", "tasks/get": "taskId", "tasks/update": "taskId", "tasks/cancel": "taskId"}
_REQUIRED = ("failing_job", "protocol_error_job", "confirm_delete", "multi_input", "test_tool_with_task")
TOOLS = ("greet", "slow_compute", *_REQUIRED)


class Refused(Exception):
    def __init__(self, code: int, message: str, data: Any = None, status: int = 200) -> None:
        super().__init__(message)
        self.error = {"code": code, "message": message, **({} if data is None else {"data": data})}
        self.status = status


class Task:
    """One task: what it asks, and what it has become."""

    def __init__(self, seconds: float, result: Mapping[str, Any], questions: int = 0) -> None:
        self.id = secrets.token_hex(8)
        self.created = self.changed = _now()
        self.status = "working"
        self.outcome = dict(result)
        self.open = {f"question-{number}": _QUESTION for number in range(questions)}
        self.result: dict[str, Any] = {}
        if questions:
            self.status = "input_required"
        else:
            self._run = asyncio.get_running_loop().create_task(self._end(seconds))

    async def _end(self, seconds: float) -> None:
        await asyncio.sleep(seconds)
        if self.status not in _OVER:
            self.become("failed" if "error" in self.outcome else "completed")

    def become(self, status: str) -> None:
        self.status, self.changed = status, _now()
        if status != "cancelled":
            self.result = self.outcome

    def envelope(self) -> dict[str, Any]:
        dates = {"createdAt": self.created, "lastUpdatedAt": self.changed}
        return {"taskId": self.id, "status": self.status, **dates, "ttlMs": 600_000, "pollIntervalMs": 100}


class TaskServer:
    """Answers by the method, and by the name of the tool."""

    def __init__(self) -> None:
        self._tasks: dict[str, Task] = {}

    async def __call__(self, request: Request) -> Response:
        message = await request.json()
        if "id" not in message:
            return Response(status_code=202)
        try:
            result = self._answer(message["method"], message.get("params") or {}, request)
        except Refused as refused:
            return JSONResponse({"jsonrpc": "2.0", "id": message["id"], "error": refused.error}, refused.status)
        return JSONResponse({"jsonrpc": "2.0", "id": message["id"], "result": result})

    def _answer(self, method: str, params: dict[str, Any], request: Request) -> dict[str, Any]:
        meta = params.get("_meta") or {}
        if meta.get(f"{_META}protocolVersion") != REVISION:
            raise Refused(-32022, "Unsupported protocol version", {"supported": [REVISION]}, 400)
        key = _NAMED.get(method)
        if request.headers.get("mcp-method") != method or (key and request.headers.get("mcp-name") != params.get(key)):
            raise Refused(-32020, "the headers do not agree with the body", None, 400)
        declared = (meta.get(f"{_META}clientCapabilities") or {}).get("extensions") or {}
        takes = EXTENSION in declared
        answers: dict[str, Callable[[], dict[str, Any]]] = {
            "server/discover": lambda: {
                "supportedVersions": [REVISION],
                "capabilities": {"tools": {}, "extensions": {EXTENSION: {}}},
                **_cached(),
            },
            "tools/list": lambda: {"tools": [_tool(name) for name in TOOLS], **_cached()},
            "tools/call": lambda: self._called(params, takes=takes),
            "tasks/get": lambda: self._state(self._found(params)),
            "tasks/update": lambda: self._updated(self._found(params), params),
            "tasks/cancel": lambda: self._cancelled(self._found(params)),
        }
        if method not in answers:
            raise Refused(-32601, "Method not found", None, 404)
        if method.startswith("tasks/") and not takes:
            raise _lacks_tasks()
        return {"resultType": "complete", **answers[method]()}

    def _called(self, params: dict[str, Any], *, takes: bool) -> dict[str, Any]:
        name, arguments = params.get("name"), params.get("arguments") or {}
        if name == "greet":
            return _text(f"Hello, {arguments.get('name')}!")
        if name == "slow_compute" and not takes:
            return _text("computed")
        if not takes:
            raise _lacks_tasks()
        match name:
            case "slow_compute":
                task = Task(float(arguments.get("seconds", 0)), _text("computed"))
            case "failing_job":
                task = Task(0.2, {**_text("it failed"), "isError": True})
            case "protocol_error_job":
                task = Task(0.2, {"error": {"code": -32603, "message": "it broke"}})
            case "confirm_delete":
                task = Task(0, _text("deleted"), 1)
            case "multi_input":
                task = Task(0, _text("both said"), 2)
            case "test_tool_with_task":
                given = (params.get("inputResponses") or {}).get("user_name")
                if given is None:
                    return {"resultType": "input_required", "inputRequests": {"user_name": _QUESTION}}
                task = Task(0.2, _text(f"Hello, {given['content']['name']}!"))
            case _:
                raise Refused(-32602, f"no tool {name!r} here")
        self._tasks[task.id] = task
        return {"resultType": "task", **task.envelope()}

    def _found(self, params: dict[str, Any]) -> Task:
        task = self._tasks.get(str(params.get("taskId")))
        if task is None:
            raise Refused(-32602, "no such task")
        return task

    def _state(self, task: Task) -> dict[str, Any]:
        outcome: dict[str, Any] = {}
        if task.status == "failed":
            outcome = {"error": task.result["error"]}
        elif task.status == "completed":
            outcome = {"result": task.result}
        elif task.status == "input_required":
            outcome = {"inputRequests": task.open}
        return {**task.envelope(), **outcome}

    def _updated(self, task: Task, params: dict[str, Any]) -> dict[str, Any]:
        for key in params.get("inputResponses") or {}:
            task.open.pop(key, None)
        if task.status == "input_required" and not task.open:
            task.become("completed")
        return {}

    def _cancelled(self, task: Task) -> dict[str, Any]:
        if task.status not in _OVER:
            task.become("cancelled")
        return {}


def _tool(name: str) -> dict[str, Any]:
    return {"name": name, "description": f"{name}.", "inputSchema": {"type": "object"}}


def _text(text: str) -> dict[str, Any]:
    return {"content": [{"type": "text", "text": text}], "resultType": "complete"}


def _cached() -> dict[str, Any]:
    return {"ttlMs": 1_000, "cacheScope": "public"}


def _lacks_tasks() -> Refused:
    needed = {"requiredCapabilities": {"extensions": {EXTENSION: {}}}}
    return Refused(-32021, f"the client does not declare {EXTENSION}", needed, 400)


def _now() -> str:
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


async def main() -> None:
    listening = socket.create_server(("127.0.0.1", 0))
    app = Starlette(routes=[Route("/mcp", TaskServer().__call__, methods=["POST"])])
    server = uvicorn.Server(uvicorn.Config(app, log_config=None, access_log=False))
    print(f"listening on http://127.0.0.1:{listening.getsockname()[1]}/mcp", file=sys.stderr, flush=True)
    await server.serve([listening])


if __name__ == "__main__":
    asyncio.run(main())
