"""The lists of hosts over HTTP, where the upstream is connected to before anybody knows who comes."""

import sys
from pathlib import Path

import pytest

RAW = Path(__file__).parents[1] / "servers" / "raw_stdio.py"
UI = {"extensions": {"io.modelcontextprotocol/ui": {"mimeTypes": ["text/html;profile=mcp-app"]}}}
CHANGED = "notifications/tools/list_changed"


@pytest.fixture
def origin(fresh):
    raw = {"command": sys.executable, "args": [str(RAW), "apps", "apps-if-declared"]}
    return fresh.gateway(fresh.config({"raw": raw}))


def names(host):
    return {tool["name"] for tool in host.everything("tools")}


def test_a_host_that_shows_pages_has_its_tools_in_the_first_list_and_hears_no_news_that_is_none(origin, fresh):
    first = fresh.host("handshake-http", origin, name="first", capabilities={})
    assert "board" not in names(first)  # and the upstream is there
    fresh.close_host(first)
    plain = fresh.host("handshake-http", origin, name="plain", capabilities={})
    shows = fresh.host("handshake-http", origin, name="shows", capabilities=UI)
    assert "board" not in names(plain)
    assert "board" in names(shows)
    for count, host in enumerate((plain, shows), 1):
        assert host.call("pid")["structuredContent"]["pid"]
        host.call("grow")  # which is news
        for each in (plain, shows):
            each.until(lambda each=each, count=count: each.told(CHANGED)[count - 1 :] or None, CHANGED, 8.0)
            assert len(each.told(CHANGED)) == count
