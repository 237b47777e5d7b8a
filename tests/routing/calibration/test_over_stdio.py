"""A real gateway over stdio, calibrated by a host whose model reads what really reaches it."""

import json
import os
import queue
import subprocess
import sys
import threading
from pathlib import Path

import anyio
import pytest

from gateway.config.local_profiles import load_local
from gateway.core.profiles.calibrate_profile import PARTS, TEXTS
from gateway.core.profiles.host_profiles import set_paths

pytestmark = pytest.mark.anyio

ROOT = Path(__file__).parents[3]
PICTURES = ROOT / "tests" / "servers" / "pictures_stdio.py"
PATIENCE = 60
WHOLE = 240  # seconds for all of it, where the machine has much else to do


class Served:
    """A gateway as its host started it; asked one thing at a time."""

    def __init__(self, folder: Path, *options: str):
        environ = {**os.environ, "PYTHONPATH": str(ROOT), "MCP_GATEWAY_PROFILES": str(folder)}
        command = [sys.executable, "-m", "gateway", "serve", *options, "--", sys.executable, str(PICTURES)]
        self.process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, env=environ
        )
        self.lines: queue.Queue[bytes | None] = queue.Queue()
        self.reader = threading.Thread(target=self._read)
        self.reader.start()
        self.number = 0
        info = {"name": "Some Host", "version": "1.2.3"}
        self.ask("initialize", {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": info})
        self._send({"method": "notifications/initialized"})

    def _read(self):
        for line in self.process.stdout:
            self.lines.put(line)
        self.lines.put(None)

    def _send(self, message):
        self.process.stdin.write(json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n")
        self.process.stdin.flush()

    def ask(self, method, params):
        self.number += 1
        self._send({"id": self.number, "method": method, "params": params})
        while (line := self.lines.get(timeout=PATIENCE)) is not None:
            message = json.loads(line)
            if message.get("id") == self.number:
                return message["result"]
        raise AssertionError("the gateway ended")

    async def call(self, name, arguments):
        return await anyio.to_thread.run_sync(self.ask, "tools/call", {"name": name, "arguments": arguments})

    def tools(self):
        return [tool["name"] for tool in self.ask("tools/list", {})["tools"]]

    def end(self):
        self.process.stdin.close()
        try:
            self.process.wait(PATIENCE)
        finally:
            self.process.kill()
            self.process.wait()
        self.reader.join(PATIENCE)
        self.process.stdout.close()


@pytest.fixture
def served(tmp_path):
    started = []

    def serve(*options):
        started.append(Served(tmp_path / "profiles", *options))
        return started[-1]

    yield serve
    for each in started:
        each.end()


CALIBRATING = ["gateway_calibrate_show", "gateway_calibrate_report"]


def kinds(result):
    return [block["type"] for block in result["content"]]


async def test_what_was_measured_is_used_from_then_on(served, model, tmp_path):
    gateway = served("--calibrate")
    tools = gateway.tools()
    assert [name for name in tools if "calibrate" in name] == CALIBRATING
    (picture,) = [name for name in tools if name.endswith("picture")]
    assert "image" in kinds(await gateway.call(picture, {}))
    with anyio.fail_after(WHOLE):
        told = await model("cline").calibrates(gateway.call)
    assert "From now on the profile some-host-1.2.3 is used for this host" in told
    assert kinds(await gateway.call(picture, {})) == ["text"]
    assert not [name for name in gateway.tools() if "calibrate" in name]
    # And by the next gateway that this host starts.
    again = served()
    assert kinds(await again.call(picture, {})) == ["text"]
    learned = set_paths("", load_local({"MCP_GATEWAY_PROFILES": str(tmp_path / "profiles")})["some-host-1.2.3"])
    assert learned["image.show"] == "line"


@pytest.mark.parametrize(("name", "shown"), [("claude-code", "same-turn"), ("claude-desktop", "next-turn")])
async def test_hosts_that_show_pictures_at_once_and_late(served, model, tmp_path, name, shown):
    gateway = served("--calibrate")
    with anyio.fail_after(WHOLE):
        await model(name).calibrates(gateway.call)
    learned = set_paths("", load_local({"MCP_GATEWAY_PROFILES": str(tmp_path / "profiles")})["some-host-1.2.3"])
    assert (learned["image.show"], learned["shown"]) == ("native", shown)


async def test_who_guesses_leaves_nothing_behind(served, model, tmp_path):
    gateway = served("--calibrate")
    with anyio.fail_after(WHOLE):
        told = await model("inspector", reads=lambda seen, next_turn: ["31415", "92653"]).calibrates(gateway.call)
    assert "without a profile" in told
    assert not (tmp_path / "profiles").exists()


async def test_a_profile_that_was_chosen_explicitly_stays_in_force(served, model):
    gateway = served("--calibrate", "--profile", "codex")
    with anyio.fail_after(WHOLE):
        told = await model("cline").calibrates(gateway.call)
    assert "Its profile some-host-1.2.3 has to be chosen with --profile or gateway.profile" in told
    (picture,) = [name for name in gateway.tools() if name.endswith("picture")]
    assert "image" in kinds(await gateway.call(picture, {}))


async def test_the_test_blocks_reach_the_host_as_they_are(served, model):
    """Whatever the profile in force does to results: here one that shows no pictures at all."""
    gateway = served("--calibrate", "--profile", "cline")
    shown = [await gateway.call("gateway_calibrate_show", {"part": part}) for part in range(1, len(PARTS) + 1)]
    by_part = dict(zip(PARTS, shown, strict=True))
    assert kinds(by_part["pictures"]) == ["text", "image", "image"]
    assert [block["mimeType"] for block in by_part["pictures"]["content"][1:]] == ["image/png", "image/jpeg"]
    types = [block["mimeType"] for block in by_part["other pictures"]["content"][1:]]
    assert types == ["image/webp", "image/gif", "image/png"]
    assert kinds(by_part["several pictures"]) == ["text", *["image"] * 8]
    assert kinds(by_part["a document"]) == kinds(by_part["an embedded picture"]) == ["text", "resource"]
    assert kinds(by_part["sound"]) == ["text", "audio"]
    assert kinds(by_part["an error"]) == kinds(by_part["structured content"]) == ["text", "image"]
    assert [part for part, result in by_part.items() if result.get("isError")] == ["an error"]
    assert [part for part, result in by_part.items() if "structuredContent" in result] == ["structured content"]
    for part, length in TEXTS.items():
        assert [len(block["text"]) for block in by_part[part]["content"]] == [length]


async def test_a_gateway_that_is_not_being_calibrated_has_no_such_tools(served):
    gateway = served()
    assert not [name for name in gateway.tools() if "calibrate" in name]
