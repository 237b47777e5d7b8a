"""Editing TOML: one table goes in or out, every other character stays."""

import tomllib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.config.toml_text import table_text, value_text
from gateway.hosts.config_files.toml_tables import begins_with, replaced, tables, with_table, without_tables

G = '[m.g]\ncommand = "g"\n'


def test_tables_are_found_by_their_headers_and_not_in_texts_lists_or_comments():
    text = (
        'a = """\n[no.table]\n"""\nb = [\n  [1],\n  ["]"],\n]\n# [no.comment]\n'
        "[ one . \"two.three\" ] # [x]\nc = '''\n[no]'''\n[[many]]\nd = {e = [1]}\n\n# about last\n[last]\n"
    )
    assert [table.path for table in tables(text)] == [("one", "two.three"), ("many",), ("last",)]
    one, many, _ = tables(text)
    assert text[one.start : one.end].endswith("[no]'''\n")
    assert text[many.start : many.end] == "[[many]]\nd = {e = [1]}\n"


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("", G),
        ("\ufeff", "\ufeff" + G),
        ("a = 1", "a = 1\n\n" + G),
        ("a = 1\n", "a = 1\n\n" + G),
        ("a = 1\r\n", 'a = 1\r\n\r\n[m.g]\r\ncommand = "g"\r\n'),
    ],
)
def test_a_table_goes_to_the_end(before, after):
    assert with_table(before, G) == after
    assert without_tables(after, begins_with(["m", "g"])).rstrip("\r\n") == before.rstrip("\r\n")


def test_a_table_goes_out_with_those_below_it_and_leaves_the_comments_of_others():
    text = "a = 1\n\n# about g\n[m.g]\nx = 1\n\n[m.g.env]\ny = 2\n\n# about h\n[m.h]\nz = 3\n"
    assert without_tables(text, begins_with(["m", "g"])) == "a = 1\n\n# about g\n\n# about h\n[m.h]\nz = 3\n"


def test_a_table_is_replaced_in_its_place():
    text = "[m.g]\nx = 1\n[m.g.env]\ny = 2\n\n[m.h]\nz = 3\n"
    assert replaced(text, begins_with(["m", "g"]), G) == G + "\n[m.h]\nz = 3\n"
    scattered = "[m.g]\nx = 1\n[m.h]\nz = 3\n[m.g.env]\ny = 2\n"
    assert replaced(scattered, begins_with(["m", "g"]), G) == "[m.h]\nz = 3\n\n" + G


VALUES = st.recursive(
    st.booleans() | st.integers(-(2**63), 2**63 - 1) | st.text(),
    lambda inner: st.lists(inner, max_size=3),
    max_leaves=5,
)


@given(st.dictionaries(st.text(), VALUES | st.dictionaries(st.text(), VALUES, max_size=3), max_size=5))
def test_what_is_written_reads_back_the_same(table):
    assert tomllib.loads(table_text(["up streams", "x"], table)) == {"up streams": {"x": table}}


def test_what_toml_cannot_say_is_an_error():
    with pytest.raises(ValueError, match="TOML has no NoneType"):
        value_text(None)
    with pytest.raises(ValueError, match="surrogates"):
        value_text("\ud800")
