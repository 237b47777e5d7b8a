import re
import time
from fnmatch import fnmatchcase

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.routing.templates import closest_first, matches


@pytest.mark.parametrize(
    ("template", "uri", "expected"),
    [
        ("db://{table}", "db://users", True),
        ("db://{table}/{row}", "db://users/3", True),
        ("db://{table}/{row}", "db://users", False),
        ("file:///{+path}", "file:///a/b/c.txt", True),
        ("x://a{?q,r}", "x://a?q=1", True),
        ("x://a{?q,r}", "x://a", True),
        ("x://a{?q}", "x://b?q=1", False),
        ("x://[a]*?{v}", "x://[a]*?1", True),
        ("x://[a]*?{v}", "x://a??1", False),
        ("x://fixed", "x://fixed", False),
        ("{+anything}", "x://y", True),
        ("db://{Table}", "DB://users", False),
        ("db://{a}", "db://\n", True),
    ],
)
def test_a_uri_matches_where_all_literal_parts_are_there_in_order(template: str, uri: str, expected: bool):
    assert matches(template, uri) is expected


def test_a_hostile_template_takes_no_time():
    started = time.perf_counter()
    assert not matches("{a}b" * 900 + "c", "b" * 4_000)
    assert not matches("{+a}" * 1_000 + "c", "b" * 4_000)
    assert not matches("x{a}", "x" * 1_000_000)
    assert time.perf_counter() - started < 5


def test_the_longest_literal_part_is_asked_first_and_everybody_once():
    templates = [("wide", "{+any}"), ("near", "db://users/{row}"), ("far", "db://{table}"), ("near", "db://{x}/{y}")]
    assert closest_first(templates, "db://users/3") == ["near", "far", "wide"]


@given(
    st.lists(st.sampled_from(["{x}", "a", "b", "/", "ab", "*", "?", "["]), max_size=8).map("".join),
    st.text(alphabet="ab/*?[", max_size=12),
)
def test_a_template_matches_as_a_glob_would(template, uri):
    parts = re.split(r"\{[^{}]*\}", template)
    glob = "*".join(re.sub(r"([*?[])", r"[\1]", part) for part in parts)
    assert matches(template, uri) is (len(parts) > 1 and fnmatchcase(uri, glob))


def test_thousands_of_templates_cost_next_to_nothing():
    templates = [("evil", f"a://{{x}}/{n}/" + "{y}a" * 20) for n in range(5_000)]
    began = time.thread_time()
    assert closest_first(templates, "a://" + "a" * 1_000) == []
    assert time.thread_time() - began < 1
