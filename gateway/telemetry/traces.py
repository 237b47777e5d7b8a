"""A span for each call, a child of the host's own, following OpenTelemetry's conventions for MCP.

Names and attributes: https://github.com/open-telemetry/semantic-conventions-genai/blob/main/docs/gen-ai/mcp.md (in
development, as of November 2026); the context in `_meta`: SEP-414. Attributes without a convention are called
`mcp_gateway.*`. The request to the upstream is a span of the MCP SDK, a child of ours; the SDK also writes the context
into `_meta` there. Without OpenTelemetry's SDK, nothing happens here, and the host's context is passed on unchanged.
"""

from collections.abc import Generator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Any, cast

from opentelemetry import propagate, trace
from opentelemetry.context import Context
from opentelemetry.trace import Span, SpanKind, StatusCode, Tracer, TracerProvider

from gateway._version import __version__
from gateway.telemetry.calls import TOOL_ERROR, CallRecord

_LONGEST = 8_192
"""Maximum characters of one value of a host's trace context; the W3C allows no longer baggage."""


class Tracing:
    """Creates the spans, with the tracer provider of the process, or another one."""

    def __init__(self, provider: TracerProvider | None = None) -> None:
        self._provider = provider
        self._tracer: Tracer | None = None

    def span(self, call: CallRecord, meta: object) -> AbstractContextManager[None]:
        """Create the span of a call whose request had `meta`; the outcome is read from the call at the end."""
        tracer = self._tracer or self._find_tracer()
        return nullcontext() if tracer is None else _span(tracer, call, meta)

    def _find_tracer(self) -> Tracer | None:
        provider = self._provider or trace.get_tracer_provider()
        if isinstance(provider, trace.ProxyTracerProvider):  # nobody has set one up yet
            return None
        self._tracer = provider.get_tracer("mcp-gateway", __version__)
        return self._tracer


@contextmanager
def _span(tracer: Tracer, call: CallRecord, meta: object) -> Generator[None]:
    with tracer.start_as_current_span(
        f"tools/call {call.tool}",
        context=_parent(meta),
        kind=SpanKind.SERVER,
        attributes=_asked(call),
        record_exception=False,
        set_status_on_exception=False,
    ) as span:
        try:
            yield
        finally:
            if span.is_recording():
                _describe(span, call)


def _parent(meta: object) -> Context | None:
    """Return the context in a host's `_meta`; None if there is none that can be read."""
    if not isinstance(meta, Mapping):
        return None
    known = propagate.get_global_textmap().fields
    given = cast("Mapping[str, object]", meta)
    carrier = {
        key: value for key, value in given.items() if key in known and isinstance(value, str) and len(value) <= _LONGEST
    }
    return propagate.extract(carrier) if carrier else None


def _asked(call: CallRecord) -> dict[str, Any]:
    return {
        "mcp.method.name": "tools/call",
        "mcp.protocol.version": call.revision,
        "gen_ai.operation.name": "execute_tool",
        "gen_ai.tool.name": call.tool,
        "mcp_gateway.host": call.host,
        "mcp_gateway.profile": call.profile,
        **({"mcp_gateway.request.id": call.request} if call.request else {}),
    }


def _describe(span: Span, call: CallRecord) -> None:
    span.set_attributes(
        {
            "mcp_gateway.upstream": call.upstream,
            "mcp_gateway.upstream.tool": call.upstream_tool,
            "mcp_gateway.bytes_in": call.bytes_in,
            "mcp_gateway.bytes_raw": call.bytes_raw,
            "mcp_gateway.bytes_out": call.bytes_out,
            "mcp_gateway.blocks": call.blocks,
            "mcp_gateway.notes": len(call.notes),
            "mcp_gateway.note_kinds": sorted({note.kind for note in call.notes}),
        }
    )
    if call.outcome == "ok":
        return
    code = call.error_code
    span.set_attribute("error.type", TOOL_ERROR if call.outcome == TOOL_ERROR else code or call.outcome)
    if code is not None:
        span.set_attribute("rpc.response.status_code", code)
    span.set_status(StatusCode.ERROR, call.error)
