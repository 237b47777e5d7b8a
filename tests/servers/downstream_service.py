"""A small real service for the tests of the downstream side: every behaviour is a tool."""

import asyncio
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from typing import Any

from gateway.admission.admission import Admission
from gateway.core.model.caller import Caller
from gateway.core.model.change import Change
from gateway.errors import (
    ExpiredHandle,
    ScopeMissing,
    UnknownMethod,
    UnknownResource,
    UnknownTool,
    UpstreamRefused,
    UpstreamTimeout,
)
from gateway.routing.availability import WaitingLists
from gateway.serving.mcp.service import ProgressCallback
from gateway.upstream import Host
from gateway.upstream.attendance import Attendance

PIXEL = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="

STRANGE = {
    "content": [
        {"type": "video", "data": "AAAA", "codec": {"name": "av1", "hints": [None, 1, 2.5]}},
        {"type": "image", "data": PIXEL},
        {"type": "text", "text": "höher \u2028 ☃", "futureField": {"a": None}, "annotations": {"mood": "calm"}},
    ],
    "isError": False,
    "_meta": {"example.com/trace": None},
    "later": [1, {"two": 3}],
}
"""A result that no model of the SDK would let through whole."""

TOOLS: list[dict[str, Any]] = [
    {"name": name, "description": f"{name} it", "inputSchema": {"type": "object"}, "x-future": {"kept": None}}
    for name in (
        "echo",
        "wait",
        "count",
        "big",
        "strange",
        "broken",
        "print",
        "fail",
        "who",
        "change",
        "list-value",
        "waited",
    )
]


class SampleService:
    """Answers by the name of the tool; remembers what happened to the calls that wait."""

    def __init__(self) -> None:
        self.admission = Admission()
        self.events: list[str] = []
        self.happened = asyncio.Condition()
        self.listeners: list[Callable[[Change], None]] = []
        self.watched: list[str] = []
        self.gone: list[str] = []
        self.attendance = Attendance()
        self.waiting_lists = WaitingLists()

    async def watch(self, uri: str, caller: Caller) -> Callable[[], None]:
        if uri != "note://one":
            raise UnknownResource(f"no resource {uri}")
        self.watched.append(uri)
        return lambda: self.watched.remove(uri)

    def toolsets_in_force(self, caller: Caller) -> tuple[str, ...]:
        return caller.toolsets

    def knows_upstreams(self, caller: Caller) -> bool:
        return True

    def hears(self, caller: Caller, change: Change) -> bool:
        return True

    async def long_calls_ended(self) -> None:
        return

    async def roots_changed(self, session: str) -> None:
        await self._record("roots changed")

    def attending(self, host: str) -> AbstractContextManager[None]:
        return self.attendance.attending(host)

    def left(self, session: str) -> None:
        self.gone.append(session)

    async def check_scopes(self, params: Mapping[str, Any], caller: Caller) -> None:
        name = str(params.get("name"))
        if missing := caller.grant.missing_scopes("sample", name):
            raise ScopeMissing(f"{name} needs a scope", missing)

    async def respond(
        self,
        method: str,
        params: Mapping[str, Any],
        caller: Caller,
        *,
        on_progress: ProgressCallback | None = None,
        host: Host | None = None,
        waited: float = 0.0,
    ) -> dict[str, Any]:
        match method:
            case "tools/list":
                return {"tools": TOOLS}
            case "resources/list":
                return {"resources": [{"uri": "note://one", "name": "one", "size": 3}]}
            case "resources/templates/list":
                return {"resourceTemplates": []}
            case "resources/read":
                return self._read(params["uri"])
            case "tools/call" if params["name"] == "waited":
                return {"content": [], "structuredContent": {"seconds": waited}}
            case "tools/call":
                return await self._call(params["name"], params.get("arguments", {}), params, caller, on_progress)
        raise UnknownMethod(method)

    def header_schema(self, name: str, caller: Callable[[], Caller]) -> Mapping[str, Any] | None:
        return next((tool["inputSchema"] for tool in TOOLS if tool["name"] == name), None)

    def subscribe(self, listener: Callable[[Change], None]) -> Callable[[], None]:
        self.listeners.append(listener)
        return lambda: self.listeners.remove(listener)

    def change(self, kind: str) -> None:
        for listener in self.listeners:
            listener(Change(kind))

    async def saw(self, event: str) -> None:
        """Wait until this has happened."""
        async with self.happened:
            await self.happened.wait_for(lambda: event in self.events)

    async def _record(self, event: str) -> None:
        async with self.happened:
            self.events.append(event)
            self.happened.notify_all()

    def _read(self, uri: str) -> dict[str, Any]:
        if uri != "note://one":
            raise UnknownResource(f"no resource {uri}")
        return {"contents": [{"uri": uri, "mimeType": "text/plain", "text": "one", "future": True}]}

    async def _call(
        self,
        name: str,
        arguments: Mapping[str, Any],
        params: Mapping[str, Any],
        caller: Caller,
        on_progress: ProgressCallback | None,
    ) -> dict[str, Any]:
        match name:
            case "echo":
                return {"content": [{"type": "text", "text": "echo"}], "structuredContent": {"params": dict(params)}}
            case "wait":
                return await self._wait()
            case "count":
                for step in range(1, 4):
                    if on_progress is not None:
                        await on_progress(float(step), 3.0, f"step {step}")
                return _text("counted" if on_progress else "nobody asked")
            case "big":
                return {"content": [{"type": "image", "data": "A" * arguments["size"], "mimeType": "image/png"}]}
            case "strange":
                return STRANGE
            case "broken":
                return {"content": ({"type": "text", "text": "half \ud83d of a pair"},), "number": float("nan")}
            case "print":
                print("this must not reach the host")
                return _text("printed")
            case "who":
                known = {
                    **{name: value for name, value in vars(caller).items() if name not in ("grant", "token")},
                    "capabilities": dict(caller.capabilities),
                    "headers": dict(caller.headers),
                }
                return _text("you") | {"structuredContent": known}
            case "change":
                self.change(arguments["kind"])
                return _text("changed")
            case "list-value":
                return {"content": [], "structuredContent": [1, 2]}
            case "fail":
                raise FAILURES[arguments["how"]]
        raise UnknownTool(f"no tool {name!r} here")

    async def _wait(self) -> dict[str, Any]:
        await self._record("waiting")
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            self.events.append("cancelled")
            async with self.happened:
                self.happened.notify_all()
            raise
        return {}


def _text(text: str) -> dict[str, Any]:
    return {"content": [{"type": "text", "text": text}]}


FAILURES: dict[str, Exception] = {
    "timeout": UpstreamTimeout("slow", "took longer than 3 s", remedy="raise upstreams.slow.timeout.call"),
    "refused": UpstreamRefused("picky", -32021, "capability missing", {"requiredCapabilities": {"sampling": {}}}),
    "expired": ExpiredHandle("the content behind h_1 is gone", remedy="call the tool again"),
    "bug": RuntimeError("secret detail"),
    "wrapped": ExceptionGroup("task group", [UpstreamTimeout("slow", "took longer than 3 s")]),
}
