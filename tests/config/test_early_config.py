"""What is read of the configuration before anything else is loaded."""

import os

from gateway.config.early_config import has_toolsets, keep_introductions, read_greeting
from gateway.core.tools.instructions import Introductions

WITH = '[gateway]\nname = "first"\n[toolsets.work]\nupstreams = ["one"]\n'
WITHOUT = '[gateway]\nname = "other"\n[upstreams.one]\ncommand = "twenty"'


def test_a_configuration_is_parsed_once_until_its_file_changes(tmp_path):
    """A relay needs it twice at its start, and the machine is busy then."""
    file = tmp_path / "gateway.toml"
    file.write_text(WITH)
    os.utime(file, (1_000, 1_000))
    assert (has_toolsets(file), read_greeting(file, {}).name) == (True, "first")
    file.write_text(WITHOUT.ljust(len(WITH)))
    os.utime(file, (1_000, 1_000))  # nothing shows that it is another one
    assert (has_toolsets(file), read_greeting(file, {}).name) == (True, "first")
    os.utime(file, (2_000, 2_000))
    assert (has_toolsets(file), read_greeting(file, {}).name) == (False, "other")


def test_a_configuration_that_cannot_be_read_has_no_toolsets(tmp_path):
    assert not has_toolsets(tmp_path / "none.toml")
    (tmp_path / "bad.toml").write_text("[")
    assert not has_toolsets(tmp_path / "bad.toml")
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
