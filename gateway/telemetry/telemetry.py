"""The telemetry of one running gateway: its calls as log lines, spans and numbers, and the state of its upstreams."""

from collections.abc import Generator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from opentelemetry.trace import TracerProvider

from gateway.admission.pressure import MemoryLevel
from gateway.core.model.caller import Caller
from gateway.telemetry.call_history import CallHistory
from gateway.telemetry.calls import CallRecord, log
from gateway.telemetry.metrics import Metrics
from gateway.telemetry.traces import Tracing

_AT_HAND = frozenset({"ready", "sleeping", "login"})
"""The states of an upstream in which it can take a call."""


@dataclass(frozen=True)
class Readiness:
    """Whether the gateway is operational, and each upstream's `state`, with its `cause` if there is one.

    `lacks_memory`: it refuses all new requests for want of memory.
    """

    ready: bool
    upstreams: Mapping[str, Mapping[str, str]]
    lacks_memory: bool = False


class Telemetry:
    """The telemetry of one gateway. `content` logs arguments and results, shortened; `tracer_provider` is for tests."""

    def __init__(self, *, content: bool = False, tracer_provider: TracerProvider | None = None) -> None:
        self.metrics = Metrics()
        self.content = content
        self.history: CallHistory | None = None
        """The newest calls, once somebody wants to look at them."""
        self._tracing = Tracing(tracer_provider)

    @contextmanager
    def call(
        self, caller: Caller, profile: str, tool: str, params: Mapping[str, Any], *, within: str = ""
    ) -> Generator[CallRecord]:
        """Record one tool call, with its request's params; the caller fills in the `CallRecord`.

        `within`: the tool whose script makes the call.
        """
        call = CallRecord(caller, profile, tool, show=self.content, within=within)
        history = self.history
        past = None if history is None else history.begin(call, caller)
        with self._tracing.span(call, params.get("_meta")):
            try:
                yield call
            except BaseException as error:
                call.raised(error)
                raise
            finally:
                call.ended()
                self._count(call)
                if history is not None and past is not None:
                    history.end(past)
                log(call)

    def readiness(self) -> Readiness:
        """Return the readiness: true if an upstream can take a call, or if none is enabled, and there is memory."""
        upstreams = self.metrics.upstreams
        states = {name: upstream.state.value for name, upstream in upstreams.items()}
        wanted = [state for state in states.values() if state != "disabled"]
        described = {
            name: {"state": state, **({"cause": cause} if (cause := upstreams[name].cause) else {})}
            for name, state in states.items()
        }
        admission = self.metrics.admission
        lacks_memory = admission is not None and admission.pressure.level is MemoryLevel.CRITICAL
        ready = not wanted or any(state in _AT_HAND for state in wanted)
        return Readiness(ready and not lacks_memory, described, lacks_memory)

    def _count(self, call: CallRecord) -> None:
        metrics, upstream = self.metrics, call.upstream
        metrics.calls.add(1, upstream, call.outcome)
        if call.from_cache:
            metrics.calls_from_cache.add(1, upstream)
        metrics.call_seconds.observe(call.seconds, upstream)
        for direction, size in (("in", call.bytes_in), ("raw", call.bytes_raw), ("out", call.bytes_out)):
            metrics.call_bytes.add(size, upstream, direction)
        for note in call.notes:
            metrics.notes.add(1, note.kind)
        if call.tokens is not None:
            tokens = call.tokens
            metrics.tokens_per_result.observe(tokens.total, call.profile)
            for kind, number in (("text", tokens.text), ("images", tokens.images), ("others", tokens.others)):
                metrics.result_tokens.add(number, call.profile, kind)
        if images := call.images_changed:
            metrics.images_converted.add(images, upstream)
