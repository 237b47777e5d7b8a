"""The metrics of several workers as one text."""

from prometheus_client.parser import text_string_to_metric_families

from gateway.telemetry.merge_expositions import labelled, merged
from gateway.telemetry.metrics import Metrics


def exposition(calls: int, name: str) -> str:
    metrics = Metrics()
    metrics.calls.add(calls, name, "ok")
    metrics.call_seconds.observe(0.2, name)
    return metrics.exposition()


def test_each_series_says_whose_it_is_and_prometheus_can_read_all() -> None:
    odd = 'a{b="c",} 1'
    text = merged([labelled(exposition(3, odd), 1), labelled(exposition(4, odd), 2)])
    families = {family.name: family for family in text_string_to_metric_families(text)}
    calls = {one.labels["worker"]: one.value for one in families["mcp_gateway_calls"].samples}
    assert calls == {"1": 3, "2": 4}
    assert {one.labels["upstream"] for one in families["mcp_gateway_calls"].samples} == {odd}
    buckets = [one for one in families["mcp_gateway_call_duration_seconds"].samples if one.name.endswith("_count")]
    assert [one.labels["worker"] for one in buckets] == ["1", "2"]
    (stored,) = families["mcp_gateway_store_bytes"].samples
    assert "worker" not in stored.labels, "they have one store"
    assert text.count("# TYPE mcp_gateway_calls_total counter") == 1


def test_nothing_is_lost_that_only_one_of_them_has() -> None:
    one, two = labelled("# HELP a A.\n# TYPE a gauge\na 1\n", 1), labelled("# HELP b B.\n# TYPE b gauge\nb 2\n", 2)
    assert merged([one, two]).splitlines() == [
        "# HELP a A.",
        "# TYPE a gauge",
        'a{worker="1"} 1',
        "# HELP b B.",
        "# TYPE b gauge",
        'b{worker="2"} 2',
    ]
