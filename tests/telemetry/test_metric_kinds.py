"""Numbers as Prometheus reads them."""

import re

from gateway.telemetry.metric_kinds import MOST_SERIES, Counter, Histogram, Reading, exposition


def test_a_counter_without_labels_is_there_before_it_counts():
    counter = Counter("jobs_total", "Jobs.")
    assert exposition([counter]) == "# HELP jobs_total Jobs.\n# TYPE jobs_total counter\njobs_total 0\n"
    counter.add(2)
    counter.add(0.5)
    assert exposition([counter]).endswith("jobs_total 2.5\n")


def test_labels_are_named_and_what_they_hold_is_quoted():
    counter = Counter("calls_total", "Calls\nof \\all.", ("upstream", "outcome"))
    counter.add(1, 'a"b\\c\nd', "ok")
    assert exposition([counter]).splitlines() == [
        "# HELP calls_total Calls\\nof \\\\all.",
        "# TYPE calls_total counter",
        'calls_total{upstream="a\\"b\\\\c\\nd",outcome="ok"} 1',
    ]


def test_the_buckets_of_a_histogram_add_up():
    histogram = Histogram("seconds", "How long.", (0.1, 1, 10), ("upstream",))
    for value in (0.05, 0.1, 0.5, 20):
        histogram.observe(value, "a")
    assert exposition([histogram]).splitlines()[2:] == [
        'seconds_bucket{upstream="a",le="0.1"} 2',
        'seconds_bucket{upstream="a",le="1"} 3',
        'seconds_bucket{upstream="a",le="10"} 3',
        'seconds_bucket{upstream="a",le="+Inf"} 4',
        'seconds_sum{upstream="a"} 20.65',
        'seconds_count{upstream="a"} 4',
    ]


def test_a_reading_is_asked_for_each_time():
    values = iter([3, 4])
    reading = Reading("items", "Items.", lambda: [((), next(values))])
    assert exposition([reading]).endswith("items 3\n")
    assert exposition([reading]).endswith("items 4\n")


def test_no_label_makes_a_metric_grow_without_end():
    counter = Counter("calls_total", "Calls.", ("tool",))
    histogram = Histogram("seconds", "How long.", (1,), ("tool",))
    for number in range(MOST_SERIES + 1_000):
        counter.add(1, f"tool{number}")
        histogram.observe(1, f"tool{number}")
    assert counter.value("other") == 1_000
    assert len(list(counter.samples())) == MOST_SERIES + 1
    assert len(re.findall("_count", exposition([histogram]))) == MOST_SERIES + 1
