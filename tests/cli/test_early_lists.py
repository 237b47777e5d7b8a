"""A host that was given its tools before is given them at once at its next start, however long the gateway loads."""

import json
import os
import sys
import time
from pathlib import Path

import pytest

NOTES = Path(__file__).parents[1] / "servers" / "listed_stdio.py"
ROOT = Path(__file__).parents[2]
SLOW_SECONDS = 8.0
"""How much longer the imports take in the starts that must not wait for them."""
AT_ONCE = 0.75 * SLOW_SECONDS
"""Well below that, and a while for a busy machine: the process has to be started at all."""

SLOW = f"""
import sys, time

class Slow:
    def find_spec(self, name, path=None, target=None):
        if name == "mcp":
            sys.meta_path.remove(self)
            time.sleep({SLOW_SECONDS})

sys.meta_path.insert(0, Slow())
"""


@pytest.fixture
def slow(tmp_path):
    """The environment of a process for which the MCP SDK takes long to import."""
    folder = tmp_path / "slow"
    folder.mkdir()
    (folder / "sitecustomize.py").write_text(SLOW)
    return {**os.environ, "PYTHONPATH": os.pathsep.join([str(folder), str(ROOT)])}


@pytest.fixture
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("MCP_GATEWAY_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("MCP_GATEWAY_STATE", str(tmp_path / "state"))
    monkeypatch.setenv("MCP_GATEWAY_PROFILES", str(tmp_path / "profiles"))
    return tmp_path / "cache" / "lists"


@pytest.fixture
def config(tmp_path):
    """A configuration with a server whose tools are those of a file."""
    tools = tmp_path / "tools.json"

    def write(more: str = "") -> Path:
        path = tmp_path / "listed.toml"
        args = json.dumps([str(NOTES), str(tools)])
        path.write_text(f"{more}[upstreams.one]\ncommand = {json.dumps(sys.executable)}\nargs = {args}\n")
        return path

    write.tools = lambda *names: tools.write_text(json.dumps(names))
    write.tools("look", "find")
    return write


def tools(process, params=None) -> list[str]:
    process.send(id="tools", method="tools/list", params=params or {})
    return [tool["name"] for tool in process.answer("tools")["result"]["tools"]]


def end(process) -> None:
    process.process.stdin.close()
    assert process.wait() == 0


def given_once(start, config, *arguments, name="claude-code") -> list[str]:
    """Start the gateway for a host as it is for the first time, and return what it lists in the end."""
    process = start("serve", "--config", config, *arguments)
    process.initialize(name)
    process.offered()
    listed = tools(process)
    end(process)
    return listed


def started_slowly(start, slow, config, *arguments, name="claude-code"):
    """Start the gateway slowly; return the process, what it lists and whether it did so at once."""
    began = time.monotonic()
    process = start("serve", "--config", config, *arguments, env={**os.environ, "PYTHONPATH": slow["PYTHONPATH"]})
    process.initialize(name)
    listed = tools(process)
    return process, listed, time.monotonic() - began < AT_ONCE


@pytest.mark.parametrize("shared", [(), ("--shared",)])
def test_a_host_is_given_at_once_what_it_was_given_last(start, cache, config, slow, shared):
    file = config("[shared]\nlinger = 1\n")
    listed = given_once(start, file, *shared)
    process, again, at_once = started_slowly(start, slow, file, *shared)
    assert (again, at_once) == (listed, True)
    assert {"one__look", "one__find"} <= set(again)
    # What follows is served by the gateway itself, and the host hears nothing of the check.
    process.send(id=7, method="tools/call", params={"name": "one__look", "arguments": {}})
    assert process.answer(7)["result"]["content"][0]["text"] == "look"
    process.process.stdin.close()
    assert [line for line in process.rest(process.out) if "mcp-gateway early" in line or "list_changed" in line] == []
