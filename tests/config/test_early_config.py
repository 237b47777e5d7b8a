"""What is read of the configuration before anything else is loaded."""

import os

from gateway.config.early_config import keep_introductions, read_greeting, toolsets_of_host
from gateway.core.tools.instructions import Introductions

WITH = '[gateway]\nname = "first"\n[toolsets.work]\nupstreams = ["one"]\n'
WITHOUT = '[gateway]\nname = "other"\n[upstreams.one]\ncommand = "twenty"'


def project(tmp_path, monkeypatch):
    """Stand in the folder of a project that names a toolset."""
    folder = tmp_path / "project"
    folder.mkdir()
    (folder / ".mcp-gateway.toml").write_text('toolset = "work"\n')
    monkeypatch.chdir(folder)


def test_a_configuration_is_parsed_once_until_its_file_changes(tmp_path, monkeypatch):
    """A relay needs it twice at its start, and the machine is busy then."""
    project(tmp_path, monkeypatch)
    file = tmp_path / "gateway.toml"
    file.write_text(WITH)
    os.utime(file, (1_000, 1_000))
    assert (toolsets_of_host(file, {}, None), read_greeting(file, {}).name) == (("work",), "first")
    file.write_text(WITHOUT.ljust(len(WITH)))
    os.utime(file, (1_000, 1_000))  # nothing shows that it is another one
    assert (toolsets_of_host(file, {}, None), read_greeting(file, {}).name) == (("work",), "first")
    os.utime(file, (2_000, 2_000))
    assert (toolsets_of_host(file, {}, None), read_greeting(file, {}).name) == ((), "other")


def test_a_project_chooses_nothing_of_a_configuration_that_cannot_be_read(tmp_path, monkeypatch):
    project(tmp_path, monkeypatch)
    assert toolsets_of_host(tmp_path / "none.toml", {}, None) == ()
    (tmp_path / "bad.toml").write_text("[")
    assert toolsets_of_host(tmp_path / "bad.toml", {}, "work") == ("work",)
    assert read_greeting(tmp_path / "bad.toml", {}).name == "mcp-gateway"


def test_no_server_introduces_itself_where_the_toolset_does_not_exist(tmp_path):
    """Its instructions would tell the model to use tools that are not offered."""
    file = tmp_path / "mcp-gateway.toml"
    file.write_text(f'{WITH}[upstreams.one]\ncommand = "twenty"\n')
    environ = {"MCP_GATEWAY_CACHE": str(tmp_path / "cache")}
    keep_introductions(file, ["one"], Introductions(parts=(("one", "Use look."),)), environ)
    assert read_greeting(file, environ, ("work",)).others.parts == (("one", "Use look."),)
    greeting = read_greeting(file, environ, ("wrok",))
    assert greeting.others.parts == ()
    assert "did you mean 'work'?" in (greeting.instructions or "")
