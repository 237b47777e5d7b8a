import math

from benchmarks.calls.figures import Figures, Ratio, Reference, in_turn

OURS, NAIVE = Reference("http to http", "text", "passthrough"), Reference("http to http", "text", "naive")


def test_a_ratio_is_of_numbers_of_the_same_round():
    figures = Figures({OURS: {0: 2.0, 1: 30.0, 2: 4.0}, NAIVE: {0: 1.0, 1: 10.0, 2: 1.0}})
    assert figures.ratio(OURS, NAIVE) == Ratio(2.0, 3.0, 4.0)
    assert figures.ratio(NAIVE, OURS, scale=4) == Ratio(1.0, 4 / 3, 2.0)


def test_a_round_that_lacks_one_of_them_says_nothing():
    figures = Figures({OURS: {0: 2.0, 1: 30.0, 2: math.nan}, NAIVE: {0: 1.0, 2: 1.0}})
    assert figures.ratio(OURS, NAIVE) == Ratio(2.0, 2.0, 2.0)
    assert Figures({OURS: {0: 1.0}, NAIVE: {0: 0.0}}).ratio(OURS, NAIVE) is None
    assert Figures().ratio(OURS, NAIVE) is None


def test_what_is_a_ratio_already_needs_nothing_to_compare_with():
    assert Figures({OURS: {0: 2.0, 1: 4.0}}).ratio(OURS, scale=0.5) == Ratio(1.0, 1.5, 2.0)


def test_figures_know_their_settings_cases_and_ways_in_the_order_in_which_they_came():
    figures = Figures()
    for reference in (OURS, NAIVE, OURS._replace(case="1 MB"), OURS._replace(setting="memory")):
        figures.add(reference, 0, 1.0)
    assert figures.settings() == ["http to http", "memory"]
    assert figures.cases("http to http") == ["text", "1 MB"]
    assert figures.ways("http to http") == ["passthrough", "naive"]
    assert next(iter(figures)) == OURS


def test_every_round_begins_with_another_way():
    assert [in_turn(["a", "b", "c"], number) for number in range(4)] == [
        ["a", "b", "c"],
        ["b", "c", "a"],
        ["c", "a", "b"],
        ["a", "b", "c"],
    ]
    assert in_turn([], 1) == []
