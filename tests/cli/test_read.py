"""`mcp-gateway read`: resources as a host reads them, above all pages."""

import base64
import json
import sys
from pathlib import Path

import pytest

SERVERS = Path(__file__).parents[1] / "servers"
PAGE = "<!doctype html>\n<title>Täglich</title>\x1b[2J"
TYPE = "text/html;profile=mcp-app"
META = {
    "ui": {
        "csp": {"connectDomains": ["https://a.example", "https://b.example"], "resourceDomains": []},
        "permissions": {"camera": {}},
    },
    "more": 1,
}


@pytest.fixture
def config(tmp_path):
    """A configuration of a server with a page, a picture and a bad page, and one that cannot be started."""
    script = tmp_path / "script.json"
    tool = {"name": "show", "inputSchema": {"type": "object"}, "_meta": {"ui": {"resourceUri": "ui://page"}}}
    resources = {
        "ui://page": {"mimeType": TYPE, "text": PAGE, "_meta": META},
        "ui://bad": {"mimeType": "text/html", "text": ""},
        "thing://picture": {"mimeType": "image/png", "blob": base64.b64encode(b"\x89PNG").decode()},
    }
    script.write_text(json.dumps({"tools": [tool], "results": {}, "resources": resources}))
    path = tmp_path / "gateway.toml"
    path.write_text(
        f"[upstreams.mine]\ncommand = {json.dumps(sys.executable)}\n"
        f"args = {json.dumps([str(SERVERS / 'scripted_stdio.py'), str(script)])}\n"
        '[upstreams.other]\ncommand = "/no/such/program"\n'
    )
    return path


def test_a_page_is_read_and_what_it_asks_for_is_said(command, config):
    ended = command("read", "ui://mine/page", "--config", config, "--app", "--profile", "cursor")
    assert (ended.code, ended.out) == (0, "<!doctype html>\n<title>Täglich</title>\\x1b[2J\n")
    assert ended.err == (
        "ui://mine/page: text/html;profile=mcp-app, 43 bytes, connects to https://a.example https://b.example, "
        "asks for camera (_meta: ui, more; --json shows it)\n"
        "  it was not run: `mcp-gateway console` draws it, and shows what it needs that hosts may refuse\n"
    )


def test_a_page_that_hosts_may_find_too_large_is_said_to_be(command, config):
    script = config.with_name("script.json")
    made = json.loads(script.read_text())
    made["resources"]["ui://page"]["text"] = "x" * 1_100_000
    script.write_text(json.dumps(made))
    ended = command("read", "ui://mine/page", "--config", config)
    assert "\n  hosts may refuse a page of more than a megabyte\n" in ended.err


def test_a_page_may_be_written_to_a_file_as_it_is_and_over_none(command, config, tmp_path):
    file = tmp_path / "page.html"
    written = command("read", "ui://mine/page", "--config", config, "--to", file)
    assert written.out == ""
    assert written.err.endswith(f"\nwritten to {file}\n")
    assert file.read_text("utf-8") == PAGE
    refused = command("read", "ui://mine/page", "--config", config, "--to", file)
    assert (refused.code, "exists: give another --to, or --force" in refused.err) == (2, True)
    ended = command("read", "thing://picture", "--config", config, "--to", file, "--force")
    assert (ended.code, file.read_bytes()) == (0, b"\x89PNG")
    assert ended.err == f"thing://picture: image/png, 4 bytes\nwritten to {file}\n"


def test_what_keeps_hosts_from_showing_a_page_is_said(command, config):
    ended = command("read", "ui://mine/bad", "--config", config)
    assert (ended.code, ended.out) == (0, "\n")
    assert ended.err.splitlines() == [
        "ui://mine/bad: text/html, 0 bytes, asks for no other domain",
        "  hosts may not show it: its type is text/html, and hosts show only text/html;profile=mcp-app",
        "  hosts may not show it: it is empty",
    ]


def test_json_is_what_the_host_is_sent(command, config):
    told = command("read", "ui://mine/page", "--config", config, "--profile", "goose", "--json").json()
    assert told["profile"] == "goose"
    assert told["result"]["contents"] == [{"uri": "ui://mine/page", "mimeType": TYPE, "text": PAGE, "_meta": META}]


def test_what_nobody_has_is_refused(command, config):
    ended = command("read", "ui://mine/absent", "--config", config)
    assert (ended.code, ended.out) == (2, "")
    assert ended.err.startswith("error: no upstream has the resource ui://mine/absent")
    both = command("read", "ui://mine/page", "--config", config, "--json", "--to", "x")
    assert (both.code, "give either --json or --to" in both.err) == (2, True)


def test_a_resource_is_read_as_one_host(command, pictures):
    ended = command("read", "ui://pics/page", "--profile", "all", "--config", pictures())
    assert (ended.code, ended.out) == (2, "")
    assert "--profile takes one name here, and is given all" in ended.err
