"""A host that was given its tools before is given them at once at its next start, however long the gateway loads."""

import json
import os
import queue
import stat
import sys
import time
from pathlib import Path

import pytest

from tests.cli.conftest import PATIENCE

LISTED = Path(__file__).parents[1] / "servers" / "listed_stdio.py"
ROOT = Path(__file__).parents[2]
HELD_BACK = """
import os, sys, time

class Gate:
    def find_spec(self, name, path=None, target=None):
        if name == "pydantic":
            sys.meta_path.remove(self)
            while not os.path.exists(os.environ["GATE"]):
                time.sleep(0.02)

sys.meta_path.insert(0, Gate())
"""


@pytest.fixture
def held_back(tmp_path, start):
    """Start the gateway for a host; its process, and that of a shared gateway, imports pydantic after `open`."""
    folder, gate = tmp_path / "held-back", tmp_path / "gate"
    folder.mkdir()
    (folder / "sitecustomize.py").write_text(HELD_BACK)

    def call(*arguments, name="claude-code"):
        gate.unlink(missing_ok=True)
        modules = os.pathsep.join([str(folder), str(ROOT)])
        process = start("serve", *arguments, env={**os.environ, "PYTHONPATH": modules, "GATE": str(gate)})
        if name is not None:
            process.initialize(name)
        return process

    call.open = gate.touch
    yield call
    gate.touch()


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
        args = json.dumps([str(LISTED), str(tools)])
        path.write_text(f"{more}[upstreams.one]\ncommand = {json.dumps(sys.executable)}\nargs = {args}\n")
        return path

    write.tools = lambda *names: tools.write_text(json.dumps(names))
    write.tools("look", "find")
    return write


def tools(process, params=None) -> list[str]:
    process.send(id="tools", method="tools/list", params=params or {})
    return [tool["name"] for tool in process.answer("tools")["result"]["tools"]]


BESIDE_TOOLS = {
    "prompts/list": ("prompts", ["one__look", "one__find"]),
    "resources/list": ("resources", ["look", "find"]),
    "resources/templates/list": ("resourceTemplates", ["look", "find"]),
}


def names(process, method) -> list[str]:
    """Return the names in another list than that of tools."""
    process.send(id=method, method=method, params={})
    return [item["name"] for item in process.answer(method)["result"][BESIDE_TOOLS[method][0]]]


def names_with(process, method, wanted) -> list[str]:
    """Return the names once the wanted ones are among them."""
    until = time.monotonic() + PATIENCE
    while not set(wanted) <= set(found := names(process, method)):
        assert time.monotonic() < until, found
        time.sleep(0.05)
    return found


def end(process) -> None:
    process.process.stdin.close()
    assert process.wait() == 0


def given_once(start, config, *arguments, name="claude-code") -> list[str]:
    """Start the gateway for a host as it is for the first time, and return what it lists once the server is there."""
    process = start("serve", "--config", config, *arguments)
    process.initialize(name)
    look = next(name for name in process.offered() if name.endswith("look"))
    process.send(id="look", method="tools/call", params={"name": look, "arguments": {}})
    assert process.answer("look")["result"]["content"][0]["text"] == "look"  # the server is there
    listed = tools(process)
    end(process)
    return listed


@pytest.mark.parametrize("shared", [(), ("--shared",)])
def test_a_host_is_given_at_once_what_it_was_given_last(start, cache, config, held_back, shared):
    file = config("[shared]\nlinger = 1\n")
    listed = given_once(start, file, *shared)
    process = held_back("--config", file, *shared)
    assert tools(process) == listed
    assert {"one__look", "one__find"} <= set(listed)
    held_back.open()
    # What follows is served by the gateway itself, and the host hears nothing of the check.
    process.send(id=7, method="tools/call", params={"name": "one__look", "arguments": {}})
    assert process.answer(7)["result"]["content"][0]["text"] == "look"
    assert tools(process) == listed
    process.process.stdin.close()
    assert [line for line in process.rest(process.out) if "mcp-gateway early" in line or "list_changed" in line] == []


@pytest.mark.parametrize("shared", [(), ("--shared",)])
def test_every_list_that_a_host_waits_for_before_it_is_connected_is_given_at_once(
    start, cache, config, held_back, shared
):
    file = config("[shared]\nlinger = 1\n")
    first = start("serve", "--config", file, *shared)
    first.initialize("claude-code")
    first.offered()
    wanted = {method: listed for method, (_, listed) in BESIDE_TOOLS.items()}
    for method, listed in wanted.items():
        names_with(first, method, listed)
    end(first)
    process = held_back("--config", file, *shared)
    assert {method: names(process, method) for method in wanted} == wanted
    held_back.open()
    process.send(id=7, method="tools/call", params={"name": "one__look", "arguments": {}})
    assert process.answer(7)["result"]["content"][0]["text"] == "look"
    assert {method: names(process, method) for method in wanted} == wanted
    process.process.stdin.close()
    assert [line for line in process.rest(process.out) if "mcp-gateway early" in line or "list_changed" in line] == []


ENVELOPE = {
    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
    "io.modelcontextprotocol/clientInfo": {"name": "claude-code", "version": "2.1.329"},
    "io.modelcontextprotocol/clientCapabilities": {},
}
KINDS = ("tools", "prompts", "resources")
LISTEN = {"_meta": ENVELOPE, "notifications": {f"{kind}ListChanged": True for kind in KINDS}}
ACKNOWLEDGED = "notifications/subscriptions/acknowledged"


def heard(process, wanted) -> list[dict]:
    """Return the messages up to the one that is wanted."""
    found = []
    while (line := process.out.get(timeout=PATIENCE)) is not None:
        found.append(json.loads(line))
        if wanted(found[-1]):
            return found
    raise AssertionError(found)


@pytest.mark.parametrize("shared", [(), ("--shared",)])
def test_a_host_of_2026_that_hears_of_changes_is_given_its_lists_at_once(start, cache, config, held_back, shared):
    file = config("[shared]\nlinger = 1\n")

    def ask(process, method):
        process.send(id=method, method=method, params={"_meta": ENVELOPE})
        return process.answer(method)["result"]

    def opened(process):
        process.send(id="listen", method="subscriptions/listen", params=LISTEN)
        told = heard(process, lambda message: message.get("method") == ACKNOWLEDGED)[-1]["params"]
        assert told == {
            "_meta": {"io.modelcontextprotocol/subscriptionId": "listen"},
            "notifications": LISTEN["notifications"],
        }

    first = start("serve", "--config", file, *shared)
    opened(first)
    until = time.monotonic() + PATIENCE
    while "one__look" not in json.dumps(ask(first, "tools/list")) and time.monotonic() < until:
        time.sleep(0.05)
    listed = {method: ask(first, method) for method in ("tools/list", *BESIDE_TOOLS)}
    end(first)
    process = held_back("--config", file, *shared, name=None)
    opened(process)
    assert {method: ask(process, method) for method in listed} == listed
    config.tools("look", "draw")
    held_back.open()
    if not shared:  # a shared gateway has the list of before until its server is started for somebody
        heard(process, lambda message: message.get("method") == "notifications/tools/list_changed")
        assert "one__draw" in json.dumps(ask(process, "tools/list"))
    process.process.stdin.close()
    after = [json.loads(line) for line in process.rest(process.out)]
    assert [one for one in after if one.get("method") == ACKNOWLEDGED or "early" in str(one.get("id"))] == []


def test_a_host_of_2026_that_does_not_listen_is_given_nothing_early(start, cache, config, held_back):
    file = config()
    for _ in range(2):
        process = held_back("--config", file, name=None)
        process.send(id="list", method="tools/list", params={"_meta": ENVELOPE})
        with pytest.raises(queue.Empty):
            process.out.get(timeout=1)
        held_back.open()
        assert "tools" in process.answer("list")["result"]
        end(process)


def test_stored_content_is_not_kept_with_the_resources(start, cache, config, held_back):
    """It is listed for a while, and the rest of the list is given early all the same."""
    file = config(f"[store]\nurl = {json.dumps((cache.parents[1] / 'stored').as_uri())}\n")
    first = start("serve", "--config", file)
    first.initialize("claude-code")
    first.offered()
    first.send(id="put", method="tools/call", params={"name": "gateway_put", "arguments": {"data": "aGVsbG8="}})
    assert "result" in first.answer("put")
    names_with(first, "resources/list", ["look", "directory"])
    end(first)
    process = held_back("--config", file)
    assert names(process, "resources/list") == ["look", "find"]
    held_back.open()
    while json.loads(process.out.get(timeout=PATIENCE)).get("method") != "notifications/resources/list_changed":
        pass
    assert "directory" in names(process, "resources/list")
    end(process)


def test_a_list_that_has_changed_is_announced_and_given_at_the_next_start(start, cache, config, held_back):
    file = config()
    listed = given_once(start, file)
    config.tools("look", "find", "draw")
    process = held_back("--config", file)
    assert tools(process) == listed
    held_back.open()
    process.listed(lambda names: "one__draw" in names)
    end(process)
    process = held_back("--config", file)
    assert "one__draw" in tools(process)


def test_what_a_command_has_learned_of_an_upstream_is_not_hidden_by_an_older_list(start, cache, config, held_back):
    file = config()
    given_once(start, file)
    config.tools("look", "find", "draw")
    assert start("tools", "--config", file).wait() == 0
    process = held_back("--config", file)
    process.send(id="first", method="tools/list", params={})
    held_back.open()
    assert "one__draw" in [tool["name"] for tool in process.answer("first")["result"]["tools"]]


@pytest.mark.skipif(os.name != "posix", reason="pipes with names are POSIX's")
def test_a_list_without_an_upstream_that_has_never_been_there_is_not_kept(start, cache, config, tmp_path):
    file = config('[profiles.quick]\nextends = "claude-code"\nsets.wait.tools_list = "200ms"\n')
    (tmp_path / "tools.json").unlink()
    os.mkfifo(tmp_path / "tools.json")  # the server answers nothing of what it is asked
    process = start("serve", "--config", file, "--profile", "quick")
    process.initialize("claude-code")
    assert not [name for name in tools(process) if name.startswith("one__")]
    end(process)
    assert not cache.exists()


def test_a_tool_that_is_held_is_not_given_early(start, cache, config):
    file = config('[pins]\nmode = "hold"\n')
    given_once(start, file)  # pinned
    given_once(start, file)  # kept
    config.tools("look", "find", "steal")
    assert {"one__look", "one__find"} <= set(given_once(start, file))
    assert [one for one in cache.iterdir() if b"steal" in one.read_bytes()] == []
    if os.name == "posix":
        assert {stat.S_IMODE(one.stat().st_mode) for one in cache.iterdir()} == {0o600}
        assert stat.S_IMODE(cache.stat().st_mode) == 0o700


def test_a_host_that_ignores_changes_or_is_calibrated_is_given_nothing_early(start, cache, config):
    file = config()
    given_once(start, file, "--profile", "roo-code")
    given_once(start, file, "--calibrate")
    assert not cache.exists()


TOOLSETS = '[toolsets.looks]\ntools = ["one__look"]\n[shared]\nlinger = 1\n'


def in_folder(start, config, folder, *arguments, opened=None) -> list[str]:
    """Start the gateway in a folder, for a host that has a folder open; return the tools that it is given first."""
    process = start("serve", "--config", config, *arguments, cwd=folder)
    client = {"capabilities": {"roots": {}}, "clientInfo": {"name": "claude-code", "version": "1"}}
    process.send(id=1, method="initialize", params={"protocolVersion": "2025-06-18", **client})
    process.answer(1)
    process.send(method="notifications/initialized")
    process.send(id="tools", method="tools/list", params={})
    first, is_known = None, False
    while first is None or not is_known:  # the project, and the server if the host has it
        message = json.loads(process.out.get(timeout=PATIENCE))
        if message.get("method") == "roots/list":
            roots = [] if opened is None else [{"uri": opened.as_uri()}]
            process.send(id=message["id"], result={"roots": roots})
            process.send(id="look", method="tools/call", params={"name": "one__look", "arguments": {}})
        elif message.get("id") == "tools":
            first = [tool["name"] for tool in message["result"]["tools"]]
        is_known = is_known or message.get("id") == "look"
    tools(process)  # kept, if it may be
    end(process)
    return [name for name in first if name.startswith("one__")]


@pytest.mark.parametrize(("content", "shared"), [("toolset = looks\n", ()), ('toolset = "lokos"\n', ("--shared",))])
def test_a_project_whose_file_is_wrong_is_not_given_the_list_of_another_folder(
    start, cache, config, tmp_path, shared, content
):
    file = config(TOOLSETS)
    (outside := tmp_path / "outside").mkdir()
    (project := tmp_path / "project").mkdir()
    in_folder(start, file, outside, *shared)
    (project / ".mcp-gateway.toml").write_text(content)
    assert in_folder(start, file, project, *shared) == []
    (project / ".mcp-gateway.toml").unlink()
    assert sorted(in_folder(start, file, project, *shared)) == ["one__find", "one__look"]


@pytest.mark.parametrize("shared", [(), ("--shared",)])
def test_the_list_of_a_project_that_a_host_has_open_is_not_given_to_one_that_has_not(
    start, cache, config, tmp_path, shared
):
    file = config(TOOLSETS)
    (project := tmp_path / "project").mkdir()
    (project / ".mcp-gateway.toml").write_text('toolset = "looks"\n')
    (outside := tmp_path / "outside").mkdir()
    in_folder(start, file, outside, *shared, opened=project)
    assert sorted(in_folder(start, file, outside, *shared)) == ["one__find", "one__look"]
    # Nor is the whole list given to one that has it open, from the first time on that this was seen.
    assert in_folder(start, file, outside, *shared, opened=project) == ["one__look"]


@pytest.fixture
def registered(tmp_path, monkeypatch, config):
    """Register the gateway in Claude Code with options of `install`; return the arguments of its entry."""
    home = tmp_path / "home"
    home.mkdir()
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("USERPROFILE", str(home))

    def call(command, file, *options) -> list[str]:
        code, _, said = command("install", "claude-code", "--config", file, *options)
        assert code == 0, said
        entry = json.loads((home / ".claude.json").read_text())["mcpServers"]["gateway"]
        return entry["args"][entry["args"].index("serve") + 1 :]

    return call


def test_a_host_that_is_registered_last_is_given_its_list_at_once_as_well(
    start, command, cache, config, registered, held_back
):
    file = config()
    assert start("tools", "--config", file).wait() == 0
    process = held_back(*registered(command, file))
    assert {"one__look", "one__find"} <= set(tools(process))


def test_no_list_is_prepared_while_an_upstream_is_unknown(start, command, cache, config, registered, tmp_path):
    file = config("[upstreams.gone]\ncommand = 'no-such-program'\n")
    registered(command, file)
    assert start("tools", "--config", file).wait() == 3
    assert not cache.exists()


def test_no_list_is_prepared_where_a_project_may_narrow_it(start, command, cache, config, registered):
    file = config(TOOLSETS)
    registered(command, file)
    assert start("tools", "--config", file).wait() == 0
    assert not cache.exists()


@pytest.mark.parametrize("changed", ["catalogue", "configuration", "client", "extension"])
def test_what_was_prepared_is_not_given_if_anything_has_changed(
    start, command, cache, config, registered, held_back, changed
):
    file = config()
    arguments = registered(command, file)
    assert start("tools", "--config", file).wait() == 0
    assert len(list(cache.iterdir())) == 1
    if changed == "catalogue":
        config.tools("look", "draw")
        assert start("tools", "one", "--config", file).wait() == 0
    elif changed == "configuration":
        config("[gateway]\nname = 'other'\n")
    process = held_back(*arguments, name="other-host" if changed == "client" else None)
    if changed != "client":
        capabilities = {"extensions": {"example/x": {}}} if changed == "extension" else {}
        client = {"capabilities": capabilities, "clientInfo": {"name": "claude-code", "version": "1"}}
        process.send(id=1, method="initialize", params={"protocolVersion": "2025-06-18", **client})
        process.answer(1)
    process.send(id="tools", method="tools/list", params={})
    with pytest.raises(queue.Empty):
        process.out.get(timeout=1)
    held_back.open()
    assert "one__look" in [tool["name"] for tool in process.answer("tools")["result"]["tools"]]


@pytest.mark.parametrize("shared", [(), ("--shared",)])
def test_a_registered_host_is_given_at_once_what_tools_has_listed(
    start, command, cache, config, registered, held_back, shared
):
    file = config("[shared]\nlinger = 1\n")
    arguments = registered(command, file, *shared)
    assert start("tools", "--config", file).wait() == 0
    process = held_back(*arguments)
    assert {"one__look", "one__find"} <= set(listed := tools(process))
    assert {method: names(process, method) for method in BESIDE_TOOLS} == {
        method: listed for method, (_, listed) in BESIDE_TOOLS.items()
    }
    held_back.open()
    process.send(id=7, method="tools/call", params={"name": "one__look", "arguments": {}})
    assert process.answer(7)["result"]["content"][0]["text"] == "look"
    assert tools(process) == listed
    process.process.stdin.close()
    assert [line for line in process.rest(process.out) if "mcp-gateway early" in line or "list_changed" in line] == []
