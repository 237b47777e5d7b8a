"""A host on stdio while the configuration cannot be used: it is told so, and served as ever once that is corrected.

Standard library only. A process that ended would say nothing to the model, and little to the user: many hosts show a
server that ended after its first answer as connected, with no tools. So the host is offered one tool, whose description
is the problem, and every other request is answered with it. What the real server has to know of the host waits for it.
"""

import json
import threading
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, TypeVar

from gateway.config.fingerprint import Usability, usability
from gateway.core.model.wire import INTERNAL_ERROR, SUBSCRIPTION_ID
from gateway.core.tools.instructions import Introductions
from gateway.serving.mcp.early_lists import Acknowledgement, acknowledgement
from gateway.serving.mcp.early_stdio import Arrival, EarlyStdio
from gateway.serving.mcp.handshake import Refusal

PROBLEM_TOOL = "gateway_problem"

_LOOK_SECONDS = 1.0
"""Time between looks at the file. Only a person changes it."""
_MOST_KEPT = 100
"""Messages that are left for the real server. More subscriptions are answered with the problem."""

_EMPTY = {"resources/list": "resources", "resources/templates/list": "resourceTemplates", "prompts/list": "prompts"}
_KINDS = ("tools", "resources", "prompts")

UsableT = TypeVar("UsableT")


def await_configuration(
    opening: EarlyStdio,
    file: Path,
    seen: Usability | None,
    problem: str,
    load: Callable[[], UsableT | str],
) -> UsableT | None:
    """Answer a host with the problem until the file is a configuration that can be used.

    `seen` is its `usability` from before the problem was found: it may be corrected already. `load` is called in
    this thread whenever the file has changed, and returns the problem as it is then, or what this is to return. Return
    None if the host leaves. The host is told at the end that its lists have changed.
    """
    opening.introduce(opening.identity._replace(instructions=problem_for_models(problem), others=Introductions()))
    waiting = _Waiting(opening, problem)
    woken = threading.Event()
    opening.listen(woken.set)
    while True:
        while (taken := opening.take()) is not None:
            waiting.take(*taken)
        if opening.ended and not opening.waiting:
            return None
        if (now := usability(file)) != seen:
            seen, found = now, load()
            if not isinstance(found, str):
                waiting.end()
                return found
            waiting.problem = found
        woken.wait(_LOOK_SECONDS)
        woken.clear()


def problem_for_models(problem: str) -> str:
    """Say to a model why it is offered nothing."""
    return (
        "No server's tools are offered here, because the configuration of this gateway cannot be used. Tell the user, "
        f"who can correct it; the tools are there as soon as that is done.\n\n{problem}"
    )


class _Waiting:
    """What one host is answered, and what is kept of it for the real server."""

    def __init__(self, opening: EarlyStdio, problem: str) -> None:
        self.problem = problem
        self._opening = opening
        self._kept: list[tuple[dict[str, Any], Arrival]] = []
        self._heard: list[Acknowledgement] = []

    def take(self, message: dict[str, Any], arrival: Arrival) -> None:
        """Answer a request; keep what tells the real server something about the host."""
        if len(self._kept) < _MOST_KEPT and self._is_for_later(message):
            self._kept.append((message, arrival))
        elif "id" in message and "method" in message:
            self._answer(message["id"], message["method"], message.get("params") or {})

    def _is_for_later(self, message: dict[str, Any]) -> bool:
        method = message.get("method")
        if method == "subscriptions/listen":
            told = acknowledgement(message, self._opening.handshake)
            if told is not None:
                self._opening.acknowledge(told.subscription, told.notification)
                self._heard.append(told)
            return told is not None
        return method == "notifications/initialized" or self._opening.is_own(message.get("id"))

    def _answer(self, request_id: str | int, method: str, params: Mapping[str, Any]) -> None:
        result = self._result(method, params)
        if result is None:
            self._opening.refuse(request_id, Refusal(INTERNAL_ERROR, problem_for_models(self.problem)))
            return
        if self._opening.handshake.era == "modern":
            result |= {"resultType": "complete", "ttlMs": 0, "cacheScope": "private"}
        self._write({"id": request_id, "result": result})

    def _result(self, method: str, params: Mapping[str, Any]) -> dict[str, Any] | None:
        if method == "tools/list":
            description = problem_for_models(self.problem)
            schema: dict[str, Any] = {"type": "object", "properties": {}}
            return {"tools": [{"name": PROBLEM_TOOL, "description": description, "inputSchema": schema}]}
        if method == "tools/call" and params.get("name") == PROBLEM_TOOL:
            return {"content": [{"type": "text", "text": problem_for_models(self.problem)}]}
        if method == "logging/setLevel":
            return {}
        return {_EMPTY[method]: []} if method in _EMPTY else None

    def end(self) -> None:
        """Leave the host to the real server, and tell it to ask for its lists again."""
        self._opening.give_back(self._kept)
        if self._opening.handshake.era == "handshake":
            for kind in _KINDS:
                self._write({"method": f"notifications/{kind}/list_changed"})
        for told in self._heard:
            for kind in told.heard:
                meta = {SUBSCRIPTION_ID: told.subscription}
                self._write({"method": f"notifications/{kind}/list_changed", "params": {"_meta": meta}})

    def _write(self, message: Mapping[str, Any]) -> None:
        self._opening.write(json.dumps({"jsonrpc": "2.0", **message}, separators=(",", ":")).encode("ascii") + b"\n")
