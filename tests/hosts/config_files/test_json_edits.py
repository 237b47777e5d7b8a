"""Editing JSON with comments: one member goes in or out, every other character stays."""

import json
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.config.jsonc import Malformed, parse
from gateway.hosts.config_files.json_edits import NoObject, with_member, without_members

NEW = {"command": "g"}


def plain(text):
    root = parse(text)
    assert root is not None
    return root.value


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("", '{\n  "s": {\n    "g": {\n      "command": "g"\n    }\n  }\n}\n'),
        ("\ufeff", '\ufeff{\n  "s": {\n    "g": {\n      "command": "g"\n    }\n  }\n}\n'),
        ("// mine", '// mine\n{\n  "s": {\n    "g": {\n      "command": "g"\n    }\n  }\n}\n'),
        ("{}", '{"s": {"g": {"command": "g"}}}'),
        ('{"s":{"a":1}}', '{"s":{"a":1, "g": {"command": "g"}}}'),
        ('{\n    "s": {}\n}\n', '{\n    "s": {\n        "g": {\n            "command": "g"\n        }\n    }\n}\n'),
        (
            '{\n\t"s": {\n\t\t"a": 1 // one\n\t}\n}',
            '{\n\t"s": {\n\t\t"a": 1, // one\n\t\t"g": {\n\t\t\t"command": "g"\n\t\t}\n\t}\n}',
        ),
        (
            '{\r\n  "s": {\r\n    "a": 1,\r\n  },\r\n}\r\n',
            '{\r\n  "s": {\r\n    "a": 1,\r\n    "g": {\r\n      "command": "g"\r\n    },\r\n  },\r\n}\r\n',
        ),
        (
            '{\n  "s": {\n    // none yet\n  }\n}',
            '{\n  "s": {\n    // none yet\n    "g": {\n      "command": "g"\n    }\n  }\n}',
        ),
        ('{"s": null}', '{"s": {"g": {"command": "g"}}}'),
        (
            '{\n  "t": 1\n}',
            '{\n  "t": 1,\n  "s": {\n    "g": {\n      "command": "g"\n    }\n  }\n}',
        ),
        (
            '{\n  "s": {\n    "g": 1, // old\n    "b": 2\n  }\n}',
            '{\n  "s": {\n    "g": {\n      "command": "g"\n    }, // old\n    "b": 2\n  }\n}',
        ),
    ],
)
def test_a_member_goes_in_as_the_file_is_laid_out(before, after):
    assert with_member(before, ["s"], "g", NEW) == after


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ('{"s": {"a": 1, "g": 2}}', '{"s": {"a": 1}}'),
        ('{"s": {"g": 2, "a": 1}}', '{"s": {"a": 1}}'),
        ('{"s": {"g": 2}}', '{"s": {}}'),
        ('{\n "s": {\n  "g": 2,\n  "a": 1\n }\n}', '{\n "s": {\n  "a": 1\n }\n}'),
        ('{\n "s": {\n  "a": 1,\n  "g": 2\n }\n}', '{\n "s": {\n  "a": 1\n }\n}'),
        ('{\n "s": {\n  "a": 1, // one\n  "g": 2\n }\n}', '{\n "s": {\n  "a": 1 // one\n }\n}'),
        ('{\n "s": {\n  "a": 1,\n  "g": 2,\n }\n}', '{\n "s": {\n  "a": 1,\n }\n}'),
        ('{\n "s": {\n  // kept\n  "g": 2\n }\n}', '{\n "s": {\n  // kept\n }\n}'),
        ('{"s": {"g": 2 /* kept */, "a": 1}}', '{"s": { /* kept */ "a": 1}}'),
        ('{"s": {"g": 1, "a": 1, "g": 2}}', '{"s": {"a": 1}}'),
        ('{"t": 1}', '{"t": 1}'),
        ("", ""),
    ],
)
def test_a_member_goes_out_with_its_comma_and_its_lines(before, after):
    assert without_members(before, ["s"], ["g"]) == after


LAYOUTS = st.sampled_from([{"indent": 2}, {"indent": "\t"}, {"indent": 4}, {}, {"separators": (",", ":")}])
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)
TABLES = st.dictionaries(st.text(max_size=5).filter(lambda key: key != "g"), VALUES, max_size=4)


@given(servers=TABLES, rest=TABLES, layout=LAYOUTS, crlf=st.booleans())
def test_what_went_in_comes_out_and_the_text_is_as_it_was(servers, rest, layout, crlf):
    text = json.dumps({**rest, "s": servers}, **layout)
    text = text.replace("\n", "\r\n") if crlf else text
    inside = with_member(text, ["s"], "g", NEW)
    assert plain(inside) == {**rest, "s": {**servers, "g": NEW}}
    out = without_members(inside, ["s"], ["g"])
    assert plain(out) == plain(text)
    if servers:
        assert out == text


@given(servers=TABLES, position=st.integers(0, 200), comment=st.sampled_from(["/* } , { */", '// "x": [\n']))
def test_comments_are_never_lost_or_read(servers, position, comment):
    text = json.dumps({"s": {**servers, "a": 1}}, indent=2)
    blanks = [found.start() for found in re.finditer(r"\n", text)]
    where = blanks[position % len(blanks)]
    text = text[:where] + comment + text[where:]
    inside = with_member(text, ["s"], "g", NEW)
    assert plain(inside)["s"]["g"] == NEW
    assert comment in inside
    assert comment in without_members(inside, ["s"], ["a"])


@pytest.mark.parametrize(
    ("text", "line", "column"),
    [
        ("{", 1, 2),
        ('{"a" 1}', 1, 6),
        ('{\n  "a": 1\n  "b": 2\n}', 3, 3),
        ('{"a": undefined}', 1, 7),
        ('{"a": "x\ny"}', 1, 7),
        ("{} {}", 1, 4),
        ('{"a": "\\x"}', 1, 7),
        ("[" * 1000, 1, 202),
        ("{'a': 1}", 1, 2),
        ('{"a": 1 /* no end', 1, 9),
    ],
)
def test_what_is_no_json_is_refused_with_its_place(text, line, column):
    with pytest.raises(Malformed) as caught:
        parse(text)
    assert (caught.value.line, caught.value.column) == (line, column)


def test_what_is_no_object_takes_no_member():
    with pytest.raises(NoObject):
        with_member('{"s": []}', ["s"], "g", NEW)
    with pytest.raises(NoObject):
        with_member("[]", ["s"], "g", NEW)
