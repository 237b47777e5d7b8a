"""One call as telemetry sees it: outcome, numbers, span; and what goes on to the upstream."""

import asyncio
import json
import logging
import sys
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import anyio
import pytest
from opentelemetry import trace
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import SpanKind, StatusCode

from gateway import errors
from gateway.config.gateway_settings import LoggingSettings
from gateway.config.schema import Settings
from gateway.config.upstream_settings import UpstreamSettings
from gateway.core.model.caller import Caller
from gateway.core.model.json_size import Size
from gateway.core.model.notes import Note
from gateway.runtime import open_gateway
from gateway.telemetry import Telemetry, make_formatter, new_request
from gateway.telemetry.calls import OUTCOMES
from gateway.upstream import UpstreamState

HOST = Caller(revision="2025-11-25", client_name="some\x1b[2J-host")
RAW = Path(__file__).parents[1] / "servers" / "raw_stdio.py"
TRACE, PARENT = "4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7"
NOTES = (
    Note(kind="resized", text="smaller", block=1),
    Note(kind="converted", text="to png", block=1),
    Note(kind="converted", text="to png", block=2),
    Note(kind="cut", text="shorter"),
)


@pytest.fixture
def exporter() -> InMemorySpanExporter:
    return InMemorySpanExporter()


@pytest.fixture
def telemetry(exporter: InMemorySpanExporter) -> Telemetry:
    provider = TracerProvider(shutdown_on_exit=False)
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    return Telemetry(tracer_provider=provider)


def do(
    telemetry: Telemetry, error: BaseException | None = None, meta: object = None, *, is_error: bool = False
) -> None:
    """One call from beginning to end."""
    with telemetry.call(HOST, "codex", "pics__draw", {"_meta": meta}) as call:
        call.asked({"city": "Bern"}, Size(8, 2))
        call.routed("pics", "draw")
        if error is not None:
            raise error
        call.answered({"content": []}, Size(5_000, 3))
        call.shaped({"content": [{}, {}, {}]}, 700, NOTES, is_error=is_error)


def numbers(telemetry: Telemetry) -> dict[str, float]:
    lines = [line for line in telemetry.metrics.exposition().splitlines() if not line.startswith("#")]
    return {name: float(value) for name, value in (line.rsplit(" ", 1) for line in lines)}


@pytest.mark.parametrize(
    ("error", "outcome"),
    [
        (errors.UpstreamRefused("pics", -32042, "words of the upstream"), "refused"),
        (errors.UpstreamTimeout("pics", "slow"), "timeout"),
        (errors.UpstreamLost("pics", "gone"), "lost"),
        (errors.UpstreamUnavailable("pics", "starting"), "unavailable"),
        (errors.UpstreamGarbage("pics", "noise"), "garbage"),
        (errors.UnknownTool("nobody's"), "invalid"),
        (errors.ProfileError("no such"), "invalid"),
        (errors.UnknownHandle("no such"), "failed"),
        (asyncio.CancelledError(), "cancelled"),
        (RuntimeError("secret detail"), "failed"),
        (ExceptionGroup("tasks", [ExceptionGroup("tasks", [errors.UpstreamLost("pics", "gone")])]), "lost"),
        (ExceptionGroup("tasks", [errors.UpstreamLost("pics", "gone"), ValueError()]), "failed"),
    ],
)
def test_a_call_that_fails_is_counted_by_what_came_of_it_and_raises_all_the_same(telemetry, caplog, error, outcome):
    with caplog.at_level(logging.INFO), pytest.raises(type(error)):
        do(telemetry, error)
    assert telemetry.metrics.calls.value("pics", outcome) == 1
    assert [line.levelname for line in caplog.records] == ["INFO"]
    assert outcome in caplog.text
    assert "secret detail" not in caplog.text
    assert "words of the upstream" not in caplog.text


def test_a_call_that_the_gateway_turns_down_is_no_error_of_the_tool_and_has_its_cause(telemetry, caplog):
    with caplog.at_level(logging.INFO), telemetry.call(HOST, "codex", "pics__draw", {}) as call:
        call.routed("pics", "draw")
        call.turned_down("photo: there is no content with the handle 'img_\x1b[2J'" + "x" * 5_000)
        call.shaped({"content": [{}]}, 700, (), is_error=True)
    assert telemetry.metrics.calls.value("pics", "invalid") == 1
    (line,) = caplog.messages
    assert "call pics__draw: invalid in" in line
    assert "; cause photo: there is no content with the handle 'img_" in line
    assert "\x1b" not in line
    assert len(line) < 1_000


@pytest.mark.parametrize(
    ("error", "is_error"), [(errors.UpstreamRefused("pics", 0, "words of the upstream"), False), (None, True)]
)
def test_the_line_of_a_failed_call_says_where_the_upstreams_own_words_are(telemetry, caplog, error, is_error):
    with caplog.at_level(logging.INFO), suppress(errors.UpstreamRefused):
        do(telemetry, error, is_error=is_error)
    assert "; cause in the upstream's own words, which [logging] content = true logs" in caplog.text
    assert "words of the upstream" not in caplog.text


def test_a_link_to_log_in_at_is_for_the_caller_alone(telemetry, caplog):
    with caplog.at_level(logging.INFO), pytest.raises(errors.LoginRequired, match="/oauth/login/ticket"):
        do(telemetry, errors.LoginOffered("pics", remedy="open https://gateway.example/oauth/login/ticket"))
    assert "cause upstream 'pics': waits for a login" in caplog.text
    assert "ticket" not in caplog.text


def test_every_outcome_is_looked_up_from_the_special_to_the_general():
    kinds = [kind for kind, _ in OUTCOMES]
    for position, kind in enumerate(kinds):
        assert not any(issubclass(later, kind) for later in kinds[position + 1 :])


def test_a_call_leaves_its_numbers(telemetry):
    do(telemetry)
    do(telemetry, is_error=True)
    found = numbers(telemetry)
    assert found['mcp_gateway_calls_total{upstream="pics",outcome="ok"}'] == 1
    assert found['mcp_gateway_calls_total{upstream="pics",outcome="tool_error"}'] == 1
    sizes = [
        found[f'mcp_gateway_call_bytes_total{{upstream="pics",direction="{way}"}}'] for way in ("in", "raw", "out")
    ]
    assert sizes == [16, 10_000, 1_400]
    assert found['mcp_gateway_notes_total{kind="converted"}'] == 4
    assert found['mcp_gateway_images_converted_total{upstream="pics"}'] == 4
    assert found['mcp_gateway_call_duration_seconds_count{upstream="pics"}'] == 2


def test_a_line_that_nobody_wants_is_not_made(telemetry, caplog):
    with caplog.at_level(logging.WARNING):
        do(telemetry)
    assert caplog.records == []


def test_a_span_has_the_words_of_the_conventions_and_ours(telemetry, exporter):
    with new_request() as ident:
        do(telemetry)
    (span,) = exporter.get_finished_spans()
    assert (span.name, span.kind, span.status.status_code) == (
        "tools/call pics__draw",
        SpanKind.SERVER,
        StatusCode.UNSET,
    )
    assert span.parent is None
    assert dict(span.attributes or {}) == {
        "mcp.method.name": "tools/call",
        "mcp.protocol.version": "2025-11-25",
        "gen_ai.operation.name": "execute_tool",
        "gen_ai.tool.name": "pics__draw",
        "mcp_gateway.host": "some [2J-host",
        "mcp_gateway.profile": "codex",
        "mcp_gateway.request.id": ident,
        "mcp_gateway.upstream": "pics",
        "mcp_gateway.upstream.tool": "draw",
        "mcp_gateway.bytes_in": 8,
        "mcp_gateway.bytes_raw": 5_000,
        "mcp_gateway.bytes_out": 700,
        "mcp_gateway.blocks": 3,
        "mcp_gateway.notes": 4,
        "mcp_gateway.note_kinds": ("converted", "cut", "resized"),
    }


@pytest.mark.parametrize(
    ("error", "is_error", "kind", "code"),
    [
        (None, True, "tool_error", None),
        (errors.UpstreamTimeout("pics", "slow"), False, "timeout", None),
        (errors.UpstreamRefused("pics", -32042, "x"), False, "-32042", "-32042"),
    ],
)
def test_a_span_says_what_kind_of_error_it_was(telemetry, exporter, error, is_error, kind, code):
    with suppress(errors.UpstreamError):
        do(telemetry, error, is_error=is_error)
    (span,) = exporter.get_finished_spans()
    assert span.status.status_code is StatusCode.ERROR
    assert (span.attributes["error.type"], span.attributes.get("rpc.response.status_code")) == (kind, code)
    assert span.events == ()


def test_the_hosts_span_is_the_parent(telemetry, exporter):
    do(telemetry, meta={"traceparent": f"00-{TRACE}-{PARENT}-01", "tracestate": "vendor=1", "progressToken": 3})
    (span,) = exporter.get_finished_spans()
    assert (f"{span.context.trace_id:032x}", f"{span.parent.span_id:016x}") == (TRACE, PARENT)
    assert span.context.trace_state.to_header() == "vendor=1"


@pytest.mark.parametrize(
    "meta",
    [None, 7, {}, {"traceparent": 7}, {"traceparent": "x" * 100_000}, {"traceparent": ["00"], "baggage": {"a": 1}}],
)
def test_a_context_that_cannot_be_read_is_none(telemetry, exporter, meta):
    do(telemetry, meta=meta)
    (span,) = exporter.get_finished_spans()
    assert span.parent is None


def test_log_lines_of_a_call_name_its_span(telemetry, exporter):
    formatter = make_formatter(Settings(logging=LoggingSettings(format="json")))
    record = logging.LogRecord("gateway", logging.INFO, "", 0, "x", (), None)
    with telemetry.call(HOST, "codex", "x", {}):
        line = json.loads(formatter.format(record))
    (span,) = exporter.get_finished_spans()
    assert (line["trace_id"], line["span_id"]) == (f"{span.context.trace_id:032x}", f"{span.context.span_id:016x}")
    assert "trace_id" not in json.loads(formatter.format(record))


class UpstreamLike:
    """An upstream as readiness sees it."""

    def __init__(self, state: Any, cause: str | None = None) -> None:
        self.state, self.cause = state, cause


@pytest.mark.parametrize(
    ("states", "ready"),
    [
        ({}, True),
        ({"a": "disabled"}, True),
        ({"a": "starting"}, False),
        ({"a": "failed", "b": "disabled"}, False),
        ({"a": "failed", "b": "ready"}, True),
        ({"a": "sleeping"}, True),
    ],
)
def test_ready_is_a_gateway_that_can_take_a_call_or_has_nothing_to_wait_for(states: Mapping[str, str], ready: bool):
    telemetry = Telemetry()
    upstreams: Any = {name: UpstreamLike(UpstreamState(state), "why") for name, state in states.items()}
    telemetry.metrics.upstreams = upstreams
    assert telemetry.readiness().ready is ready
    assert telemetry.readiness().upstreams == {name: {"state": state, "cause": "why"} for name, state in states.items()}


@pytest.mark.anyio
async def test_without_a_tracer_the_hosts_context_goes_on_unchanged():
    assert isinstance(trace.get_tracer_provider(), trace.ProxyTracerProvider)
    settings = Settings(upstreams={"raw": UpstreamSettings(command=sys.executable, args=(str(RAW),))})
    context = {
        "traceparent": f"00-{TRACE}-{PARENT}-00-from-a-later-version",
        "tracestate": " a=1 , b=2",
        "baggage": "k=ä",
    }
    with anyio.fail_after(60):
        async with open_gateway(settings, profile="passthrough") as router:
            assert await router.upstreams["raw"].ready(60)
            params = {"name": "raw__echo", "arguments": {}, "_meta": {**context, "other.example/x": 1}}
            result = await router.respond("tools/call", params, HOST)
            nothing = await router.respond("tools/call", {"name": "raw__echo", "arguments": {}}, HOST)
    sent = result["structuredContent"]["params"]["_meta"]
    assert {key: value for key, value in sent.items() if key != "progressToken"} == {**context, "other.example/x": 1}
    assert set(nothing["structuredContent"]["params"]["_meta"]) == {"progressToken"}
