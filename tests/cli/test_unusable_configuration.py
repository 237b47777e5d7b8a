"""A configuration that cannot be used, and a host on stdio: its model and its user learn why there are no tools."""

import json

import pytest

from gateway.cli.diagnosis.start_faults import check_start
from gateway.config.fingerprint import usability
from gateway.config.load_settings import load_settings
from gateway.errors import ConfigError
from tests.cli.conftest import PATIENCE

ENVELOPE = {
    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
    "io.modelcontextprotocol/clientInfo": {"name": "test", "version": "1"},
    "io.modelcontextprotocol/clientCapabilities": {},
}
SHARED = pytest.mark.parametrize("shared", [(), ("--shared",)])


@pytest.fixture
def config(pictures):
    """The path of a configuration with a misspelt key, and the text that it should have had."""
    path = pictures("[shared]\nlinger = 1\n")
    sound = path.read_text()
    path.write_text(sound.replace("command", "comand"))
    return path, sound


def named(answer):
    return {tool["name"]: tool for tool in answer["result"]["tools"]}


def problem_told(process):
    """What a host is told that has just been connected: there is one tool, and its description is the problem."""
    process.initialize()
    process.send(id=2, method="tools/list")
    offered = named(process.answer(2))
    assert list(offered) == ["gateway_problem"]
    return offered["gateway_problem"]["description"]


def events(process, count):
    """The next notifications of a process; answers are passed over."""
    found = []
    while len(found) < count:
        message = json.loads(process.out.get(timeout=PATIENCE))
        if "id" not in message:
            found.append(message)
    return found


@SHARED
def test_a_model_learns_what_is_wrong_and_has_the_tools_once_that_is_corrected(start, config, command, shared):
    path, sound = config
    process = start("serve", "--config", path, *shared)
    assert "pics.comand: unknown key (did you mean 'command'?)" in problem_told(process)
    for request_id, name in ((3, "gateway_problem"), (4, "pics__picture")):
        process.send(id=request_id, method="tools/call", params={"name": name, "arguments": {}})
        assert "did you mean 'command'?" in json.dumps(process.answer(request_id))
    process.send(id=5, method="prompts/list")
    assert process.answer(5)["result"] == {"prompts": []}
    assert "did you mean 'command'?" in command("logs").out
    path.write_text("[gateway")
    process.line_with("is not TOML")
    process.send(id=6, method="tools/call", params={"name": "gateway_problem"})
    assert "is not TOML" in json.dumps(process.answer(6))
    path.write_text(sound)
    told = {event["method"] for event in events(process, 3)}
    assert told == {f"notifications/{kind}/list_changed" for kind in ("tools", "resources", "prompts")}
    assert "pics__picture" in process.offered()
    process.send(id=7, method="tools/call", params={"name": "pics__picture", "arguments": {}})
    assert "image" in [block["type"] for block in process.answer(7)["result"]["content"]]


@SHARED
def test_a_host_of_2026_07_28_hears_once_that_it_is_heard_and_then_that_its_list_has_changed(start, config, shared):
    path, sound = config
    process = start("serve", "--config", path, *shared)
    process.send(id="probe", method="server/discover", params={"_meta": ENVELOPE})
    process.answer("probe")
    heard = {"_meta": ENVELOPE, "notifications": {"toolsListChanged": True}}
    process.send(id="listen", method="subscriptions/listen", params=heard)
    (acknowledged,) = events(process, 1)
    assert acknowledged["method"] == "notifications/subscriptions/acknowledged"
    process.send(id=2, method="tools/list", params={"_meta": ENVELOPE})
    answer = process.answer(2)
    assert list(named(answer)) == ["gateway_problem"]
    assert answer["result"]["resultType"] == "complete"
    path.write_text(sound)
    (changed,) = events(process, 1)
    assert changed["method"] == "notifications/tools/list_changed"
    assert changed["params"] == {"_meta": acknowledged["params"]["_meta"]}
    for request_id in range(3, 60):
        process.send(id=request_id, method="tools/list", params={"_meta": ENVELOPE})
        if "pics__picture" in named(process.answer(request_id)):
            return
        assert events(process, 1)[0]["method"] == "notifications/tools/list_changed"
    raise AssertionError("the tools did not come")


@SHARED
def test_a_host_that_leaves_ends_a_gateway_that_was_never_usable(start, config, command, shared):
    process = start("serve", "--config", config[0], *shared)
    process.initialize()
    process.send(id=2, method="tools/list")
    process.answer(2)
    process.process.stdin.close()
    assert process.wait() == 2
    assert "did you mean 'command'?" in process.rest(process.err)[-1]
    assert "did you mean 'command'?" in command("logs").out


def test_a_file_that_is_not_there_is_waited_for_too(start, config, tmp_path):
    process = start("serve", "--config", tmp_path / "later.toml")
    process.initialize()
    process.send(id=2, method="tools/list")
    assert "later.toml" in named(process.answer(2))["gateway_problem"]["description"]
    (tmp_path / "later.toml").write_text(config[1])
    assert "pics__picture" in process.offered()


NOT_WRITABLE = '[audit]\npath = "/dev/null/audit.jsonl"\n[shared]\nlinger = 1\n'


@SHARED
def test_a_model_learns_why_a_valid_configuration_cannot_be_started_with(start, pictures, tmp_path, shared):
    path = pictures(NOT_WRITABLE)
    process = start("serve", "--config", path, *shared)
    assert "audit.path: cannot be written" in problem_told(process)
    path.write_text(path.read_text().replace("/dev/null", str(tmp_path)))
    events(process, 3)
    assert "pics__picture" in process.offered()


@pytest.mark.parametrize("words", [("config", "check"), ("install", "claude-code", "--dry-run"), ("doctor",)])
def test_what_a_start_would_refuse_is_said_before(command, pictures, words):
    ended = command(*words, "--config", pictures(NOT_WRITABLE))
    assert ended.code != 0
    assert "audit.path: cannot be written" in ended.out + ended.err


def test_a_package_that_a_start_needs_is_missed_before_it(command, pictures, monkeypatch):
    monkeypatch.setattr("gateway.sandbox.sandbox.find_spec", lambda name: None)
    path = pictures("[code_mode]\nenabled = true\n")
    with pytest.raises(ConfigError, match=r"code_mode\.enabled: scripts need a package .*install the extra code"):
        check_start(load_settings(path).settings, over_http=False)


def test_a_host_is_served_once_the_package_is_installed(monkeypatch, tmp_path):
    file, packages = tmp_path / "gateway.toml", tmp_path / "site-packages"
    file.write_text("")
    packages.mkdir()
    monkeypatch.syspath_prepend(packages)
    before = usability(file)
    assert usability(file) == before
    (packages / "new").mkdir()
    assert usability(file) != before
