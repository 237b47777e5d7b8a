"""Every metric of the gateway. Label values come from the configuration and from fixed sets, never from hosts."""

from collections.abc import Callable, Iterable, Mapping
from enum import StrEnum
from typing import Protocol

from gateway._version import __version__
from gateway.admission.admission import Admission
from gateway.telemetry.admission import admission_metrics
from gateway.telemetry.metric_kinds import Counter, Histogram, Labels, Metric, Reading, exposition

_SECONDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120, 300)

_TOKENS = (100, 300, 1_000, 3_000, 10_000, 30_000, 100_000, 300_000)

Sizes = tuple[int, int]
"""Bytes, and the number of items."""


class ObservedCounts(Protocol):
    """The counters of an upstream."""

    @property
    def restarts(self) -> int: ...
    @property
    def running(self) -> int: ...


class ObservedUpstream(Protocol):
    """The observed state of an upstream, and its cause. `cause` contains no secrets."""

    @property
    def state(self) -> StrEnum: ...
    @property
    def cause(self) -> str | None: ...
    @property
    def counts(self) -> ObservedCounts: ...


def _nothing() -> Sizes:
    return 0, 0


class Metrics:
    """The metrics of one gateway. `upstreams`, `store`, `sessions` and `replicas` return current values."""

    def __init__(self) -> None:
        self.upstreams: Mapping[str, ObservedUpstream] = {}
        self.store: Callable[[], Sizes] = _nothing
        self.sessions: Callable[[], int] = lambda: 0
        self.long_calls: Callable[[], int] = lambda: 0
        self.cached_bytes: Callable[[], int] = lambda: 0
        self.replicas: Callable[[], Sizes | None] = lambda: None
        """Returns the number of replicas, and 1 if the Redis of the cluster can be used; None: there is no cluster."""
        self.calls = Counter("mcp_gateway_calls_total", "Tool calls, by upstream and outcome.", ("upstream", "outcome"))
        self.call_seconds = Histogram(
            "mcp_gateway_call_duration_seconds",
            "Duration of tool calls, from the host's request to its result.",
            _SECONDS,
            ("upstream",),
        )
        self.call_bytes = Counter(
            "mcp_gateway_call_bytes_total",
            "Characters of keys, texts and base64 in calls: in, the arguments from hosts; raw, the results of"
            " upstreams; out, the results for hosts.",
            ("upstream", "direction"),
        )
        self.calls_from_cache = Counter(
            "mcp_gateway_calls_from_cache_total", "Calls that were answered from the result cache.", ("upstream",)
        )
        self.images_converted = Counter(
            "mcp_gateway_images_converted_total", "Images that were resized or converted for a host.", ("upstream",)
        )
        self.result_tokens = Counter(
            "mcp_gateway_result_tokens_total",
            "Tokens of results for hosts, by profile and kind (text, images, others), if [tokens] count is set.",
            ("profile", "kind"),
        )
        self.tokens_per_result = Histogram(
            "mcp_gateway_tokens_per_result",
            "Tokens of each result for hosts, by profile, if [tokens] count is set.",
            _TOKENS,
            ("profile",),
        )
        self.notes = Counter("mcp_gateway_notes_total", "Changes made to results, by kind.", ("kind",))
        self.media_jobs = Counter("mcp_gateway_media_jobs_total", "Jobs given to the media workers.")
        self.media_failures = Counter("mcp_gateway_media_failures_total", "Jobs of the media workers that failed.")
        self.media_seconds = Histogram(
            "mcp_gateway_media_job_duration_seconds",
            "Duration of media jobs, including the wait for a worker.",
            _SECONDS,
        )
        self.admission: Admission | None = None
        self.media_waiting: Callable[[], int] = lambda: 0
        self.requests_passed_on = Counter(
            "mcp_gateway_requests_passed_on_total", "Requests that were passed on to another replica of the cluster."
        )
        self.sessions_taken_over = Counter(
            "mcp_gateway_sessions_taken_over_total", "Sessions that were taken over from another replica."
        )
        self._all: tuple[Metric, ...] = (
            Reading("mcp_gateway_info", "Always 1; the version.", lambda: [((__version__,), 1)], ("version",)),
            self.calls,
            self.call_seconds,
            self.call_bytes,
            self.calls_from_cache,
            Reading(
                "mcp_gateway_result_cache_bytes",
                "Size of the results in the cache.",
                lambda: [((), self.cached_bytes())],
            ),
            Reading(
                "mcp_gateway_long_calls",
                "Calls that were answered before they ended, and their results, until nobody asks for them any more.",
                lambda: [((), self.long_calls())],
            ),
            self.images_converted,
            self.result_tokens,
            self.tokens_per_result,
            self.notes,
            Reading(
                "mcp_gateway_upstream_state",
                "1 for the current state of an upstream, 0 for the others.",
                self._states,
                ("upstream", "state"),
            ),
            Reading(
                "mcp_gateway_calls_running",
                "Calls that are running now.",
                lambda: [((name,), upstream.counts.running) for name, upstream in self.upstreams.items()],
                ("upstream",),
            ),
            Reading(
                "mcp_gateway_upstream_restarts_total",
                "Reconnections to an upstream.",
                lambda: [((name,), upstream.counts.restarts) for name, upstream in self.upstreams.items()],
                ("upstream",),
                kind="counter",
            ),
            Reading("mcp_gateway_store_bytes", "Bytes of stored content.", lambda: [((), self.store()[0])]),
            Reading("mcp_gateway_store_items", "Pieces of stored content.", lambda: [((), self.store()[1])]),
            self.media_jobs,
            self.media_failures,
            self.media_seconds,
            Reading(
                "mcp_gateway_media_jobs_waiting",
                "Media jobs waiting for a worker.",
                lambda: [((), self.media_waiting())],
            ),
            *admission_metrics(lambda: self.admission),
            Reading("mcp_gateway_sessions", "Open sessions of hosts.", lambda: [((), self.sessions())]),
            Reading("mcp_gateway_replicas", "Replicas of the cluster, as this one knows them.", self._cluster(0)),
            Reading(
                "mcp_gateway_cluster_redis_up", "1 if the Redis of the cluster can be used, 0 if not.", self._cluster(1)
            ),
            self.requests_passed_on,
            self.sessions_taken_over,
        )

    def exposition(self) -> str:
        """Return all metrics in Prometheus' text format."""
        return exposition(self._all)

    def _cluster(self, place: int) -> Callable[[], Iterable[tuple[Labels, float]]]:
        def read() -> Iterable[tuple[Labels, float]]:
            found = self.replicas()
            return [] if found is None else [((), found[place])]

        return read

    def _states(self) -> Iterable[tuple[Labels, float]]:
        for name, upstream in self.upstreams.items():
            for state in type(upstream.state):
                yield (name, state.value), float(state is upstream.state)
