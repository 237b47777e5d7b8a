"""YAML files of hosts: the gateway goes in and out, and every other character stays."""

import pytest

from gateway.errors import ConfigError
from gateway.hosts.config_files.documents import Document
from gateway.hosts.config_files.yaml_edits import NotEditable, with_member, with_setting, without_members

ENTRY = {"command": "/bin/gateway", "args": ["serve", "a: b # c"], "env": {"A": "no"}}
LINES = '  gateway:\n    command: "/bin/gateway"\n    args: ["serve", "a: b # c"]\n    env: {"A": "no"}\n'


def put(text, path=("servers",), key="gateway", entry=ENTRY):
    return with_member(text, "FILE", path, key, entry)


def out(text, *keys, path=("servers",)):
    return without_members(text, "FILE", path, keys or ("gateway",))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", f"servers:\n{LINES}"),
        ("# mine\n", f"# mine\nservers:\n{LINES}"),
        ("a: 1", f"a: 1\nservers:\n{LINES}"),
        ("servers:\n", f"servers:\n{LINES}"),
        ("servers: # mine\nz: 1\n", f"servers: # mine\n{LINES}z: 1\n"),
        ("servers: {}\nz: 1\n", f"servers:\n{LINES}z: 1\n"),
        ("servers: ~ # none\n", f"servers: # none\n{LINES}"),
        ("servers:\n  b:\n    c: x # c\n\n# next\nz: 1\n", f"servers:\n  b:\n    c: x # c\n{LINES}\n# next\nz: 1\n"),
        ("servers:\n  b:\n    - |\n      text\n\n\n", f"servers:\n  b:\n    - |\n      text\n\n\n{LINES}"),
        ("--- # doc\na: 1\n...\n", f"--- # doc\na: 1\nservers:\n{LINES}...\n"),
        ("\ufeffa: 1\n", f"\ufeffa: 1\nservers:\n{LINES}"),
    ],
)
def test_the_entry_comes_last_and_everything_else_stays(text, expected):
    assert put(text) == expected


@pytest.mark.parametrize(
    "text",
    [
        "servers:\n  b: &anchor # why\n    args:\n    - a\n    - b # e\n  # trailing\n\n# next\nz:\n  - *anchor\n",
        "servers:\n    b:\n        command: |\n            foo\n\nq: 2\n",
        "servers:\r\n  b:\r\n    command: x\r\n# end\r\n",
        "servers: {b: {command: x}} # flow\n",
        "servers: {\n  b: {command: x}, # why\n  c: {}\n}\n",
        "servers:\n  'b':\n    \"command\": >-\n      folded\n      text\nnot: !tagged {a: 2026-01-01}\n",
        "servers:\n  b:\n    env:\nz: 1\n",
        "servers:\n\n  # before\n  b: {}\n",
    ],
)
def test_what_was_put_in_goes_again_byte_for_byte(text):
    document = Document(text, "yaml", "FILE")
    inside = document.with_server(("servers",), "gateway", ENTRY)
    assert inside.data["servers"]["gateway"] == ENTRY
    assert inside.without_servers(("servers",), ["gateway"]).text == text


def test_line_ends_and_indentation_are_the_files():
    assert put("a:\r\n    b: 1\r\nservers:\r\n") == (
        'a:\r\n    b: 1\r\nservers:\r\n    gateway:\r\n      command: "/bin/gateway"\r\n'
        '      args: ["serve", "a: b # c"]\r\n      env: {"A": "no"}\r\n'
    )


def test_a_table_in_a_table_is_made():
    assert put("a: 1\n", ("mcp", "servers"), entry={"on": True}) == (
        'a: 1\nmcp:\n  servers:\n    gateway:\n      "on": true\n'
    )
    assert put("mcp:\n  idle: 1\nz: 1\n", ("mcp", "servers"), entry={"a": 1}) == (
        "mcp:\n  idle: 1\n  servers:\n    gateway:\n      a: 1\nz: 1\n"
    )


def test_a_former_entry_is_replaced_in_its_place():
    text = f"servers:\n  a: {{}}\n{LINES}  # after\n  b: {{}}\n"
    assert put(text, entry={"command": "y"}) == (
        'servers:\n  a: {}\n  gateway:\n    command: "y"\n  # after\n  b: {}\n'
    )
    assert put("servers: {gateway: {a: 1}, b: {}}\n", entry={"command": "y"}) == (
        'servers: {"gateway": {"command": "y"}, b: {}}\n'
    )


def test_the_last_server_leaves_an_empty_table_and_its_comments():
    assert out(f"servers: # mine\n  # before\n{LINES}  # after\nz: 1\n") == (
        "servers: {} # mine\n  # before\n  # after\nz: 1\n"
    )
    assert out("servers: {gateway: {a: 1}}\n") == "servers: {}\n"
    assert out("a: 1\n") == "a: 1\n"
    assert out("servers:\n") == "servers:\n"


def test_several_servers_go_and_the_comments_between_them_stay():
    text = "servers:\n  a:\n    x: 1\n  # of b\n  b:\n    x: 2\n  c: {x: 3}\n"
    assert out(text, "a", "c") == "servers:\n  # of b\n  b:\n    x: 2\n"
    assert out("servers: {a: 1, b: 2, c: 3}\n", "b", "c") == "servers: {a: 1}\n"
    with pytest.raises(NotEditable):
        out("servers: {a: 1,\n # of b\n b: 2}\n", "a")


@pytest.mark.parametrize(
    "text",
    [
        "servers:\n  ? b\n  : command: x\n",
        "base: &base\n  x: {}\nservers: *base\n",
        "- 1\n",
        "servers:\n  gateway: 1\n  gateway: 2\n",
    ],
)
def test_what_cannot_be_edited_exactly_is_refused(text):
    document = Document(text, "yaml", "FILE")
    with pytest.raises(ConfigError, match=r"edited safely|is not a YAML mapping"):
        document.with_server(("servers",), "gateway", ENTRY)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a: [1\nb: 2\n", r"FILE:2:2: is not YAML: expected ',' or ']', but got ':'"),
        ("a: 1\n---\nb: 2\n", "FILE:2:1: is not YAML: but found another document"),
        ("a: *nobody\n", "is not YAML: found undefined alias 'nobody'"),
        ("a: \x00\n", "is not YAML: it has a character that YAML does not allow"),
        ("[" * 5000, "nests too deeply"),
        ("a: " + "[" * 150 + "]" * 150 + "\n", "nests too deeply"),
        ("? [a]\n: 1\n", "FILE:1: has a key that is not a text"),
        ("a: &a [x, x, x, x, x, x, x, x, x, x]\n" + "".join(
            f"{b}: &{b} [{', '.join([f'*{a}'] * 10)}]\n" for a, b in zip("abcdefg", "bcdefgh", strict=True)
        ), "too many values"),
        ("a: " + "x" * 5_000_000, "has more than 4,194,304 characters"),
    ],
    ids=lambda value: value[:20],
)  # fmt: skip
def test_hostile_and_broken_files_are_errors_with_their_place(text, message):
    with pytest.raises(ConfigError, match=message):
        _ = Document(text, "yaml", "FILE").data


def test_values_have_the_types_of_yaml_1_2():
    text = "a: no\nb: 0x10\nc: 2026-01-01\nd: 1_000\ne: true\nf: '1'\ng: -2\nh: 1e3\ni: ~\nj: 1:30\nk: .5\nl: .inf\n"
    assert Document(text, "yaml", "FILE").data == {
        "a": "no", "b": "0x10", "c": "2026-01-01", "d": "1_000", "e": True, "f": "1", "g": -2, "h": 1000.0, "i": None,
        "j": "1:30", "k": 0.5, "l": ".inf",
    }  # fmt: skip


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", "wait: 30\n"),
        ("a: 1", "a: 1\nwait: 30\n"),
        ("a:\n  b: 1 # b\n\n# next\n", "a:\n  b: 1 # b\nwait: 30\n\n# next\n"),
        ("--- # doc\r\na: 1\r\n...\r\n", "--- # doc\r\na: 1\r\nwait: 30\r\n...\r\n"),
        ("{a: 1} # mine\n", '{a: 1, "wait": 30} # mine\n'),
    ],
)
def test_a_setting_of_the_host_comes_last_and_can_be_taken_out_again(text, expected):
    assert with_setting(text, "FILE", "wait", 30) == expected
    back = without_members(expected, "FILE", (), ["wait"])
    assert back.rstrip() == text.rstrip()


@pytest.mark.parametrize("text", ["wait: 1\n", "- a\n", "{}\n"])
def test_a_setting_that_is_there_or_has_no_place_is_not_written(text):
    with pytest.raises(NotEditable):
        with_setting(text, "FILE", "wait", 30)
