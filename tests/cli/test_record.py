"""`serve --record` and `--replay` as a host meets them, and `check` and `explain` of what was recorded."""

import json
import re
import sys
from pathlib import Path

import anyio
import pytest

from gateway.config.schema import Settings
from gateway.core.model.caller import Caller
from gateway.errors import ConfigError, GatewayError
from gateway.runtime import run_gateway
from gateway.testing import replayed_gateway
from gateway.upstream.recording.recorder import RecordOptions
from tests.cli.conftest import PATIENCE, PICTURES

HANDLE = re.compile(r"\b[a-z]{3}_[0-9a-z]{12}\b")
"""Handles are drawn anew by every gateway."""


def call(process, name, arguments=None):
    process.send(id="call", method="tools/call", params={"name": name, "arguments": arguments or {}})
    answer = process.answer("call")
    return HANDLE.sub("HANDLE", json.dumps(answer, sort_keys=True))


def session(process, host, *, but=()):
    """What a host sees of a session: its tools and its answers, as they are on the wire."""
    process.initialize(host)
    offered = sorted(process.offered())
    return offered, {name: call(process, name) for name in offered if name.startswith("pics__") and name not in but}


def ended(process):
    process.process.stdin.close()
    assert process.wait() == 0
    return "\n".join(process.rest(process.err))


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """The folder of a recorded session in which the tools have other names, and one is not offered."""
    folder = tmp_path_factory.mktemp("recorded") / "recording"
    tools = {"rename": {"picture": "photo"}, "exclude": ["fail"]}
    server = {"command": sys.executable, "args": [str(PICTURES)], "tools": tools}

    async def record():
        settings = Settings.model_validate({"upstreams": {"pics": server}})
        async with run_gateway(settings, record=RecordOptions(folder)) as gateway:
            assert await gateway.upstreams.settled(PATIENCE)
            for tool in ("photo", "echo", "photo"):
                await gateway.router.respond("tools/call", {"name": f"pics__{tool}", "arguments": {}}, Caller())

    anyio.run(record)
    return folder


def test_a_session_is_the_same_again_without_the_server(start, command, pictures, tmp_path):
    folder, config = tmp_path / "recording", pictures()
    recording = start("serve", "--config", config, "--record", folder, "--record-limit", "20MiB")
    seen = session(recording, "claude-code")
    (gateway,) = command("status", "--json").json()["gateways"]
    about = gateway["recording"]
    assert (about["folder"], about["max_bytes"], about["problem"]) == (str(folder), 20 * 1024 * 1024, None)
    assert about["exchanges"] > len(seen[1])
    assert f"recording: {folder}, " in command("status").out
    assert f"recording what the upstreams answer in {folder}" in ended(recording)

    replaying = start("serve", "--config", config, "--replay", folder)
    assert session(replaying, "claude-code") == seen
    assert len(seen[1]) > 3
    assert f"answering from the recording {folder}; no upstream is started" in ended(replaying)

    live, replayed = start("serve", "--config", config), start("serve", "--replay", folder)
    assert session(live, "codex", but=["pics__pid"]) == session(replayed, "codex", but=["pics__pid"])


def test_what_is_recorded_is_below_rules_and_names(folder):
    (path,) = folder.glob("session-*.jsonl")
    lines = [json.loads(line) for line in path.read_text("utf-8").splitlines()]
    called = [line["params"]["name"] for line in lines if line.get("method") == "tools/call"]
    assert called == ["picture", "echo", "picture"]
    (tools,) = (line["result"]["tools"] for line in lines if line.get("method") == "tools/list")
    assert {"picture", "fail"} <= {tool["name"] for tool in tools}


def test_check_shows_what_each_host_would_have_seen(command, folder):
    checked = command("check", "--replay", folder, "--host", "codex", "--host", "cline", "--json").json()
    assert checked["server"] == "pics"
    assert {(one["host"], one["case"]) for one in checked["results"]} == {
        (host, case) for host in ("codex", "cline") for case in ("picture", "picture (2)", "echo")
    }
    every = command("check", "--replay", folder, "pics", "--tool", "picture", "--hosts", "all", "--json").json()
    assert len({one["host"] for one in every["results"]}) > 10
    assert {one["case"] for one in every["results"]} == {"picture", "picture (2)"}
    assert "there is no upstream 'nobody'" in command("check", "--replay", folder, "nobody").err


def test_a_recorded_call_is_explained(command, folder):
    calls = command("explain", "--replay", folder, "--json").json()
    assert [one["call"] for one in calls] == list(range(1, len(calls) + 1))
    number = next(one["call"] for one in calls if one["tool"] == "picture")
    assert f"{number}" in command("explain", "--replay", folder).out
    explained = command("explain", "--replay", folder, "--call", str(number), "--profile", "cline")
    assert explained.code == 0
    assert "image: image/png" in explained.out
    missing = command("explain", "--replay", folder, "--call", "999")
    assert f"{folder}: has no call 999" in missing.err


def test_a_replay_needs_no_secrets_of_the_servers(start, command, folder):
    config = folder.parent / "secret.toml"
    table = f'[upstreams.pics]\ncommand = "{PICTURES}"\nenv = {{ TOKEN = "${{NOT_SET_HERE}}" }}\n'
    config.write_text(table)
    assert "NOT_SET_HERE is not set" in command("tools", "--config", config).err
    process = start("serve", "--config", config, "--replay", folder)
    process.initialize("codex")
    assert "pics__picture" in process.offered()
    config.write_text(table + "timeout.call = 7\n")
    reloaded = command("reload", "--pid", process.process.pid)
    assert (reloaded.code, reloaded.err) == (0, "")
    assert ended(process)
    number = next(one["call"] for one in command("explain", "--replay", folder, "--json").json())
    for words in (("check", "--host", "codex"), ("explain", "--call", number)):
        assert command(*words, "--replay", folder, "--config", config).code == 0


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (("--record", "a", "--replay", "b"), "give either --record or --replay"),
        (("--record-limit", "1GiB"), "--record-limit needs --record"),
        (("--record", "a", "--record-limit", "much"), "--record-limit 'much' must be bytes"),
        (("--record", "a", "--record-limit", "0"), "--record-limit must be more than 0"),
        (("--replay-match", "nearest"), "--replay-match needs --replay"),
        (("--replay", "a", "--replay-match", "roughly"), "is strict or nearest, not 'roughly'"),
        (("--replay", "a", "--shared"), "leave out --shared"),
        (("--record", "a", "--shared"), "leave out --shared"),
        (("--replay", "a", "--upstream", "http://127.0.0.1:1/mcp"), "answers in place of upstreams, so name none"),
    ],
)
def test_options_that_contradict_each_other_are_refused(command, options, said):
    ended = command("serve", *options)
    assert ended.code == 2
    assert said in ended.err
    assert not Path("a").exists()


def test_a_recording_that_cannot_be_used_is_said_at_the_start(command, tmp_path, pictures):
    folder = tmp_path / "recording"
    ended = command("serve", "--replay", folder)
    assert ended.code != 0
    assert f"{folder}: there is no such folder" in ended.err
    folder.mkdir()
    (folder / "notes.txt").write_text("mine")
    ended = command("serve", "--config", pictures(), "--record", folder)
    assert ended.code != 0
    assert "is not empty, and not a recording" in ended.err


def test_an_upstream_of_the_configuration_can_be_a_recording(command, folder):
    config = folder.parent / "other.toml"
    config.write_text('[upstreams.pics]\nreplay = "recording"\n')
    called = command("call", "pics__picture", "--config", config, "--profile", "codex", "--json")
    assert called.code == 0
    assert any(block["type"] == "image" for block in called.json()["result"]["content"])
    config.write_text(f'[upstreams.pics]\nreplay = "recording"\ncommand = "{PICTURES}"\n')
    assert "replay answers in place of a server" in command("tools", "--config", config).err


@pytest.mark.anyio
async def test_tests_use_a_recording_as_a_host_does(folder):
    async with replayed_gateway(folder, host="codex") as gateway:
        assert "pics__picture" in {tool["name"] for tool in gateway.tools}
        result = await gateway.call("pics__picture")
        assert [block["type"] for block in result["content"]] == ["text", "image"]
        with pytest.raises(GatewayError, match="the nearest that it has is"):
            await gateway.call("pics__echo", {"name": "never"})
    async with replayed_gateway(str(folder), match="nearest") as gateway:
        assert (await gateway.call("pics__echo", {"name": "never"}))["content"]
    with pytest.raises(ConfigError, match="there is no such folder"):
        await replayed_gateway(folder / "nowhere").__aenter__()
