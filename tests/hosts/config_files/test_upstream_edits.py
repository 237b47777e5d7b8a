"""Upstreams put into a configuration, changed and taken out: what was asked for, and every comment kept."""

import json
import tomllib
from pathlib import Path

import pytest

from gateway.config.documents import read_document
from gateway.errors import ConfigError
from gateway.hosts.config_files.starter_config import EXAMPLE, HEAD
from gateway.hosts.config_files.upstream_edits import ConfigurationText

NEW = {"command": "npx", "args": ["-y", "some server"], "env": {"A": "b"}}
TEXTS = {
    "tables": """\
# top

# about a
[upstreams.a]
command = 'x' # of a
  # inside a
tools.exclude = ["rm"]

[upstreams.a.env]
X = "1"

# about b
[upstreams.b]
url = 'http://x' # of b
# after b

[http]
port = 1 # the port
# end
""",
    "scattered": """\
[upstreams.a]
command='x' # of a

# about http
[http]
port=1

# about b
[upstreams.b]
url = 'http://x'
[upstreams.b.headers]
A='b'
# end
""",
    "inline": "upstreams = { a = { command = 'x' }, b = { url = 'http://x' } } # all\n# end\n",
    "header": "[upstreams]\na = { command = 'x' } # of a\nb.url = 'http://x' # of b\n\n# about http\n[http]\nport=1\n",
    "dotted": "upstreams.a.command = 'x' # of a\nupstreams.b.url = 'http://x' # of b\n# about http\n[http]\nport = 1\n",
    "no end": "[upstreams.b]\nurl = 'http://x'\n\n# about a\n[upstreams.a]\ncommand = 'x'",
}


def configuration(text: str, name: str = "mcp-gateway.toml") -> ConfigurationText:
    return ConfigurationText(text, Path("/etc") / name)


def comments(text: str) -> list[str]:
    return [line[line.index("#") :] for line in text.splitlines() if "#" in line]


@pytest.mark.parametrize(
    "text", [*TEXTS.values(), "", HEAD + EXAMPLE, "[gateway]\nname = 'x'\n"], ids=[*TEXTS, *range(3)]
)
@pytest.mark.parametrize(
    "change", [lambda text: text, lambda text: "\ufeff" + text.replace("\n", "\r\n")], ids=["LF", "CRLF"]
)
def test_one_more_upstream(text, change):
    added = configuration(change(text)).with_upstream("new", NEW)
    assert added.upstreams()["new"] == NEW
    rest = {name: one for name, one in added.upstreams().items() if name != "new"}
    assert rest == configuration(text).upstreams()
    assert comments(added.text) == comments(text)
    assert added.text.count("\r\n") in (0, added.text.count("\n"))
    lines = added.text.removeprefix("\ufeff").splitlines()
    assert all(line in lines for line in text.splitlines() if not line.startswith("upstreams = {"))


@pytest.mark.parametrize("text", TEXTS.values(), ids=TEXTS)
@pytest.mark.parametrize("name", ["a", "b"])
def test_one_upstream_less(text, name):
    left = configuration(text).without_upstream(name)
    before = tomllib.loads(text)
    del before["upstreams"][name]
    assert tomllib.loads(left.text) == before
    lost = set(comments(text)) - set(comments(left.text))
    assert all(name in comment.split() for comment in lost)
    assert f"# about {name}" not in left.text
    back = left.with_upstream(name, {"command": "y"})
    assert back.upstreams()[name] == {"command": "y"}


@pytest.mark.parametrize("text", TEXTS.values(), ids=TEXTS)
@pytest.mark.parametrize("name", ["a", "b"])
def test_switched_off_and_on_again(text, name):
    off = configuration(text).with_enabled(name, enabled=False)
    assert off.upstreams()[name]["enabled"] is False
    assert comments(off.text) == comments(text)
    assert off.with_enabled(name, enabled=False) is off
    on = off.with_enabled(name, enabled=True)
    assert on.upstreams()[name].get("enabled", True) is True
    assert comments(on.text) == comments(text)
    untouched = configuration(text)
    assert untouched.with_enabled(name, enabled=True) is untouched


def test_only_its_own_lines_change():
    text = TEXTS["tables"]
    off = configuration(text).with_enabled("a", enabled=False).text
    assert off == text.replace('tools.exclude = ["rm"]\n', 'tools.exclude = ["rm"]\nenabled = false\n')


def test_another_way_in_leaves_all_else_of_the_upstream():
    text = """\
[upstreams.linear]
url = "https://mcp.linear.app/mcp" # theirs
timeout = { call = 60 } # patience
headers.A = "b"

[upstreams.linear.tools]
exclude = ["rm"] # never

# about b
[upstreams.b]
command = "y"
"""
    way = {"command": "npx", "args": ["-y", "mcp-remote", "https://mcp.linear.app/mcp"]}
    changed = configuration(text).with_way_in("linear", {**way, "timeout": {"start": 180}})
    assert changed.upstreams()["linear"] == {**way, "timeout": {"call": 60}, "tools": {"exclude": ["rm"]}}
    assert comments(changed.text) == ["# patience", "# never", "# about b"]


@pytest.mark.parametrize("text", TEXTS.values(), ids=TEXTS)
def test_another_way_in_however_the_table_is_written(text):
    changed = configuration(text).with_way_in("b", NEW)
    assert changed.upstreams()["b"] == NEW
    assert changed.upstreams()["a"] == configuration(text).upstreams()["a"]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda one: one.with_upstream("a", NEW), "there is an upstream 'a' already (choose another name, or let"),
        (lambda one: one.with_upstream("a b", NEW), "'a b' cannot be the name of an upstream (a name is letters"),
        (lambda one: one.with_upstream("gateway", NEW), "the name 'gateway' is the gateway's own"),
        (
            lambda one: one.without_upstream("playwrigt"),
            "there is no upstream 'playwrigt' (did you mean 'playwright'? there are: a, playwright)",
        ),
        (lambda one: one.with_enabled("zzz", enabled=True), "there is no upstream 'zzz' (there are: a, playwright)"),
    ],
    ids=["taken", "not a name", "our own", "a typo", "unknown"],
)
@pytest.mark.parametrize("name", ["mcp-gateway.toml", "mcp.json"])
def test_what_cannot_be_done_says_why(change, message, name):
    servers = {"a": {"command": "x"}, "playwright": {"command": "x"}}
    text = json.dumps({"mcpServers": servers})
    if name.endswith(".toml"):
        text = "".join(f"[upstreams.{key}]\ncommand = 'x'\n" for key in servers)
    with pytest.raises(ConfigError) as caught:
        change(configuration(text, name))
    assert message in str(caught.value)


JSON = """\
{
  // what I use
  "mcpServers": {
    "my files": { "command": "x", "autoApprove": ["read"] }, // files
    "b": {
      "url": "http://x" /* b */
    }
  },
  "other": [1, 2]
}
"""


def test_a_json_configuration_is_edited_in_its_own_words(tmp_path):
    def loaded(one: ConfigurationText) -> dict:
        path = tmp_path / "mcp.json"
        path.write_text(one.text)
        return read_document(path)

    start = configuration(JSON, "mcp.json")
    assert list(start.upstreams()) == ["my-files", "b"]
    added = start.with_upstream("new", {"url": "https://x/mcp", "transport": "sse", "headers": {"A": "b"}})
    assert loaded(added)["mcpServers"]["new"] == {"type": "sse", "url": "https://x/mcp", "headers": {"A": "b"}}
    off = added.with_enabled("my-files", enabled=False)
    assert loaded(off)["mcpServers"]["my files"] == {"command": "x", "autoApprove": ["read"], "disabled": True}
    assert off.with_enabled("my-files", enabled=False) is off
    assert off.with_enabled("my-files", enabled=True).text == added.text
    other = added.with_way_in("b", {"command": "y", "args": ["z"]})
    assert loaded(other)["mcpServers"]["b"] == {"command": "y", "args": ["z"]}
    gone = added.without_upstream("my-files")
    assert list(loaded(gone)["mcpServers"]) == ["b", "new"]
    for one in (added, off, gone):
        assert "// what I use" in one.text
        assert '"other": [1, 2]' in one.text


def test_a_vscode_file_says_the_type_of_each():
    added = configuration('{"servers": {}}', "mcp.json").with_upstream("new", NEW)
    assert json.loads(added.text)["servers"]["new"]["type"] == "stdio"


def test_a_malformed_text_is_not_touched():
    with pytest.raises(ConfigError, match="is not TOML"):
        configuration("[upstreams.a\n").with_enabled("a", enabled=False)


@pytest.mark.parametrize("kind", TEXTS)
def test_tools_are_chosen_where_they_are_written(kind: str) -> None:
    text = configuration(TEXTS[kind])
    before = text.upstreams()["a"].get("tools", {})
    changed = text.with_tools("a", ["*"], ["rm", "x[*]"])
    assert changed.upstreams()["a"]["tools"] == {**before, "exclude": ["rm", "x[*]"]}
    assert {**changed.upstreams()["a"], "tools": before or None} == {**text.upstreams()["a"], "tools": before or None}
    assert changed.upstreams()["b"] == text.upstreams()["b"]
    assert [line for line in TEXTS[kind].splitlines() if "#" in line and line not in changed.text.splitlines()] == [
        line for line in TEXTS[kind].splitlines() if kind in ("inline", "header") and "a = {" in line
    ]
    assert changed.with_tools("a", ["*"], ["rm", "x[*]"]) is changed
    assert changed.with_tools("a", ["y"], []).upstreams()["a"]["tools"]["include"] == ["y"]


def test_tools_with_tables_of_their_own_keep_them() -> None:
    text = "[upstreams.a]\ncommand = 'x'\n\n[upstreams.a.tools.show.content]\npath = 'image' # mine\n"
    changed = configuration(text).with_tools("a", ["*"], ["rm"])
    assert "path = 'image' # mine" in changed.text
    assert changed.upstreams()["a"]["tools"] == {"show": {"content": {"path": "image"}}, "exclude": ["rm"]}
    again = changed.with_tools("a", ["show"], ["rm"])
    assert again.upstreams()["a"]["tools"]["include"] == ["show"]


def test_tools_cannot_be_chosen_in_the_format_of_another_program() -> None:
    text = configuration('{"mcpServers": {"a": {"command": "x"}}}', "mcp.json")
    with pytest.raises(ConfigError, match="chooses no tools"):
        text.with_tools("a", ["*"], ["rm"])
    with pytest.raises(ConfigError, match="no upstream 'nobody'"):
        configuration("").with_tools("nobody", ["*"], [])


TOOLSETS = {
    "tables": "# mine\n[toolsets.work] # for work\nupstreams = ['git'] # whole\n"
    "tools = [\n  'a__x', # one\n  'a__y',\n]\n# end\n",
    "inline": "toolsets = { work = { upstreams = ['git'], tools = ['a__x', 'a__y'] } } # all\n# end\n",
    "header": "[toolsets]\nwork = { upstreams = ['git'], tools = ['a__x', 'a__y'] } # all\n# end\n",
}


@pytest.mark.parametrize("kind", TOOLSETS)
def test_a_toolset_is_changed_where_it_is_written(kind: str) -> None:
    text = configuration(TOOLSETS[kind])
    changed = text.with_toolset("work", {"upstreams": [], "tools": ["a__x", "b__z"], "exclude": ["a__q"]})
    data = tomllib.loads(changed.text)
    assert data["toolsets"] == {"work": {"tools": ["a__x", "b__z"], "exclude": ["a__q"]}}
    assert changed.text.endswith("# end\n") or kind == "tables"
    assert all(line in changed.text for line in ("# end", "# one" if kind == "tables" else "# all"))
    assert changed.with_toolset("work", {"tools": ["a__x", "b__z"], "exclude": ["a__q"]}) is changed
    assert tomllib.loads(changed.with_toolset("play", {"upstreams": ["games"]}).text)["toolsets"]["play"] == {
        "upstreams": ["games"]
    }
    assert "work" not in tomllib.loads(text.without_toolset("work").text).get("toolsets", {})


def test_a_toolset_that_somebody_is_given_stays() -> None:
    given = "[toolsets.work]\nupstreams = ['git']\n[access.authorization_server.oidc]\ntoolset = 'work'\n"
    with pytest.raises(ConfigError, match=r"access\.authorization_server\.oidc\.toolset: names the toolset 'work'"):
        configuration(given).without_toolset("work")
    with pytest.raises(ConfigError, match="there is no toolset 'wrok'"):
        configuration(given).without_toolset("wrok")
    with pytest.raises(ConfigError, match="another program's format"):
        configuration("{}", "servers.json").with_toolset("work", {"upstreams": ["git"]})
