"""The metrics of several workers as one text."""

from gateway.telemetry.merge_expositions import labelled, merged
from gateway.telemetry.metrics import Metrics


def exposition(calls: int, name: str) -> str:
    metrics = Metrics()
    metrics.calls.add(calls, name, "ok")
    metrics.call_seconds.observe(0.2, name)
    return metrics.exposition()


def test_each_series_says_whose_it_is_and_stands_with_those_of_its_name() -> None:
    odd = 'a{b="c",} 1'
    text = merged([labelled(exposition(3, odd), 1), labelled(exposition(4, odd), 2)])
    lines = text.splitlines()
    at = lines.index("# TYPE mcp_gateway_calls_total counter")
    quoted = 'upstream="a{b=\\"c\\",} 1",outcome="ok"'
    assert lines[at + 1 : at + 3] == [
        f'mcp_gateway_calls_total{{worker="1",{quoted}}} 3',
        f'mcp_gateway_calls_total{{worker="2",{quoted}}} 4',
    ]
    assert lines[at + 3].startswith("# HELP ")
    counts = [line for line in lines if line.startswith("mcp_gateway_call_duration_seconds_count{")]
    assert [line.partition('worker="')[2][0] for line in counts] == ["1", "2"]
    assert [line for line in lines if line.startswith("mcp_gateway_store_bytes")] == ["mcp_gateway_store_bytes 0"]
    assert text.count("# HELP ") == exposition(1, "x").count("# HELP ")


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
