"""What messages suggest for an unknown name."""

import pytest

from gateway.core.near_names import nearest_words, which_name


@pytest.mark.parametrize(
    ("given", "names", "said"),
    [
        ("pcis", ["pics", "charts"], "did you mean 'pics'? there are: pics, charts"),
        ("zzz", ["pics", "charts"], "there are: pics, charts"),
        ("male", ["mail"], "did you mean 'mail'?"),
        ("zzz", ["mail"], "there are: mail"),
        ("x", [], "there are none"),
        ("PICS", ["pics"], "did you mean 'pics'?"),
    ],
)
def test_the_nearest_name_comes_first_and_then_all(given, names, said):
    assert which_name(given, names) == said


def test_many_names_are_not_listed_beside_a_suggestion():
    names = [f"server-{number:03}" for number in range(100)]
    assert which_name("serve-042", names) == "did you mean 'server-042'?"
    listed = which_name("zzz", names)
    assert "server-059 and 40 more" in listed
    assert "server-060" not in listed


def test_a_name_without_its_prefix_is_compared_with_the_short_names():
    short = {"everything-server__draw": "draw", "another-server__draw": "draw", "x__y": "y"}
    both = "; the nearest: 'everything-server__draw', 'another-server__draw'"
    assert nearest_words("drwa", list(short), short) == both
    assert nearest_words("drwa", list(short)) == ""
    assert nearest_words("zzz", list(short), short) == ""


def test_of_a_hostile_number_of_long_names_only_the_first_are_compared():
    names = [f"{number:06}{'ab' * 60}" for number in range(20_000)]
    assert nearest_words(names[499][:-1] + "c", names).startswith(f"; the nearest: {names[499]!r}")
    assert repr(names[501]) not in nearest_words(names[501][:-1] + "c", names)  # all pairs would take minutes
    assert which_name("ba" * 5_000, names).startswith("there are: ")
