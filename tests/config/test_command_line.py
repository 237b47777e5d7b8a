"""Upstreams that are named on the command line."""

import pytest

from gateway.config.command_line import settings_from_arguments
from gateway.errors import ConfigError


def names(urls=(), command=()):
    return list(settings_from_arguments(urls, command, environ={}).upstreams)


@pytest.mark.parametrize(
    ("urls", "command", "expected"),
    [
        (["https://mcp.example.com/mcp"], [], ["mcp-example-com"]),
        (["http://127.0.0.1:8000/sse", "http://127.0.0.1:9000/sse"], [], ["127-0-0-1", "127-0-0-1-2"]),
        (["http://[::1]:8000/"], [], ["1"]),
        ([], ["npx", "-y", "server"], ["server"]),
        ([], ["npx"], ["npx"]),
        ([], ["npx", "-y", "@modelcontextprotocol/server-memory@2025.1.1"], ["memory"]),
        ([], ["npx", "-p", "mcp-tool", "tool-server", "--port=1"], ["tool"]),
        ([], ["C:\\nodejs\\npx.cmd", "@playwright/mcp@latest"], ["playwright"]),
        ([], ["uvx", "--from", "git+https://h.example/x", "mcp-server-time==1.0"], ["time"]),
        ([], ["uvx", "git+https://github.com/acme/mcp-charts.git@v1"], ["charts"]),
        ([], ["uv", "--directory", "/srv/x", "run", "python", "weather.py"], ["weather"]),
        ([], ["python3.12", "-u", "tools/weather.py", "--key", "x"], ["weather"]),
        ([], ["python", "-m", "acme.mcp_server_time"], ["time"]),
        ([], ["python", "-c", "import secret"], ["python"]),
        ([], ["node", "/srv/charts/dist/index.js"], ["charts"]),
        ([], ["docker", "run", "-i", "--rm", "-e", "TOKEN=x", "ghcr.io/github/github-mcp-server:1"], ["github"]),
        ([], ["docker", "run", "-i", "mcp/fetch@sha256:ab"], ["fetch"]),
        ([], ["mcp-server-time"], ["mcp-server-time"]),
        ([], ["./bin/my_server.py"], ["my_server"]),
        ([], ["/opt/server-1.2"], ["server-1-2"]),
        (["http://files/"], ["files"], ["files", "files-2"]),
    ],
)
def test_an_upstream_is_named_after_its_host_or_program(urls, command, expected):
    assert names(urls, command) == expected


def test_the_command_and_its_arguments_are_taken_as_they_are():
    upstream = settings_from_arguments([], ["./run", "--flag", "${HOME}"], environ={}).upstreams["run"]
    assert (upstream.command, upstream.args) == ("./run", ("--flag", "${HOME}"))


def test_the_token_comes_from_the_environment():
    assert settings_from_arguments([], ["x"], environ={"MCP_GATEWAY_TOKEN": "t"}).http.token == "t"
    assert settings_from_arguments([], ["x"], environ={"MCP_GATEWAY_TOKEN": ""}).http.token is None


@pytest.mark.parametrize("url", ["ftp://hunter2.example", "hunter2", "http://", "http://[hunter2"])
def test_what_is_no_address_is_an_error_that_does_not_repeat_it(url):
    with pytest.raises(ConfigError) as caught:
        settings_from_arguments([url], [], environ={})
    assert str(caught.value) == (
        "--upstream: is not the address of a server (give it as http://host/path or https://host/path; "
        "a server of the configuration needs no --upstream)"
    )
