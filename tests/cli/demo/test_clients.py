"""Connecting as a host: what a server sees of it, in both eras."""

import sys
from pathlib import Path
from typing import Any

import anyio
import pytest
from mcp.shared.exceptions import MCPError

from gateway.cli.demo.clients import Stdio, connected
from gateway.hosts.simulators.hosts import SIMULATORS

pytestmark = pytest.mark.anyio

SERVER = r"""
import json, sys

def send(message):
    sys.stdout.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
    sys.stdout.flush()

heard = []
for line in sys.stdin:
    message = json.loads(line)
    heard.append(message)
    method, params = message.get("method"), message.get("params") or {}
    if method == "initialize":
        server = {"name": "x", "version": "1"}
        info = {"protocolVersion": params["protocolVersion"], "capabilities": {}, "serverInfo": server}
        send({"id": message["id"], "result": info})
    elif method == "server/discover":
        send({"id": message["id"], "result": {"supportedVersions": ["2026-07-28"], "capabilities": {}}})
    elif method == "tools/list":
        send({"id": "from-server", "method": "roots/list"})
        page = params.get("cursor")
        result = {"tools": [{"name": "second"}]} if page else {"tools": [{"name": "first"}], "nextCursor": "2"}
        send({"id": message["id"], "result": result})
    elif method == "tools/call" and params["name"] == "ask" and "inputResponses" not in params:
        asked = {"where": {"method": "roots/list", "params": {}}}
        result = {"resultType": "input_required", "inputRequests": asked, "requestState": "so far"}
        send({"id": message["id"], "result": result})
    elif method == "tools/call" and params["name"] == "refuse":
        send({"id": message["id"], "error": {"code": -32602, "message": "no such tool"}})
    elif method == "tools/call":
        send({"id": message["id"], "result": {"content": [{"type": "hologram"}], "heard": heard}})
"""


def _target(folder: Path) -> Stdio:
    return Stdio([sys.executable, "-c", SERVER], {}, folder, sys.stderr)


async def _heard(host: str, folder: Path) -> list[dict[str, Any]]:
    with anyio.fail_after(30):
        async with connected(_target(folder), SIMULATORS[host]) as connection:
            assert list(await connection.tools()) == ["first", "second"]
            result = await connection.call("first", {"at": 1})
    assert result["content"] == [{"type": "hologram"}]
    return result["heard"]


async def test_a_host_of_the_handshake_era_opens_with_its_own_revision_name_and_capabilities(tmp_path: Path) -> None:
    heard = await _heard("codex", tmp_path)
    assert heard[0]["method"] == "initialize"
    assert heard[0]["params"] == {
        "protocolVersion": "2025-06-18",
        "capabilities": {"elicitation": {"form": {}, "url": {}}, "experimental": {"codex/auth-change": {}}},
        "clientInfo": {"name": "codex-mcp-client", "version": "0.169.0", "title": "Codex"},
    }
    assert heard[1]["method"] == "notifications/initialized"
    assert not any("_meta" in (message.get("params") or {}) for message in heard)


async def test_a_host_of_the_stateless_era_says_who_it_is_on_every_request(tmp_path: Path) -> None:
    heard = await _heard("claude-code", tmp_path)
    requests = [message for message in heard if "method" in message]
    assert [message["method"] for message in requests] == ["server/discover", "tools/list", "tools/list", "tools/call"]
    for message in requests:
        meta = message["params"]["_meta"]
        assert meta["io.modelcontextprotocol/protocolVersion"] == "2026-07-28"
        assert meta["io.modelcontextprotocol/clientInfo"]["name"] == "claude-code"
        assert "roots" in meta["io.modelcontextprotocol/clientCapabilities"]


async def test_what_a_server_asks_is_answered(tmp_path: Path) -> None:
    heard = await _heard("gemini-cli", tmp_path)
    assert {"jsonrpc": "2.0", "id": "from-server", "result": {"roots": []}} in heard


async def test_what_a_server_of_the_stateless_era_asks_is_answered_by_asking_again(tmp_path: Path) -> None:
    with anyio.fail_after(30):
        async with connected(_target(tmp_path), SIMULATORS["claude-code"]) as connection:
            result = await connection.call("ask", {"at": 1})
    again = result["heard"][-1]["params"]
    assert (again["inputResponses"], again["requestState"]) == ({"where": {"roots": []}}, "so far")
    assert again["arguments"] == {"at": 1}


async def test_a_refusal_is_raised_as_it_came(tmp_path: Path) -> None:
    with anyio.fail_after(30):
        async with connected(_target(tmp_path), SIMULATORS["cline"]) as connection:
            with pytest.raises(MCPError, match="no such tool"):
                await connection.call("refuse", {})
