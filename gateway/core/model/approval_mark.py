"""The mark of the gateway's own questions whether a call may be made, for programs that answer them by themselves.

A program on `gateway.connect(on_approval=...)` answers nothing else, so no upstream may be able to ask such a question.
The mark is an object of a class of its own, which no parsed JSON contains: `unforged` is applied to everything that
goes to a host, and removes what only looks like it.
"""

from collections.abc import Mapping
from typing import Any

from gateway.core.model.caller import Caller
from gateway.core.model.json_values import as_object, is_object

MARK = "io.github.mcp-multimodal-gateway/approval"
"""The key in `_meta` of an elicitation; its value describes the call."""

HEADER = "x-mcp-approvals"
"""The HTTP header by which a program declares, with the value `ask`, that it answers these questions."""

ASKS = "ask"


class ApprovalMark(dict[str, Any]):
    """The description of a call that needs an approval: `name`, `upstream`, `tool`, `arguments`, `rule`, `reason`."""


def answers_approvals(caller: Caller) -> bool:
    """Whether the program in front declared it; in the modern era, it cannot be asked while its call is running."""
    return not caller.is_modern and caller.headers.get(HEADER) == ASKS


def unforged(message: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return params or a result for a host, without marks that are not the gateway's; the same object if it has none.

    Questions in a result (`inputRequests`) are looked at too.
    """
    meta, requests = as_object(message.get("_meta")), as_object(message.get("inputRequests"))
    cleaned: dict[str, Any] = {}
    if MARK in meta and not isinstance(meta[MARK], ApprovalMark):
        cleaned["_meta"] = {key: value for key, value in meta.items() if key != MARK}
    if any(MARK in as_object(_params(one).get("_meta")) for one in requests.values()):
        cleaned["inputRequests"] = {key: _unforged_request(one) for key, one in requests.items()}
    return {**message, **cleaned} if cleaned else message


def _unforged_request(request: Any) -> Any:
    params = _params(request)
    return {**request, "params": unforged(params)} if is_object(request) and params else request


def _params(request: Any) -> Mapping[str, Any]:
    return as_object(as_object(request).get("params"))
