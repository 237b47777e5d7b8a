"""A first configuration."""

import pytest

from gateway.config.load_settings import load_settings
from gateway.errors import ConfigError
from gateway.hosts.config_files.starter_config import EXAMPLE, first_configuration, upstreams_of


def test_it_loads_with_and_without_upstreams(tmp_path):
    file = tmp_path / "mcp-gateway.toml"
    file.write_text(first_configuration({}))
    assert load_settings(file, environ={}).settings.upstreams == {}
    file.write_text(first_configuration(upstreams_of(["http://a.example/mcp"], ["x=npx -y 'a b'"])))
    upstreams = load_settings(file, environ={}).settings.upstreams
    assert upstreams["a-example"].url == "http://a.example/mcp"
    assert (upstreams["x"].command, upstreams["x"].args) == ("npx", ("-y", "a b"))


def test_its_commented_examples_are_valid_too(tmp_path):
    lines = [line.removeprefix("# ") for line in EXAMPLE.splitlines()]
    file = tmp_path / "mcp-gateway.toml"
    file.write_text("\n".join(lines))
    loaded = load_settings(file, environ={"HOME": "/home/me", "REMOTE_TOKEN": "t"})
    assert set(loaded.settings.upstreams) == {"files", "remote"}


def test_names_are_made_where_none_is_given():
    upstreams = upstreams_of(["https://a.example/x?y=1", "b=http://b"], ["/opt/x/run --a=1", "npx z"])
    assert list(upstreams) == ["a-example", "b", "run", "z"]


@pytest.mark.parametrize(
    ("urls", "commands", "message"),
    [
        (["a=ftp://x"], [], "--upstream: is not the address of a server"),
        ([], ["x='open"], "--command: cannot be split into words: no closing quotation"),
        ([], ["x="], "--command: is empty"),
    ],
)
def test_what_is_no_server_is_refused(urls, commands, message):
    with pytest.raises(ConfigError, match=message):
        upstreams_of(urls, commands)


def test_a_name_that_cannot_be_used_is_refused():
    with pytest.raises(ConfigError, match="gateway's own"):
        first_configuration({"gateway": {"command": "x"}})
