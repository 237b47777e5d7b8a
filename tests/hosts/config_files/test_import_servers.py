"""Servers put behind the gateway: names, twins, and a file that says exactly what was there."""

import tomllib

import pytest

from gateway.config.load_settings import load_settings
from gateway.errors import ConfigError
from gateway.hosts.config_files.hosts import HOSTS
from gateway.hosts.config_files.import_servers import plan_import
from gateway.hosts.config_files.servers import Server, read_servers
from gateway.hosts.config_files.starter_config import HEAD


def server(name, upstream, host="Cursor", **more):
    return Server(name, host, "/home/me/x.json", upstream=upstream, **more)


def outcome(plan):
    return [(row.server.name, row.what, row.upstream) for row in plan.rows]


def test_every_hosts_servers_together_are_a_configuration_that_loads(sample, at, tmp_path):
    servers = [server for name in HOSTS for server in read_servers(sample(name), HOSTS[name], at())]
    plan = plan_import(servers, HEAD, "x.toml")
    file = tmp_path / "mcp-gateway.toml"
    file.write_text(plan.text, "utf-8")
    settings = load_settings(file, environ={}).settings
    assert list(settings.upstreams) == [row.upstream for row in plan.new]
    assert settings.upstreams["filesystem"].args[-1] == "${HOME}/literal"
    assert settings.upstreams["my-notes"].command == "/opt/notes/bin/notes-mcp"
    assert settings.upstreams["hf-mcp-server"].headers == {"Authorization": "Bearer hf_${not}_replaced"}
    assert settings.upstreams["github"].url == "https://api.githubcopilot.com/mcp/"
    off = {row.upstream for row in plan.new if row.server.upstream.get("enabled") is False}
    assert {name for name, one in settings.upstreams.items() if not one.enabled} == off
    assert {"Perplexity", "figma", "new-form", "figma-2", "harbour-db", "company"} <= off


def test_equal_servers_are_one_and_equal_names_are_two():
    plan = plan_import(
        [
            server("a", {"command": "x", "enabled": False}),
            server("A2", {"command": "x", "args": [], "timeout": {"call": 5.0}}, "Zed"),
            server("a", {"command": "y"}, "Codex"),
            server("gateway", {"command": "z"}),
            server("it", None, obstacle="no"),
            server("g", None, own=True),
        ],
        "",
        "x.toml",
    )
    assert outcome(plan) == [
        ("a", "new", "a"),
        ("A2", "twin", "a"),
        ("a", "new", "a-2"),
        ("gateway", "new", "gateway-2"),
        ("it", "unusable", None),
        ("g", "own", None),
    ]
    assert tomllib.loads(plan.text)["upstreams"]["a"] == {"command": "x"}  # one of the twins is enabled


def test_importing_twice_adds_nothing_and_touches_no_character():
    servers = [server("a", {"command": "x", "env": {"K": "$${v}\x7f\u00e9\n"}}), server("b", {"url": "http://b/mcp"})]
    once = plan_import(servers, "# mine\n[gateway]\r\n", "x.toml")
    assert once.text.startswith("# mine\n[gateway]\r\n")
    assert tomllib.loads(once.text)["upstreams"]["a"]["env"] == {"K": "$${v}\x7f\u00e9\n"}
    twice = plan_import(servers, once.text, "x.toml")
    assert outcome(twice) == [("a", "known", "a"), ("b", "known", "b")]
    assert twice.text == once.text


def test_comments_say_where_an_upstream_comes_from_and_cannot_break_the_file():
    plan = plan_import([server("a", {"command": "x"}, remarks=("left:\n[http]\nbind='0'",))], "", "x.toml")
    assert plan.text.splitlines()[:2] == ["# from Cursor: /home/me/x.json", "# left: [http] bind='0'"]
    assert set(tomllib.loads(plan.text)) == {"upstreams"}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("x = ", "x.toml: is not TOML: "),
        ("upstreams = {}\n", "x.toml: nothing can be added to its upstreams as they are written"),
        ("upstreams = 1\n", "x.toml: upstreams: must be a table"),
    ],
)
def test_a_file_that_nothing_can_be_added_to_is_refused(text, message):
    with pytest.raises(ConfigError, match=message):
        plan_import([server("a", {"command": "x"})], text, "x.toml")
