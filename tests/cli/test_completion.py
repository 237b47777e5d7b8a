"""What a shell offers for names of servers and tools, and the script that it is given, under both of the names."""

import os
import shutil
import subprocess
import sys
from dataclasses import replace
from typing import Any

import pytest
import typer

from gateway.cli.app import NAMES, application
from gateway.config.load_settings import load_settings
from gateway.upstream import Catalogues
from gateway.upstream.catalogues import RememberedLists

CONFIG = """
[upstreams.docs]
command = "docs-server"

[upstreams.Tickets]
url = "http://127.0.0.1:9/mcp"
tools = { exclude = ["erase*"], rename = { find = "search" } }

[upstreams.dormant]
command = "dormant-server"
enabled = false
"""
CALL = ("call", "tool")


@pytest.fixture
def config(tmp_path, monkeypatch):
    """The configuration that is found without being named, in the folder where the test stands."""
    monkeypatch.setenv("MCP_GATEWAY_CACHE", str(tmp_path / "cache"))
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "mcp-gateway.toml"
    path.write_text(CONFIG, "utf-8")
    return path


@pytest.fixture
def kept(config, tmp_path):
    """Keep lists of tools: `kept("docs", "search", ...)`, as a gateway does that has reached the server."""

    def keep(name, *tools, **more):
        lists = tuple({"name": tool, "inputSchema": {"type": "object"}} for tool in tools)
        settings = load_settings(config, reads_secrets=False).settings.upstreams[name]
        Catalogues(tmp_path / "cache" / "catalogues").keep(settings, replace(RememberedLists(tools=lists), **more))

    return keep


def offered(words, parameter, incomplete="", *before):
    """What is offered for a parameter of a command, after other words on the line."""
    command: Any = typer.main.get_command(application())
    for word in words.split():
        command = command.commands[word]
    context = command.make_context(words, list(before), resilient_parsing=True)
    found = next(one for one in command.params if one.name == parameter)
    return [item.value for item in found.shell_complete(context, incomplete)]


PARAMETERS = [
    ("remove", "name"),
    ("enable", "name"),
    ("disable", "name"),
    ("login", "upstream"),
    ("logout", "upstream"),
    ("update", "name"),
    ("tools", "servers"),
    ("check", "server"),
    ("pins diff", "server"),
    ("pins approve", "server"),
]


@pytest.mark.parametrize(("words", "parameter"), PARAMETERS, ids=[words for words, _ in PARAMETERS])
def test_names_of_servers_are_those_of_the_file_in_force(config, tmp_path, words, parameter):
    assert offered(words, parameter) == ["docs", "Tickets", "dormant"]
    assert offered(words, parameter, "Ti") == ["Tickets"]
    other = tmp_path / "other.toml"
    other.write_text("[upstreams.elsewhere]\n")
    assert offered(words, parameter, "", "--config", str(other)) == ["elsewhere"]


def test_names_in_the_form_of_other_programs_are_offered_too(tmp_path):
    path = tmp_path / "servers.json"
    path.write_text('{"mcpServers": {"theirs": {"command": "x"}}}')
    assert offered("remove", "name", "", "--config", str(path)) == ["theirs"]


def test_tools_are_those_that_servers_listed_last_under_the_names_that_call_takes(kept):
    kept("docs", "read", "write")
    kept("Tickets", "find", "erase_all")
    assert offered(*CALL) == ["docs__read", "docs__write", "Tickets__search"]
    assert offered(*CALL, "docs__w") == ["docs__write"]
    assert offered(*CALL, "docs.r", "--profile", "no-such-profile") == []


def test_tools_of_a_login_and_of_servers_that_are_off_are_not_offered(kept, config):
    kept("docs", "mine", is_personal=True, of=("local", "docs"))
    kept("dormant", "asleep")
    assert offered(*CALL) == []


def test_no_secret_is_read_for_completion(kept, config, tmp_path):
    config.write_text(CONFIG + '[upstreams.secretive]\ncommand = "x"\nenv = { KEY = "${cmd:touch read}" }\n')
    kept("docs", "read")
    assert offered(*CALL) == ["docs__read"]
    assert offered("remove", "name", "s") == ["secretive"]
    assert not (tmp_path / "read").exists()


@pytest.mark.parametrize("text", ["[upstreams", "[[upstreams]]\n", "upstreams = 3\n", "\x00", None])
def test_a_file_that_cannot_be_used_offers_nothing_and_says_nothing(config, capfd, text):
    if text is None:
        config.unlink()
        config.mkdir()
    else:
        config.write_text(text)
    assert offered("remove", "name") == offered(*CALL) == []
    assert capfd.readouterr() == ("", "")


def test_a_file_with_a_mistake_still_offers_the_names_of_its_servers(config):
    config.write_text(CONFIG + "[gateway]\nprofil = 1\n")
    assert offered("remove", "name", "d") == ["docs", "dormant"]
    assert offered(*CALL) == []


def test_without_a_folder_for_lists_no_tool_is_offered(kept, monkeypatch):
    kept("docs", "read")
    monkeypatch.setenv("MCP_GATEWAY_CACHE", "")
    assert offered(*CALL) == []


@pytest.mark.skipif(shutil.which("bash") is None, reason="bash is not installed")
@pytest.mark.parametrize("name", NAMES)
def test_the_script_that_bash_is_given_completes_the_name_that_it_was_asked_for_by(config, tmp_path, name):
    """Sourced in a bash, as its own file by `--install-completion`, it offers the names of servers."""
    program = tmp_path / "bin" / name
    program.parent.mkdir()
    program.write_text(f"#!{sys.executable}\nimport sys\nfrom gateway.cli.main import main\nsys.exit(main())\n")
    program.chmod(0o755)
    environ = os.environ | {"PATH": f"{program.parent}{os.pathsep}{os.environ['PATH']}"}
    line = f"""
        eval "$(_TYPER_COMPLETE_TEST_DISABLE_SHELL_DETECTION=1 {name} --show-completion bash)"
        set -- $(complete -p {name})
        while [ $# -gt 0 ] && [ "$1" != -F ]; do shift; done
        COMP_WORDS=({name} remove Ti) COMP_CWORD=2
        "$2" {name}
        echo "offered: ${{COMPREPLY[*]}}"
    """
    ended = subprocess.run(["bash", "-c", line], env=environ, capture_output=True, text=True, timeout=60)
    assert (ended.stdout, ended.stderr) == ("offered: Tickets\n", "")
