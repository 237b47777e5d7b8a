"""Names, counts, sizes and times as words."""

import pytest

from gateway.core.fact_words import age_words, counted, join_facts, plain, seconds_words, sentence, size_words


@pytest.mark.parametrize(("number", "words"), [(0, "no tools"), (1, "1 tool"), (2, "2 tools"), (1_200, "1,200 tools")])
def test_what_is_counted_is_one_or_many(number: int, words: str) -> None:
    assert counted(number, "tool") == words


@pytest.mark.parametrize(
    ("count", "words"),
    [
        (1, "1 byte"),
        (999, "999 bytes"),
        (1_000, "1.0 KB"),
        (9_960, "10 KB"),
        (999_499, "999 KB"),
        (999_500, "1.0 MB"),
        (1_250_000_000, "1.2 GB"),
    ],
)
def test_a_size_has_the_unit_that_keeps_it_short(count: int, words: str) -> None:
    assert size_words(count) == words


@pytest.mark.parametrize(("seconds", "words"), [(59.94, "59.9 s"), (59.96, "1 min"), (125, "2 min 5 s")])
def test_a_duration_is_never_sixty_seconds(seconds: float, words: str) -> None:
    assert seconds_words(seconds) == words


@pytest.mark.parametrize(
    ("seconds", "words"),
    [(59, "less than a minute"), (60, "1 minute"), (7_199, "1 hour"), (86_400, "1 day"), (200_000, "2 days")],
)
def test_an_age_is_in_its_largest_whole_unit(seconds: float, words: str) -> None:
    assert age_words(seconds) == words


def test_a_name_from_outside_stays_within_its_line() -> None:
    assert plain("a\x1b[31m\n\tb \u202e\u200b\ud800 c") == "a [31m b c"
    assert plain("x" * 400) == "x" * 299 + "…"
    assert plain("abc", 3) == "abc"


def test_unknown_facts_leave_no_comma() -> None:
    assert join_facts(None, "image/png", "", "2 KB") == "image/png, 2 KB"


def test_a_sentence_may_begin_with_a_command() -> None:
    assert sentence("take it out") == "Take it out"
    assert sentence("mcp-gateway remove NAME") == "mcp-gateway remove NAME"
