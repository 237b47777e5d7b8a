"""The metrics of admission and pressure: who runs, waits and is refused, and how short memory and time are."""

from collections.abc import Callable, Iterable

from gateway.admission.admission import Admission
from gateway.telemetry.metric_kinds import Labels, Metric, Reading


def admission_metrics(current: Callable[[], Admission | None]) -> tuple[Metric, ...]:
    """Return the metrics of the admission that `current` returns; without one, they have no samples."""

    def reading(name: str, meaning: str, read: Callable[[Admission], float]) -> Metric:
        def samples() -> Iterable[tuple[Labels, float]]:
            admission = current()
            return [] if admission is None else [((), read(admission))]

        return Reading(f"mcp_gateway_{name}", meaning, samples)

    def refused() -> Iterable[tuple[Labels, float]]:
        admission = current()
        return [] if admission is None else [((reason,), count) for reason, count in admission.refused.items()]

    return (
        reading("requests_running", "Requests of hosts that are worked on.", lambda it: it.running),
        reading("requests_waiting", "Requests of hosts that wait for their turn.", lambda it: it.waiting),
        reading("request_places", "Requests that are worked on at once at present.", lambda it: it.places),
        Reading(
            "mcp_gateway_requests_refused_total",
            "Requests refused for overload, by reason (full, share, late, memory, large).",
            refused,
            ("reason",),
            kind="counter",
        ),
        reading(
            "memory_used_ratio",
            "Memory in use, as a part of its limit; 0 without one.",
            lambda it: 0 if it.pressure.use is None else it.pressure.use.share,
        ),
        reading("loop_delay_seconds", "Delay of the event loop, as last measured.", lambda it: it.pressure.delay),
    )
