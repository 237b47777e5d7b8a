"""The record of one tool call for telemetry: caller, upstream, tool, sizes, and outcome."""

import asyncio
import logging
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from time import perf_counter
from typing import Any, Literal, TypeAlias, cast

from gateway.core.fact_words import counted, plain
from gateway.core.model.caller import Caller
from gateway.core.model.json_size import Size
from gateway.core.model.json_values import is_list
from gateway.core.model.notes import Note
from gateway.core.tokens import TokenCount, token_words
from gateway.errors import (
    ApprovalNeeded,
    GatewayError,
    InvalidRequest,
    NotAllowed,
    ProfileError,
    TooManyCalls,
    UpstreamError,
    UpstreamGarbage,
    UpstreamLost,
    UpstreamRefused,
    UpstreamTimeout,
    UpstreamUnavailable,
)
from gateway.telemetry.content import shorten_json
from gateway.telemetry.logs import log_plainly
from gateway.telemetry.requests import request_id

logger = logging.getLogger(__name__)

Outcome: TypeAlias = Literal[
    "ok",
    "tool_error",
    "refused",
    "timeout",
    "lost",
    "unavailable",
    "garbage",
    "invalid",
    "denied",
    "asked",
    "cancelled",
    "failed",
]
"""The outcome of a call; `tool_error` is a tool's result with `isError`, `refused` a JSON-RPC error of the upstream.

`invalid`: the gateway did not call the tool, because there is none, or its arguments cannot be given to it. `asked`:
nothing is done yet, because the host has to answer first: its user, its roots or its model.
"""

TOOL_ERROR: Outcome = "tool_error"
ASKED: Outcome = "asked"
INVALID: Outcome = "invalid"

OUTCOMES: tuple[tuple[type[BaseException], Outcome], ...] = (
    (UpstreamRefused, "refused"),
    (UpstreamTimeout, "timeout"),
    (UpstreamLost, "lost"),
    (UpstreamUnavailable, "unavailable"),
    (UpstreamGarbage, "garbage"),
    (InvalidRequest, INVALID),
    (ProfileError, INVALID),
    (ApprovalNeeded, ASKED),
    (NotAllowed, "denied"),
    (TooManyCalls, "denied"),
    (asyncio.CancelledError, "cancelled"),
    (BaseException, "failed"),
)
"""The outcome of a call that raised: that of the first matching class."""

_LOCAL = Caller().principal
"""The user of this machine, who is not named in lines for people."""
_LONGEST_NAME = 100
_LONGEST_CAUSE = 500
_IN_ITS_OWN_WORDS = frozenset({TOOL_ERROR, "refused"})
"""Outcomes of which the upstream itself says why: its words may contain anything, as results do."""
_CHANGED = frozenset({"converted", "resized"})


class CallRecord:
    """A call while it runs and afterwards: filled in by routing, read by logs, traces and metrics.

    Sizes are in characters of text, which for base64 are bytes. `show` says whether content may be logged. Arguments
    and the upstream's own result stay with the record only if it `is_kept`.
    """

    def __init__(self, caller: Caller, profile: str, tool: str, *, show: bool = False, within: str = "") -> None:
        self.tool = _shown(tool)
        self.host = _shown(caller.client_name or caller.user_agent or "unknown")
        self.revision = _shown(caller.revision)
        self.principal = caller.principal
        self.token = caller.token
        self.profile = profile
        self.request = request_id()
        self.within = within
        """The tool whose script made the call; its own record has the same `request`."""
        self.upstream = self.upstream_tool = ""
        self.bytes_in = self.bytes_raw = self.bytes_out = self.blocks = 0
        self.notes: Sequence[Note] = ()
        self.tokens: TokenCount | None = None
        """What the result costs the host's model, if that is counted."""
        self.token_formula: str | None = None
        self.outcome: Outcome = "ok"
        self.error: str | None = None
        self.error_code: str | None = None
        self.arguments: str | None = None
        self.result: str | None = None
        self.from_cache = False
        """Whether the result is a kept one: the upstream was not asked."""
        self.seconds = 0.0
        self.is_kept = False
        """Whether somebody may want to look at arguments and result afterwards."""
        self.kept_arguments: Any = None
        self.kept_result: Mapping[str, Any] | None = None
        self.kept_bytes = 0
        """Roughly the memory of both."""
        self._show = show
        self._turned_down: str | None = None
        self._began = perf_counter()

    def asked(self, arguments: object, size: Size) -> None:
        """Record the call's arguments, and their size."""
        self.bytes_in = size.characters
        if self.is_kept:
            self.kept_arguments = arguments
            self.kept_bytes += size.memory
        if self._show:
            self.arguments = shorten_json(arguments)

    def routed(self, upstream: str, tool: str) -> None:
        """Record the upstream, and the tool's name there."""
        self.upstream, self.upstream_tool = upstream, _shown(tool)

    def turned_down(self, cause: str) -> None:
        """Record that the gateway answers with an error in place of the upstream, which was not asked."""
        self._turned_down = plain(cause, _LONGEST_CAUSE)

    def answered(self, result: Mapping[str, Any], size: Size) -> None:
        """Record the upstream's result and its size."""
        self.bytes_raw = size.characters
        if self.is_kept:
            self.kept_result = result
            self.kept_bytes += size.memory

    def shaped(self, result: Mapping[str, Any], size: int, notes: Sequence[Note], *, is_error: bool) -> None:
        """Record what the host gets, and what was changed on the way."""
        content = result.get("content")
        self.bytes_out, self.notes = size, notes
        self.blocks = len(content) if is_list(content) else 0
        if is_error:
            self.outcome, self.error = (TOOL_ERROR, None) if self._turned_down is None else (INVALID, self._turned_down)
        elif asks(result):
            self.outcome = ASKED
        if self._show:
            self.result = shorten_json(result)

    def counted(self, tokens: TokenCount, formula: str) -> None:
        """Record what the host's model pays for the result, by the formula of this name."""
        self.tokens, self.token_formula = tokens, formula

    def raised(self, error: BaseException) -> None:
        """Record that the call has no result, because of `error`."""
        self.outcome, error = outcome_of(error)
        if isinstance(error, UpstreamRefused):  # the words are the upstream's own, so they may contain anything
            self.error_code = str(error.code)
            self.error = plain(error.wire_message) if self._show else None
        elif isinstance(error, GatewayError):
            self.error = plain(error.logged)
            if isinstance(error, UpstreamError):
                self.upstream = error.upstream
        else:
            self.error = type(error).__name__

    def ended(self) -> None:
        """Record the end of the call."""
        self.seconds = perf_counter() - self._began

    @property
    def words_of_cause(self) -> str | None:
        """Why it failed, in words for people: where to read an upstream's own words, if they are not logged."""
        if self.error is None and self.result is None and self.outcome in _IN_ITS_OWN_WORDS:
            return "in the upstream's own words, which [logging] content = true logs"
        return self.error

    @property
    def images_changed(self) -> int:
        """The number of images that were resized or converted."""
        return len({note.block for note in self.notes if note.kind in _CHANGED})


def outcome_of(error: BaseException) -> tuple[Outcome, BaseException]:
    """Return the outcome of a call that raised, and its error: that within nested groups, if there is only one."""
    error = _sole(error)
    return next(outcome for kind, outcome in OUTCOMES if isinstance(error, kind)), error


def asks(result: Mapping[str, Any] | None) -> bool:
    """Whether this is not a result yet, but questions that the host has to answer (MCP 2026-07-28)."""
    return result is not None and result.get("resultType") == "input_required"


def log(call: CallRecord) -> None:
    """Log one line for the call."""
    if not logger.isEnabledFor(logging.INFO):
        return
    outcome = call.outcome if call.error_code is None else f"{call.outcome} ({call.error_code})"
    time = f"{call.seconds * 1_000:.0f} ms" if call.seconds < 10 else f"{call.seconds:.1f} s"
    sizes = f"in {call.bytes_in:,}, raw {call.bytes_raw:,}, out {call.bytes_out:,} characters"
    whose = "" if call.principal == _LOCAL else f", principal {_shown(call.principal)}"
    cached = ", from the cache" if call.from_cache else ""
    script = f", by a script of {call.within}" if call.within else ""
    tokens, costs = call.tokens, ""
    if tokens is not None:
        costs = f"; {token_words(tokens)} ({call.token_formula})"
    said = {"cause": call.error, "arguments": call.arguments, "result": call.result}
    words = {**said, "cause": call.words_of_cause}
    log_plainly(
        logger,
        f"call {call.tool}: {outcome} in {time}; host {call.host}{whose}, profile {call.profile},"
        f" upstream {call.upstream or 'none'}{cached}{script}; {sizes}; {counted(call.blocks, 'block')},"
        f" {counted(len(call.notes), 'note')}{costs}"
        + "".join(f"; {name} {text}" for name, text in words.items() if text is not None),
        {
            "event": "call",
            "tool": call.tool,
            "outcome": call.outcome,
            "seconds": round(call.seconds, 4),
            "host": call.host,
            "profile": call.profile,
            "revision": call.revision,
            "principal": call.principal,
            "token": call.token,
            "upstream": call.upstream or None,
            "upstream_tool": call.upstream_tool or None,
            "from_cache": call.from_cache,
            "within": call.within or None,
            "bytes_in": call.bytes_in,
            "bytes_raw": call.bytes_raw,
            "bytes_out": call.bytes_out,
            "blocks": call.blocks,
            "notes": len(call.notes),
            "tokens": None if tokens is None else {**asdict(tokens), "formula": call.token_formula},
            "code": call.error_code,
            **said,
        },
    )


def _shown(name: str) -> str:
    if len(name) <= _LONGEST_NAME and name.isascii() and name.isprintable():  # nearly all are; this runs for every call
        return name
    return plain(name, _LONGEST_NAME)


def _sole(error: BaseException) -> BaseException:
    """Return the error itself, or the only one in nested exception groups."""
    if not isinstance(error, BaseExceptionGroup):
        return error
    inner = cast("BaseExceptionGroup[BaseException]", error).exceptions
    return _sole(inner[0]) if len(inner) == 1 else RuntimeError("several errors at once")
