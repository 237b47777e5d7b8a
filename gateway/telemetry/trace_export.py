"""Exporting traces: OpenTelemetry's SDK, configured by its standard variables, if the extra `otel` is installed."""

import sys
import threading
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from importlib.metadata import entry_points
from typing import TYPE_CHECKING, Any

from gateway._version import __version__
from gateway.errors import ConfigError
from gateway.system.extras import install_extra

if TYPE_CHECKING:
    from opentelemetry.sdk.resources import Resource
    from opentelemetry.sdk.trace import TracerProvider


_ASKED_BY = ("OTEL_TRACES_EXPORTER", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "OTEL_EXPORTER_OTLP_ENDPOINT")
_GROUP = "opentelemetry_traces_exporter"
_LAST_SECONDS = 3.0
"""Time to export the remaining spans when the gateway ends. An unreachable collector must not delay it."""


@contextmanager
def exporting_traces(environ: Mapping[str, str], service: str) -> Generator[None]:
    """Export spans for the duration of the block, if the environment asks for it; `service` is our name in them.

    It does so with OTEL_TRACES_EXPORTER, or an endpoint in OTEL_EXPORTER_OTLP_ENDPOINT. An existing tracer provider of
    the process (`opentelemetry-instrument`) is left alone.

    Raises:
        ConfigError: export is requested, but its requirements are not installed or not known.
    """
    asked_by = _asked_by(environ)
    provider = _set_up(environ, asked_by, service) if asked_by else None
    try:
        yield
    finally:
        if provider is not None:
            last = threading.Thread(target=provider.shutdown, name="traces", daemon=True)
            last.start()
            last.join(_LAST_SECONDS)


def _asked_by(environ: Mapping[str, str]) -> str | None:
    if environ.get("OTEL_SDK_DISABLED", "").strip().lower() == "true":
        return None
    names = _names(environ)
    return next((name for name in _ASKED_BY if environ.get(name, "").strip()), None) if names else None


def _names(environ: Mapping[str, str]) -> list[str]:
    """Return the requested exporters, by their entry points' names."""
    wanted = [name.strip() for name in environ.get("OTEL_TRACES_EXPORTER", "otlp").split(",")]
    protocol = environ.get("OTEL_EXPORTER_OTLP_TRACES_PROTOCOL") or environ.get("OTEL_EXPORTER_OTLP_PROTOCOL", "")
    otlp = "otlp_proto_grpc" if protocol.strip() == "grpc" else "otlp_proto_http"
    return [otlp if name == "otlp" else name for name in wanted if name not in ("", "none")]


def _set_up(environ: Mapping[str, str], asked_by: str, service: str) -> "TracerProvider | None":
    try:
        from opentelemetry import trace
        from opentelemetry.sdk.trace import TracerProvider
        from opentelemetry.sdk.trace.export import BatchSpanProcessor
    except ImportError:
        raise _missing("exporting traces", asked_by) from None
    if not isinstance(trace.get_tracer_provider(), trace.ProxyTracerProvider):
        return None
    # Everything else (sampler, limits, batches, headers) is taken by the SDK from the environment itself.
    provider = TracerProvider(resource=service_resource(environ, service), shutdown_on_exit=False)
    for name in _names(environ):
        provider.add_span_processor(BatchSpanProcessor(_exporter(name, asked_by)))
    trace.set_tracer_provider(provider)
    return provider


def service_resource(environ: Mapping[str, str], service: str) -> "Resource":
    """Return what says which program spans and log records are from; the environment may name it otherwise."""
    from opentelemetry.sdk.resources import Resource

    attributes = {"service.version": __version__}
    named = environ.get("OTEL_SERVICE_NAME") or "service.name=" in environ.get("OTEL_RESOURCE_ATTRIBUTES", "")
    if not named:
        attributes["service.name"] = service
    return Resource.create(attributes)


def _exporter(name: str, asked_by: str) -> Any:
    if name == "console":
        from opentelemetry.sdk.trace.export import ConsoleSpanExporter

        return ConsoleSpanExporter(out=sys.stderr)  # stdout is the host's
    found = next(iter(entry_points(group=_GROUP, name=name)), None)
    if found is None:
        raise _missing(f"the exporter {name!r}", asked_by)
    try:
        return found.load()()
    except ImportError:
        raise _missing(f"the exporter {name!r}", asked_by) from None


def _missing(what: str, asked_by: str) -> ConfigError:
    return ConfigError(
        f"{what} needs packages that are not installed",
        where=f"${asked_by}",
        remedy=f"install the extra otel: `{install_extra('otel')}`, or unset the variable",
    )
