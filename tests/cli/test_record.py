"""`serve --record` and `--replay` as a host meets them, and `check` and `explain` of what was recorded."""

import json
import re
from pathlib import Path

import pytest

from tests.cli.conftest import PICTURES

HANDLE = re.compile(r"\b[a-z]{3}_[0-9a-z]{12}\b")
"""Handles are drawn anew by every gateway."""


def call(process, name, arguments=None):
    process.send(id="call", method="tools/call", params={"name": name, "arguments": arguments or {}})
    answer = process.answer("call")
    return HANDLE.sub("HANDLE", json.dumps(answer, sort_keys=True))


def session(process, host):
    """What a host sees of a session: its tools and its answers, as they are on the wire."""
    process.initialize(host)
    offered = sorted(process.offered())
    results = [call(process, name) for name in offered if name.startswith("pics__")]
    process.process.stdin.close()
    return process.wait(), offered, results


@pytest.fixture
def folder(tmp_path):
    return tmp_path / "recording"


@pytest.fixture
def recording(start, pictures, folder):
    """The folder of a recorded session of Claude Code, and what it saw."""
    process = start("serve", "--config", pictures(), "--record", folder)
    seen = session(process, "claude-code")
    assert seen[0] == 0
    assert any(f"recording what the upstreams answer in {folder}" in line for line in process.rest(process.err))
    return folder, seen


def test_a_session_is_the_same_again_without_the_server(start, recording, tmp_path):
    folder, seen = recording
    process = start("serve", "--config", tmp_path / "pictures.toml", "--replay", folder)
    assert session(process, "claude-code") == seen
    assert len(seen[2]) > 2
    assert any("no upstream is started" in line for line in process.rest(process.err))


@pytest.mark.parametrize("host", ["codex", "cline"])
def test_other_hosts_get_of_it_what_they_would_have_got_of_the_server(start, pictures, recording, host):
    folder, _ = recording
    assert session(start("serve", "--config", pictures()), host) == session(start("serve", "--replay", folder), host)


def test_what_is_recorded_is_below_rules_and_names(start, pictures, folder):
    config = pictures('[upstreams.pics.tools]\nrename = { picture = "photo" }\nexclude = ["failing"]\n')
    process = start("serve", "--config", config, "--record", folder)
    process.initialize("codex")
    assert "pics__photo" in process.offered()
    call(process, "pics__photo")
    process.process.stdin.close()
    assert process.wait() == 0
    (path,) = folder.glob("session-*.jsonl")
    lines = [json.loads(line) for line in path.read_text("utf-8").splitlines()]
    assert [line["params"]["name"] for line in lines if line.get("method") == "tools/call"] == ["picture"]
    (tools,) = (line["result"]["tools"] for line in lines if line.get("method") == "tools/list")
    assert {"picture", "failing"} <= {tool["name"] for tool in tools}


def test_status_says_that_it_records(start, command, pictures, folder):
    process = start("serve", "--config", pictures(), "--record", folder, "--record-limit", "20MiB")
    process.initialize()
    call(process, process.offered()[0])
    (gateway,) = command("status", "--json").json()["gateways"]
    assert gateway["recording"]["folder"] == str(folder)
    assert gateway["recording"]["max_bytes"] == 20 * 1024 * 1024
    assert gateway["recording"]["exchanges"] > 0
    assert gateway["recording"]["problem"] is None
    assert f"recording: {folder}, " in command("status").out


def test_check_shows_what_each_host_would_have_seen(command, recording):
    folder, _ = recording
    checked = command("check", "--replay", folder, "--host", "codex", "--host", "cline", "--json").json()
    assert checked["server"] == "pics"
    assert {cell["host"] for cell in checked["cells"]} == {"codex", "cline"}
    every = command("check", "--replay", folder, "pics", "--tool", "picture", "--hosts", "all", "--json").json()
    assert len({cell["host"] for cell in every["cells"]}) > 10
    assert {case["tool"] for case in every["cases"]} == {"picture"}


def test_a_recorded_call_is_explained(command, recording):
    folder, _ = recording
    calls = command("explain", "--replay", folder, "--json").json()
    assert [one["call"] for one in calls] == list(range(1, len(calls) + 1))
    number = next(one["call"] for one in calls if one["tool"] == "picture")
    assert f"{number}" in command("explain", "--replay", folder).out
    explained = command("explain", "--replay", folder, "--call", str(number), "--profile", "cline")
    assert explained.code == 0
    assert "image: image/png" in explained.out
    missing = command("explain", "--replay", folder, "--call", "999")
    assert f"{folder}: has no call 999" in missing.err


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


def test_a_recording_that_cannot_be_used_is_said_at_the_start(command, folder, pictures):
    ended = command("serve", "--replay", folder)
    assert ended.code != 0
    assert f"{folder}: there is no such folder" in ended.err
    folder.mkdir()
    (folder / "notes.txt").write_text("mine")
    ended = command("serve", "--config", pictures(), "--record", folder)
    assert ended.code != 0
    assert "is not empty, and not a recording" in ended.err


@pytest.mark.usefixtures("recording")
def test_an_upstream_of_the_configuration_can_be_a_recording(command, tmp_path):
    config = tmp_path / "other.toml"
    config.write_text('[upstreams.pics]\nreplay = "recording"\n')
    called = command("call", "pics__picture", "--config", config, "--profile", "codex", "--json")
    assert called.code == 0
    assert any(block["type"] == "image" for block in called.json()["result"]["content"])
    config.write_text(f'[upstreams.pics]\nreplay = "recording"\ncommand = "{PICTURES}"\n')
    assert "replay answers in place of a server" in command("tools", "--config", config).err
