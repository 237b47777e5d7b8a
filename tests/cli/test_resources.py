"""`mcp-gateway resources`: what a host is offered besides tools."""

import json
import sys
from pathlib import Path

import pytest

SERVERS = Path(__file__).parents[1] / "servers"
SERVER = SERVERS / "lists_stdio.py"


@pytest.fixture
def config(tmp_path):
    """A configuration with a server of resources, a template and a prompt, one that cannot be started, and a token."""
    path = tmp_path / "mcp-gateway.toml"
    path.write_text(
        f"[upstreams.lists]\ncommand = {json.dumps(sys.executable)}\nargs = [{json.dumps(str(SERVER))}]\n"
        f'[access.tokens.bob]\nhash = "sha256:{1:064x}"\nupstreams = ["other"]\n'
    )
    return path


def test_resources_templates_and_prompts_are_listed(command, config):
    ended = command("resources", "--config", config)
    assert (ended.code, ended.err) == (0, "")
    for words in ("memo://one", "The first; text/plain; A memo.", "memo://{name}", "summarise", "Summarises a memo."):
        assert words in ended.out
    assert "second line" not in ended.out
    assert "\x1b" not in ended.out
    listed = command("resources", "--config", config, "--json").json()
    assert [each["uri"] for each in listed["resources"]] == ["memo://one"]
    assert [each["uriTemplate"] for each in listed["templates"]] == ["memo://{name}"]
    assert [each["name"] for each in listed["prompts"] if "gateway" not in each["name"]] == ["lists__summarise"]


def test_what_a_token_does_not_reach_is_not_listed(command, config):
    ended = command("resources", "--token", "bob", "--config", config)
    assert (ended.code, ended.out) == (0, "")
    assert "there are no resources, templates, prompts or skills" in ended.err


def test_of_named_upstreams_only_what_they_have_is_listed_and_no_other_is_started(command, config):
    config.write_text(config.read_text() + '[upstreams.broken]\ncommand = "/no/such/program"\n')
    assert command("resources", "--config", config).code == 3
    ended = command("resources", "lists", "--config", config)
    assert (ended.code, ended.err) == (0, "")
    assert "memo://one" in ended.out
    unknown = command("resources", "list", "--config", config)
    assert unknown.code == 2
    assert "did you mean 'lists'?" in unknown.err


def test_what_a_server_has_for_hosts_that_show_pages_alone_is_listed_for_one(command, tmp_path):
    arguments = json.dumps([str(SERVERS / "raw_stdio.py"), "apps", "apps-if-declared", "listed-pages"])
    config = tmp_path / "gateway.toml"
    config.write_text(f"[upstreams.raw]\ncommand = {json.dumps(sys.executable)}\nargs = {arguments}\n")
    assert "ui://raw/raw/board" not in command("resources", "--config", config).out
    assert "ui://raw/raw/board" in command("resources", "--config", config, "--app").out


def test_an_upstream_that_is_away_is_named(command, config):
    config.write_text(config.read_text() + '[upstreams.gone]\ncommand = "no-such-program-anywhere"\n')
    ended = command("resources", "--config", config)
    assert "memo://one" in ended.out
    assert ended.code == 3
    assert "upstream gone: failed: " in ended.err


@pytest.mark.parametrize(
    ("words", "complaint"), [(("--profile", "all"), "takes one name here"), (("--token", "x"), "no token")]
)
def test_what_cannot_be_asked_is_an_error(command, config, words, complaint):
    ended = command("resources", *words, "--config", config)
    assert (ended.code, ended.out) == (2, "")
    assert complaint in ended.err
