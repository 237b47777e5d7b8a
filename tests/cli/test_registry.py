"""`mcp-gateway search`, `add` of a server of the registry, and `update`: with a registry on the loopback."""

import json
import os
import sys
import tomllib
from pathlib import Path

import keyring
import pytest
import typer
from keyring.backends import fail

from tests.keyring_file import FileKeyring
from tests.servers.registry_server import running_registry

MEDIA = Path(__file__).parents[1] / "servers" / "media_stdio.py"
WEATHER = "io.github.acme/mcp-weather"
UNITS = {"type": "named", "name": "--units", "choices": ["metric", "imperial"], "isRequired": True}
KEY = {"name": "WEATHER_KEY", "description": "From \x1b[31mthe site", "isSecret": True, "isRequired": True}


def npm(version="1.0.0", arguments=(UNITS,), variables=(KEY, {"name": "LOG", "default": "info"}), **more):
    about = {"registryType": "npm", "identifier": "@acme/weather", "version": version, "transport": {"type": "stdio"}}
    return about | {"packageArguments": list(arguments), "environmentVariables": list(variables)} | more


@pytest.fixture
def registry():
    with running_registry() as one:
        yield one


@pytest.fixture
def config(registry, tmp_path, monkeypatch):
    """A configuration that names the registry, and nobody's keyring."""
    monkeypatch.setattr(keyring, "get_keyring", fail.Keyring)
    monkeypatch.setenv("MCP_GATEWAY_CACHE", str(tmp_path / "cache"))
    monkeypatch.delenv("WEATHER_KEY", raising=False)
    path = Path.cwd() / "mcp-gateway.toml"
    path.write_text(f'# mine\n[registry]\nurl = "{registry.base}"\ncache = 0\n')
    return path


@pytest.fixture
def ring(monkeypatch, tmp_path):
    """A keyring in a file."""
    monkeypatch.setenv("KEYRING_FILE", str(tmp_path / "ring.json"))
    monkeypatch.setattr(keyring, "get_keyring", FileKeyring)
    return tmp_path / "ring.json"


@pytest.fixture
def npx(monkeypatch, tmp_path):
    """An `npx` that installs nothing: whatever it is asked for is the server of media. What it got is in a file."""
    folder = tmp_path / "bin"
    folder.mkdir()
    program = folder / "npx"
    program.write_text(
        f"#!{sys.executable}\nimport json, os, sys\n"
        f"json.dump([sys.argv[1:], os.environ.get('WEATHER_KEY')], open({str(tmp_path / 'started')!r}, 'w'))\n"
        f"os.execv(sys.executable, [sys.executable, {str(MEDIA)!r}])\n"
    )
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{folder}{os.pathsep}{os.environ['PATH']}")
    return tmp_path / "started"


def upstreams(path):
    return tomllib.loads(path.read_text()).get("upstreams", {})


def test_what_is_found_is_shown_without_what_a_terminal_obeys(command, registry, config):
    registry.add(WEATHER, title="Weather", description="for \x1b[31magents\u202e", packages=[npm()])
    registry.add("com.example/weather-remote", "2.0", remotes=[{"type": "sse", "url": "https://a.example/sse"}])
    registry.add("com.example/weather-bundle", "3.0", packages=[npm(registryType="mcpb")])
    registry.add("com.example/weather-old", "3.0", status="deprecated")
    ended = command("search", "weather")
    assert (ended.code, ended.err) == (0, "")
    assert "\x1b" not in ended.out
    assert "\u202e" not in ended.out
    rows = {line.split()[0]: " ".join(line.split()) for line in ended.out.splitlines()}
    assert rows[WEATHER] == f"{WEATHER} 1.0.0 npx Weather: for [31magents"
    assert rows["com.example/weather-remote"].split()[1:3] == ["2.0", "url"]
    assert rows["com.example/weather-bundle"].split()[1:3] == ["3.0", "(mcpb)"]
    assert "com.example/weather-old" not in rows
    found = command("search", "WEATHER", "acme", "--json").json()
    assert [(one["name"], one["runs_with"], one["status"]) for one in found["servers"]] == [
        (WEATHER, ["npx"], "active")
    ]
    assert found["complete"] is True
    assert command("search", "nothing-such").out == "no server was found\n"
    assert "there may be more" in command("search", "weather", "--limit", "1").err


def test_a_registry_that_is_away_is_one_line_or_its_last_answer(command, registry, config):
    registry.add(WEATHER, packages=[npm()])
    registry.status(503)
    ended = command("search", "weather")
    assert (ended.code, ended.out) == (1, "")
    assert f"error: the registry {registry.base} answers with HTTP 503 (try again later" in ended.err
    registry.answer = None
    command("search", "weather")
    registry.status(500)
    ended = command("search", "weather")
    assert WEATHER in ended.out
    assert ended.err == "the registry does not answer: this is what it said less than a minute ago\n"


def test_a_server_is_added_started_and_judged_for_the_installed_hosts(command, registry, config, npx):
    (Path(os.environ["HOME"]) / ".claude.json").write_text("{}")
    registry.add(WEATHER, repository={"url": "https://github.com/acme/w", "source": "github"}, packages=[npm()])
    ended = command("add", WEATHER, "--yes", "--set", "units=metric", "--set", "WEATHER_KEY=open-sesame-1")
    assert ended.code == 0, ended.err
    assert "  from      npm package @acme/weather 1.0.0\n  source    https://github.com/acme/w\n" in ended.out
    assert "  command   npx -y @acme/weather@1.0.0 --units metric\n" in ended.out
    assert "open-sesame-1" not in ended.out + ended.err + config.read_text()
    assert "weather gets its secret from the variable WEATHER_KEY" in ended.err
    assert "what your hosts (Claude Code) will see of it:" in ended.out
    assert "shown or kept" in ended.out
    assert json.loads(npx.read_text()) == [["-y", "@acme/weather@1.0.0", "--units", "metric"], "open-sesame-1"]
    assert upstreams(config)["weather"] == {
        "command": "npx",
        "args": ["-y", "@acme/weather@1.0.0", "--units", "metric"],
        "env": {"WEATHER_KEY": "${WEATHER_KEY}", "LOG": "info"},
        "registry": f"{WEATHER}@1.0.0",
    }
    again = command("add", WEATHER, "--yes")
    assert "weather is this server already (`mcp-gateway update weather` looks for a newer version" in again.err
    assert command("remove", "weather").code == 0
    assert upstreams(config) == {}


def test_secrets_go_into_the_keyring_where_there_is_one(command, registry, config, ring):
    registry.add(WEATHER, packages=[npm()])
    words = ("add", WEATHER, "--yes", "--no-check", "--set", "units=metric", "--set", "WEATHER_KEY=open-sesame-1")
    ended = command(*words, "--as", "rain", "--pin")
    assert (ended.code, ended.err.count("secret")) == (0, 0)
    assert json.loads(ring.read_text()) == {"mcp-gateway/rain-WEATHER_KEY": "open-sesame-1"}
    assert upstreams(config)["rain"]["env"]["WEATHER_KEY"] == "${keyring:rain-WEATHER_KEY}"
    assert upstreams(config)["rain"]["pins"] == "hold"
    reference = ("--set", "WEATHER_KEY=${keyring:mine}", "--as", "two")
    assert command("add", WEATHER, "--yes", "--no-check", "--set", "units=metric", *reference).code == 0
    assert upstreams(config)["two"]["env"]["WEATHER_KEY"] == "${keyring:mine}"
    ring.write_text("locked")
    ended = command(*words, "--as", "three")
    assert (ended.code, "three" in upstreams(config)) == (2, False)
    assert "cannot be stored" in ended.err


def test_somebody_at_a_terminal_is_asked_for_what_is_needed(command, registry, config, monkeypatch):
    remote = {"type": "streamable-http", "url": "https://a.example/mcp"}
    folders = {"type": "positional", "valueHint": "folder", "isRequired": True, "isRepeated": True}
    registry.add(WEATHER, packages=[npm(arguments=[UNITS, folders])], remotes=[remote])
    answers = {"Which": [7, 1], "WEATHER_KEY": ["", "hidden-1"], "units": ["kelvin", "metric"]}
    answers["folder"] = ["/a", "/b", ""]
    hidden = []

    def prompt(question, hide_input=False, **_):
        assert "\x1b" not in question
        name = question.split()[0].rstrip(",")
        hidden.extend([name] if hide_input else [])
        return answers[name].pop(0)

    confirmed = []
    monkeypatch.setattr("sys.stdin.isatty", lambda: True, raising=False)
    monkeypatch.setattr(typer, "prompt", prompt)
    monkeypatch.setattr(typer, "confirm", lambda question, **_: confirmed.append(question) or len(confirmed) > 1)
    ended = command("add", WEATHER, "--no-check")
    assert (ended.code, upstreams(config)) == (0, {})
    answers |= {"Which": [1], "WEATHER_KEY": ["hidden-1"], "units": ["metric"], "folder": ["/a", "/b", ""]}
    ended = command("add", WEATHER, "--no-check")
    assert confirmed[-1] == f"Add it to {config} as weather?"
    assert set(hidden) == {"WEATHER_KEY"}
    assert upstreams(config)["weather"]["args"][2:] == ["--units", "metric", "/a", "/b"]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--yes"], "values are missing: WEATHER_KEY, units (give each: --set WEATHER_KEY=VALUE"),
        (["--set", "units=metric", "--set", "WEATHER_KEY=x"], "nobody can be asked here: --yes adds it"),
        (["--yes", "--set", "units=kelvin"], "units: it must be one of metric, imperial"),
        (["--yes", "--set", "unit=metric"], "this server takes no value called 'unit' (did you mean 'units'?"),
        (["--yes", "--set", "units=metric", "--set", "units=imperial"], "units takes one value"),
        (["--yes", "--set", "units"], "give it as --set NAME=VALUE"),
        (["--yes", "--set", "WEATHER_KEY=a\nb"], "WEATHER_KEY: it must be one line"),
        (["--yes", "--via", "pypi"], "is not offered via pypi (there are: npm)"),
        (["--yes", "--env", "A=b"], "are not for servers of the registry: use --set"),
        (["--yes", "--replace"], "--replace needs to know which server"),
    ],
    ids=str,
)
def test_what_cannot_be_added_is_one_line_and_nothing_is_written(command, registry, config, words, message):
    registry.add(WEATHER, packages=[npm()])
    before = config.read_bytes()
    ended = command("add", WEATHER, *words)
    assert ended.code == 2
    assert message in ended.err
    assert config.read_bytes() == before


def test_what_the_registry_does_not_have_or_has_withdrawn(command, registry, config):
    assert "the registry has no server 'com.example/none'" in command("add", "com.example/none", "--yes").err
    gone = registry.add(WEATHER, status="deleted", packages=[npm()])
    gone["_meta"]["io.modelcontextprotocol.registry/official"]["statusMessage"] = "it was \x1b[31mmalware"
    ended = command("add", WEATHER, "--yes")
    assert ended.code == 2
    assert ended.err == f"error: {WEATHER}@1.0.0 was withdrawn from the registry: it was [31mmalware\n"
    registry.add("com.example/old", status="deprecated", remotes=[{"type": "sse", "url": "https://a.example/sse"}])
    ended = command("add", "com.example/old", "--yes", "--no-check")
    assert (ended.code, upstreams(config)["old"]["url"]) == (0, "https://a.example/sse")
    assert "warning: com.example/old@1.0.0 is deprecated" in ended.err
    registry.add("com.example/bundle", packages=[npm(registryType="mcpb", fileSha256="a" * 64)])
    ended = command("add", "com.example/bundle", "--yes")
    assert f"a bundle to be opened by a desktop program (SHA-256 {'a' * 64}), which the gateway" in ended.err


def test_what_is_run_is_shown_in_full_and_with_what_to_look_at(command, registry, config):
    words = [{"type": "positional", "value": f"word-{number}"} for number in range(99)]
    last = {"type": "positional", "value": "--last; rm -rf ${HOME}"}
    where = {"name": "npm_config_registry", "value": "https://elsewhere.example"}
    registry.add(WEATHER, packages=[npm(arguments=[*words, last], variables=[where])])
    ended = command("add", WEATHER, "--yes", "--no-check")
    assert ended.code == 0
    assert "word-98 '--last; rm -rf $${HOME}'\n" in ended.out
    assert "  careful   the variable npm_config_registry steers npx itself, or any program\n" in ended.out


def test_a_json_configuration_cannot_keep_a_version(command, registry, config, tmp_path):
    registry.add(WEATHER, packages=[npm()])
    other = tmp_path / "mcp.json"
    other.write_text('{"mcpServers": {}}')
    ended = command("add", WEATHER, "--yes", "--config", other)
    assert (ended.code, "has another program's format" in ended.err) == (2, True)
    assert other.read_text() == '{"mcpServers": {}}'


def test_options_of_the_registry_are_not_for_others(command, config):
    ended = command("add", "x", "--via", "npm", "--", "y")
    assert "--via, --set, --as and --keyring are for servers of the registry" in ended.err


def test_a_server_that_cannot_be_started_is_said_after_it_was_added(command, registry, config):
    url = "http://127.0.0.1:9/mcp"
    registry.add("com.example/away", remotes=[{"type": "streamable-http", "url": url}])
    ended = command("add", "com.example/away", "--yes")
    assert ended.code == 3
    assert "error: upstream 'away': connection refused" in ended.err
    assert upstreams(config)["away"] == {"url": url, "transport": "http", "registry": "com.example/away@1.0.0"}


CHANGED = """\
# mine
[upstreams.weather]  # the weather
command = "npx"
args = [
    "-y",
    "@acme/weather@1.0.0",  # pinned
    "--units", "metric", "--mine",
]
registry = "io.github.acme/mcp-weather@1.0.0"
pins = "hold"

[upstreams.weather.env]
# from the site
WEATHER_KEY = "${WEATHER_KEY:-none}"
LOG = "debug"  # more
OWN = "1"
"""


def with_table(config):
    config.write_text(config.read_text() + CHANGED)


def test_an_update_keeps_comments_and_the_users_own_changes(command, registry, config):
    with_table(config)
    config.write_text(config.read_text().replace('"npx"', '"/usr/bin/npx"'))
    registry.add(WEATHER, packages=[npm()])
    assert command("update").out == "nothing is newer\n"
    newer = [KEY, {"name": "LOG", "default": "warn"}, {"name": "REGION", "default": "eu"}]
    registry.add(WEATHER, "1.1.0", packages=[npm("1.1.0", variables=newer)])
    before = config.read_text()
    shown = command("update", "--dry-run")
    assert "weather: 1.0.0 -> 1.1.0" in shown.out
    assert '-    "@acme/weather@1.0.0",  # pinned' in shown.out
    assert config.read_text() == before
    refused = command("update", "weather")
    assert (refused.code, config.read_text()) == (2, before)
    ended = command("update", "weather", "--yes")
    assert ended.code == 0, ended.err
    after = before.replace("1.0.0", "1.1.0").replace('OWN = "1"\n', 'OWN = "1"\nREGION = "eu"\n')
    assert config.read_text() == after
    assert f"{config}: weather is {WEATHER}@1.1.0 now" in ended.out
    assert command("update", "--yes").out == "nothing is newer\n"


def test_an_update_asks_for_what_is_new_and_says_what_it_leaves(command, registry, config):
    with_table(config)
    registry.add(WEATHER, packages=[npm(arguments=[UNITS, {"type": "positional", "value": "old"}])])
    token = {"name": "TOKEN", "isRequired": True}
    registry.add(
        WEATHER, "2.0.0", packages=[npm("2.0.0", [UNITS, {"type": "positional", "value": "new"}], [KEY, token])]
    )
    assert "values are missing: TOKEN" in command("update", "--yes").err
    ended = command("update", "--yes", "--set", "TOKEN=t")
    assert "weather: args has changed in the registry and here: yours stays" in ended.err
    table = upstreams(config)["weather"]
    assert table["args"] == ["-y", "@acme/weather@2.0.0", "--units", "metric", "--mine"]
    assert table["env"] == {"WEATHER_KEY": "${WEATHER_KEY:-none}", "OWN": "1", "TOKEN": "t"}


def test_what_cannot_be_updated_is_said_and_the_others_are(command, registry, config):
    with_table(config)
    config.write_text(
        config.read_text()
        + '\n[upstreams.gone]\nurl = "https://a.example/mcp"\nregistry = "com.example/gone@1.0.0"\n'
        + '\n[upstreams.other]\nurl = "https://a.example/mcp"\n'
    )
    registry.add(WEATHER, packages=[npm()])
    registry.add(WEATHER, "1.0.1", packages=[npm("1.0.1")])
    ended = command("update", "--yes")
    assert (ended.code, "error: gone: the registry has no server" in ended.err) == (1, True)
    assert upstreams(config)["weather"]["registry"] == f"{WEATHER}@1.0.1"
    assert "other was not added from the registry" in command("update", "other").err
    assert "there is no upstream 'weatherr'" in command("update", "weatherr").err
    registry.add(WEATHER, "3.0.0", remotes=[{"type": "sse", "url": "https://a.example/sse"}])
    ended = command("update", "weather", "--yes")
    assert "does not offer npm @acme/weather any more (`mcp-gateway add" in ended.err


def test_without_servers_of_the_registry_there_is_nothing_to_update(command, config):
    ended = command("update")
    assert (ended.code, ended.out.startswith("no server was added from the registry")) == (0, True)
