"""Other programs' JSON files: what is taken from them, and where their mistakes are said to be."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import TypeAdapter

from gateway.config.foreign import upstream_name
from gateway.config.load_settings import load_settings
from gateway.config.schema import Settings
from gateway.errors import ConfigError


def load(tmp_path, document, environ=None):
    path = tmp_path / "mcp.json"
    path.write_text(document if isinstance(document, str) else json.dumps(document), encoding="utf-8")
    return load_settings(path, environ=environ or {}).settings


def failure(tmp_path, document) -> str:
    with pytest.raises(ConfigError) as caught:
        load(tmp_path, document)
    return str(caught.value).replace(str(tmp_path / "mcp.json"), "FILE")


def upstream(tmp_path, **fields):
    return load(tmp_path, {"mcpServers": {"a": fields}}, {"KEY": "value"}).upstreams["a"]


def test_a_claude_desktop_file_is_read(tmp_path):
    settings = load(
        tmp_path,
        {
            "globalShortcut": "Ctrl+Space",
            "mcpServers": {
                "files": {"command": "npx", "args": ["-y", "server", "/data"], "env": {"A": "1", "PORT": 8080}},
            },
        },
    )
    files = settings.upstreams["files"]
    assert (files.command, files.args, files.env) == ("npx", ("-y", "server", "/data"), {"A": "1", "PORT": "8080"})


def test_vs_codes_files_are_read_with_comments_and_trailing_commas(tmp_path):
    text = """
    {
      // the servers
      "servers": {
        "web": {"type": "http", "url": "https://example.com/mcp", "headers": {"X": "http://not-a-comment"}, },
        /* and one
           more */
        "old": {"type": "sse", "url": "https://example.com/sse"},
      },
    }
    """
    upstreams = load(tmp_path, text).upstreams
    assert [(one.url, one.transport) for one in upstreams.values()] == [
        ("https://example.com/mcp", "http"),
        ("https://example.com/sse", "sse"),
    ]
    assert upstreams["web"].headers == {"X": "http://not-a-comment"}
    settings = {"editor.fontSize": 14, "mcp": {"servers": {"a": {"command": "x"}}}}
    assert list(load(tmp_path, settings).upstreams) == ["a"]


@pytest.mark.parametrize(
    ("fields", "url", "transport"),
    [
        ({"url": "http://x"}, "http://x", "auto"),
        ({"serverUrl": "http://x"}, "http://x", "auto"),
        ({"httpUrl": "http://x"}, "http://x", "http"),
        ({"url": "http://x", "type": "streamableHttp"}, "http://x", "http"),
        ({"url": "http://x", "transport": "streamable-http"}, "http://x", "http"),
        ({"url": "http://x", "transport": "sse"}, "http://x", "sse"),
    ],
)
def test_every_way_to_write_an_address_is_understood(tmp_path, fields, url, transport):
    found = upstream(tmp_path, **fields)
    assert (found.url, found.transport) == (url, transport)


def test_what_only_another_host_understands_is_left_out(tmp_path):
    found = upstream(tmp_path, type="stdio", command="x", alwaysAllow=["a"], timeout=60, trust=True, cwd=None)
    assert (found.command, found.transport, found.cwd) == ("x", "stdio", None)


def test_a_server_that_is_disabled_there_is_not_enabled_here(tmp_path):
    assert not upstream(tmp_path, command="x", disabled=True, env={"A": "${UNSET}"}).enabled
    assert upstream(tmp_path, command="x", disabled=False).enabled


def test_values_are_expanded_and_paths_are_relative_to_the_file(tmp_path):
    found = upstream(tmp_path, command="./run", cwd="work", env={"A": "${KEY}", "B": "${env:KEY}"})
    assert (found.command, found.cwd) == (str(tmp_path / "run"), tmp_path / "work")
    assert found.env == {"A": "value", "B": "value"}


def test_names_are_made_valid_and_unique(tmp_path):
    servers = {
        name: {"command": "x"} for name in ("GitHub MCP", "GitHub.MCP", "@scope/server", "a__b", "日本", "x" * 60)
    }
    assert list(load(tmp_path, {"mcpServers": servers}).upstreams) == [
        "GitHub-MCP",
        "GitHub-MCP-2",
        "scope-server",
        "a-b",
        "upstream",
        "x" * 40,
    ]


@given(st.text(alphabet="aB9-_ ./@é\x1b", max_size=60), st.integers(0, 3))
def test_any_text_becomes_a_valid_name_that_is_not_taken(text, times):
    taken: list[str] = []
    for _ in range(times + 1):
        name = upstream_name(text, taken)
        assert name not in taken
        taken.append(name)
    upstreams = Settings.model_fields["upstreams"]
    valid = {name: {"command": "x"} for name in taken}
    kind: Any = upstreams.annotation
    assert list(TypeAdapter(kind).validate_python(valid)) == taken


@pytest.mark.parametrize(
    ("document", "message"),
    [
        (
            {"upstreams": {}},
            "FILE: has neither mcpServers nor servers "
            "(a JSON file is read as other hosts write it; our own settings go into TOML)",
        ),
        ({"mcpServers": []}, "FILE: mcpServers: must be an object of servers"),
        ({"mcpServers": {"a": "x"}}, "FILE: mcpServers.a: must be an object"),
        (
            {"mcpServers": {"my server": {}}},
            'FILE: mcpServers."my server": give either command (a program to start) or url (a server to connect to)',
        ),
        (
            {"mcpServers": {"a": {"command": "x", "httpUrl": "http://y"}}},
            "FILE: mcpServers.a: give either command (a program to start) or url (a server to connect to)",
        ),
        ({"servers": {"a": {"httpUrl": 3}}}, "FILE: servers.a.httpUrl: must be text in quotes"),
        (
            {"servers": {"a": {"url": "http://x", "type": "websocket"}}},
            "FILE: servers.a.type: must be 'stdio', 'http' or 'sse'",
        ),
        (
            {"mcpServers": {"a": {"url": "http://x", "serverUrl": "http://y"}}},
            "FILE: mcpServers.a.serverUrl: a second address beside url (leave one)",
        ),
        (
            {"mcpServers": {"a b": {"serverUrl": "${NO}"}}},
            'FILE: mcpServers."a b".serverUrl: the environment variable NO is not set '
            "(set it, or write ${NO:-default})\n"
            'FILE: mcpServers."a b": url must begin with http:// or https://',
        ),
        ("[]", "FILE: is not a JSON object"),
        ('{"a": 1,\n "b" 2}', "FILE:2:6: is not JSON: a colon is expected here"),
        ('// one\n{"a": }', "FILE:2:7: is not JSON: a value is expected here"),
        ('{"mcpServers": {"a": {}, "a": {}}}', "FILE:1:26: is not JSON: the key 'a' occurs twice in one object"),
        ('/**/{"mcpServers": {"a": {}, "a": {}}}', "FILE:1:30: is not JSON: the key 'a' occurs twice in one object"),
        ("// nothing yet", "FILE:1:15: is not JSON: a value is expected here"),
    ],
)
def test_what_is_wrong_is_said_in_the_words_of_the_file(tmp_path, document, message):
    assert failure(tmp_path, document) == message
