import pytest

from benchmarks.calls.figures import Figures
from benchmarks.calls.goals import GOALS, verdict

SMALL_CALL = next(goal for goal in GOALS if goal.title == "small call, latency / naive")
AT_ONCE = next(goal for goal in GOALS if goal.at_least)


@pytest.mark.parametrize(("ours", "reached"), [(0.3, "aim"), (0.35, "aim"), (0.5, "must"), (0.7, "**not met**")])
def test_a_latency_has_to_be_low(ours: float, reached: str) -> None:
    assert SMALL_CALL.under is not None
    figures = Figures({SMALL_CALL.over: {0: ours}, SMALL_CALL.under: {0: 1.0}})
    assert verdict(SMALL_CALL, figures)[1] == reached


@pytest.mark.parametrize(("ours", "reached"), [(0.2, "aim"), (0.5, "must"), (1.0, "**not met**")])
def test_calls_per_second_have_to_be_many(ours: float, reached: str) -> None:
    assert AT_ONCE.under is not None
    figures = Figures({AT_ONCE.under: {0: ours}, AT_ONCE.over: {0: 1.0}})
    assert verdict(AT_ONCE, figures)[1] == reached


def test_what_was_not_measured_is_neither_met_nor_missed():
    assert {verdict(goal, Figures()) for goal in GOALS} == {(None, "not measured")}


def test_no_aim_is_easier_than_its_must():
    assert [goal.title for goal in GOALS if (goal.aim < goal.must if goal.at_least else goal.aim > goal.must)] == []
