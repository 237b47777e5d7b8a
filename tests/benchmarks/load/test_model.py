"""The models: what a reader can compute again from the page is what the script says."""

import json
import math
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from benchmarks.load.measured import Costs, KindCost, percentile
from benchmarks.load.model import (
    COSTS,
    GIB,
    Assumptions,
    busiest_second,
    cost_of_million,
    cpu_of_mix,
    fleet,
    upstreams_reached,
    waiting_at,
)
from benchmarks.load.pattern import MIX
from benchmarks.load.report import model_text

ROOT = Path(__file__).parents[3]
EVERY = Costs(tuple(KindCost(kind, 0.001, 0.0005) for kind in MIX), GIB // 10, 50_000, 100_000)


def test_a_million_calls_cost_what_the_formula_says() -> None:
    given = Assumptions(vcpu_hour=0.36, peak_to_average=2.0, utilisation=0.5)
    found = cost_of_million(EVERY, given)
    assert found.cpu_hours == pytest.approx(1_000 / 3_600)
    assert found.media_hours == pytest.approx(500 / 3_600)
    assert found.price == pytest.approx(1e6 * 0.0015 / 3_600 * 0.36 * 2.0 / 0.5)
    assert cpu_of_mix(EVERY, {"text": 3.0}) == pytest.approx((0.001, 0.0005))
    with pytest.raises(KeyError):
        cpu_of_mix(EVERY, {"nothing": 1.0})


def test_waiting_is_that_of_a_queue_with_one_core() -> None:
    alone = replace(EVERY, kinds=tuple(KindCost(kind, 0.001, 0.0) for kind in MIX))
    found = [waiting_at(alone, part, calls=40_000) for part in (0.3, 0.6, 0.9)]
    assert [each.most for each in found] == sorted(each.most for each in found)
    # Of calls of one length that arrive in bursts of 1.5 on average, most wait for those of their own burst at least.
    assert 0 < found[0].most < 0.01
    assert found[2].median > found[0].median


def test_a_fleet_has_enough_cores_sessions_and_memory() -> None:
    given = Assumptions(hosts=100_000, think=60, calls_a_burst=1.5, utilisation=0.5, stateless=0.5)
    found = fleet(EVERY, given)
    assert found.calls_a_second == 2_500
    assert found.gateway_cores == pytest.approx(2.5)
    assert found.replicas == 5  # for the CPU; for the sessions, at most 10,000 each, as many
    assert found.sessions_per_replica == 10_000
    assert 0 < found.upstreams_per_replica <= given.upstreams
    expected = GIB // 10 + 10_000 * 50_000 + found.upstreams_per_replica * 100_000
    assert found.bytes_per_replica == pytest.approx(expected)
    assert fleet(EVERY, replace(given, stateless=0.0)).replicas == 10
    assert fleet(EVERY, replace(given, hosts=10)).replicas == 2
    assert fleet(EVERY, replace(given, vcpu_hour=0.08)).price_month > found.price_month


def test_few_hosts_reach_few_upstreams_and_many_nearly_all() -> None:
    few = upstreams_reached(Assumptions(hosts=10, upstreams=1_000), 1)
    many = upstreams_reached(Assumptions(hosts=5_000, upstreams=1_000), 1)
    assert few <= 80
    assert 950 < many <= 1_000


def test_the_worst_second_is_somewhat_above_the_average() -> None:
    average, most = busiest_second(Assumptions(hosts=6_000), seconds=60)
    assert average == pytest.approx(150, rel=0.05)
    assert average < most < 2 * average


def test_a_percentile_is_a_value_that_was_there() -> None:
    assert percentile([3.0, 1.0, 2.0], 0.5) == 2.0
    assert percentile([1.0], 0.99) == 1.0
    assert percentile(list(map(float, range(1, 101))), 0.99) == 99.0
    assert math.isnan(percentile([], 0.5))


def test_the_page_can_be_computed_again_with_other_prices() -> None:
    costs = Costs.from_json(json.loads(COSTS.read_text("utf-8")))
    assert Costs.from_json(json.loads(json.dumps(costs.to_json()))) == costs
    assert model_text(costs, Assumptions()) in (ROOT / "docs" / "scaling.md").read_text("utf-8")
    command = [sys.executable, "-m", "benchmarks.load.model", "--vcpu-hour", "1.25", "--hosts", "2000"]
    said = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True, timeout=120).stdout
    assert "With 1.25 for a core-hour" in said
    assert "10,000 upstreams and 2,000 hosts" in said
