"""`mcp-gateway console`: the address of a running gateway's console, or of one that is started for it."""

import json
import os
import sys
import urllib.error
import urllib.request
from collections.abc import Callable
from http.cookiejar import CookieJar
from pathlib import Path
from typing import Any

import pytest

from tests.cli.conftest import Ended
from tests.servers.loopback import open_url

pytestmark = pytest.mark.skipif(os.name != "posix", reason="Unix sockets and signals are POSIX's")

Command = Callable[..., Ended]
SERVERS = Path(__file__).parents[1] / "servers"


@pytest.fixture
def config(tmp_path: Path) -> Path:
    path = tmp_path / "mcp-gateway.toml"
    path.write_text(
        f"[upstreams.media]\ncommand = {json.dumps(sys.executable)}\n"
        f"args = [{json.dumps(str(SERVERS / 'media_stdio.py'))}]\n"
    )
    return path


def let_in(url: str) -> Callable[[str], Any]:
    """Enter with the address of the console; the function returned reads JSON of it."""
    cookies = urllib.request.HTTPCookieProcessor(CookieJar())
    base = url.partition("/enter")[0]

    def read(address: str) -> bytes:
        with open_url(address, 30, cookies) as answer:
            return answer.read()

    assert b"<nav" in read(url)
    return lambda path: json.loads(read(f"{base}/api{path}"))


def test_the_console_of_a_gateway_on_stdio(start: Any, command: Command, ask: Any, config: Path) -> None:
    process = start("serve", "--config", config)
    process.initialize("claude-code")
    ask(process, "media__pid")
    url = command("console", "--json").json()["url"]
    read = let_in(url)
    assert read("/calls")["calls"] == []
    ask(process, "media__picture")
    (call,) = read("/calls")["calls"]
    assert (call["tool"], call["host"]) == ("media__picture", "claude-code")
    assert [part["kind"] for part in read("/calls/1")["parts"]] == ["text", "image"]
    assert read("")["upstreams"][0]["name"] == "media"
    with pytest.raises(urllib.error.HTTPError) as refused:
        open_url(url, 30)
    with refused.value as error:
        assert error.code == 401
    again = command("console", "--no-browser").out.strip()
    assert again.partition("/enter")[0] == url.partition("/enter")[0]
    assert again != url
    with pytest.raises(urllib.error.HTTPError) as foreign:
        open_url(urllib.request.Request(again, headers={"Host": "evil.example"}), 30)
    with foreign.value as error:
        assert error.code == 400


def test_an_open_page_does_not_keep_a_gateway_from_stopping(start: Any, config: Path) -> None:
    process = start("serve", "--http", "--console", "--port", "0", "--config", config)
    url = process.line_with("console at ").removeprefix("console at ")
    cookies = urllib.request.HTTPCookieProcessor(CookieJar())
    open_url(url, 30, cookies).close()
    with open_url(url.partition("/enter")[0] + "/events", 30, cookies) as events:
        assert events.readline() == b"retry: 2000\n"
        process.process.terminate()
        assert events.read().strip() == b""
    assert process.wait() == 0
    said = process.rest(process.err)
    assert [line for line in said if "ERROR" in line or "WARNING" in line] == []


def test_without_a_gateway_one_is_started(start: Any, config: Path) -> None:
    process = start("console", "--no-browser", "--config", config)
    process.line_with("ends with Ctrl-C")
    url = process.out.get(timeout=60)
    assert let_in(url)("")["upstreams"][0]["name"] == "media"


def test_serving_it_on_stdio_is_refused_with_the_way_out(command: Command, config: Path) -> None:
    ended = command("serve", "--console", "--config", config)
    assert ended.code == 2
    assert "mcp-gateway console" in ended.err


def test_a_gateway_with_another_configuration_is_told_apart(
    start: Any, command: Command, ask: Any, config: Path, tmp_path: Path
) -> None:
    process = start("serve", "--config", config)
    process.initialize("claude-code")
    ask(process, "media__pid")
    found = command("console", "--no-browser")
    assert f", {config}" in found.err
    assert command("console", "--json", "--config", config).json()["url"]
    other = tmp_path / "other" / "mcp-gateway.toml"
    other.parent.mkdir()
    other.write_bytes(config.read_bytes())
    started = start("console", "--no-browser", "--config", other)
    started.line_with("started for the console")
    assert let_in(started.out.get(timeout=60))("")["upstreams"]
    ambiguous = command("console", "--no-browser")
    assert ambiguous.code == 2
    assert "2 gateways are running" in ambiguous.err
    assert str(config) in command("console", "--no-browser", "--config", config).err
