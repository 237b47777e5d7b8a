"""Approvals in a program of its own: a rule wants one, and the program asks its user."""

import logging
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias, cast

import anyio

from gateway.core.fact_words import plain
from gateway.errors import ConfigError, NotAllowed
from gateway.routing.approvals import CallToApprove, Verdict

logger = logging.getLogger(__name__)

REMEDY = "this program cannot ask its user: `gateway.open(..., on_approval=...)` would"


@dataclass(frozen=True)
class ApprovalRequest:
    """A call that waits for the user: `name` is the tool as the model knows it, `tool` as its `provider` calls it."""

    name: str
    provider: str
    tool: str
    arguments: Mapping[str, Any]
    rule: str
    """The name of the rule that wants an approval."""
    reason: str
    """The rule's reason; may be empty."""


OnApproval: TypeAlias = Callable[[ApprovalRequest], Awaitable[bool]]
"""Asks the user about a call: true approves it, false denies it."""


class AskByProgram:
    """Asks with the program's own function, about one call at a time: parallel calls would talk over each other."""

    def __init__(self, on_approval: OnApproval) -> None:
        if not callable(on_approval):
            raise ConfigError("on_approval is an async function that is given the call", where="on_approval")
        self._on_approval = on_approval
        self._one_at_a_time = anyio.Lock()

    async def __call__(self, call: CallToApprove) -> Verdict:
        """Return the user's decision.

        Raises:
            NotAllowed: the function failed, or returned neither true nor false.
        """
        request = ApprovalRequest(call.name, call.upstream, call.tool, call.arguments, call.rule, call.reason)
        async with self._one_at_a_time:
            try:
                answer = cast("object", await self._on_approval(request))
            except Exception as error:  # the function is the user's; it may raise anything
                logger.exception("on_approval failed")
                raise _unasked(call, f"on_approval raised {type(error).__name__}") from error
        if not isinstance(answer, bool):  # "no" is true in Python
            raise _unasked(call, f"on_approval returned {type(answer).__name__}, not True or False")
        return "approved" if answer else "denied"


def _unasked(call: CallToApprove, why: str) -> NotAllowed:
    words = f"{plain(call.name, 200)} was not called: it needs the user's approval, and {why}"
    return NotAllowed(words, rule=call.rule, remedy="the program has to be mended")
