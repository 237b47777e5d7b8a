"""Setting OpenTelemetry's SDK up by its variables. What needs a process of its own is in test_serving.py."""

import sys

import pytest
from opentelemetry import trace

from gateway.errors import ConfigError
from gateway.system.extras import install_extra
from gateway.telemetry.trace_export import exporting_traces

ENDPOINT = {"OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:9"}


@pytest.mark.parametrize(
    "environ",
    [
        {},
        {"OTEL_TRACES_EXPORTER": ""},
        {"OTEL_TRACES_EXPORTER": "none"},
        {**ENDPOINT, "OTEL_TRACES_EXPORTER": "none"},
        {**ENDPOINT, "OTEL_SDK_DISABLED": "true"},
        {"OTEL_SERVICE_NAME": "mine"},
    ],
)
def test_nothing_is_set_up_unless_it_is_asked_for(environ, monkeypatch):
    monkeypatch.setitem(sys.modules, "opentelemetry.sdk.trace", None)
    with exporting_traces(environ, "x"):
        assert isinstance(trace.get_tracer_provider(), trace.ProxyTracerProvider)


def test_a_missing_extra_is_named_with_the_variable_that_asked_for_it(monkeypatch):
    monkeypatch.setitem(sys.modules, "opentelemetry.sdk.trace", None)
    with pytest.raises(ConfigError) as caught, exporting_traces(ENDPOINT, "x"):
        pass
    assert str(caught.value) == (
        "$OTEL_EXPORTER_OTLP_ENDPOINT: exporting traces needs packages that are not installed (install the extra "
        f"otel: `{install_extra('otel')}`, or unset the variable)"
    )


@pytest.mark.parametrize(
    ("environ", "name"),
    [
        ({"OTEL_TRACES_EXPORTER": "carrier-pigeon"}, "carrier-pigeon"),
        ({**ENDPOINT, "OTEL_EXPORTER_OTLP_PROTOCOL": "grpc"}, "otlp_proto_grpc"),
    ],
)
def test_an_exporter_that_is_not_there_is_named(environ, name):
    with (
        pytest.raises(ConfigError, match=f"the exporter '{name}' needs packages that are not installed"),
        exporting_traces(environ, "x"),
    ):
        pass
    assert isinstance(trace.get_tracer_provider(), trace.ProxyTracerProvider)
