"""`mcp-gateway approvals`: calls of a running gateway are approved or denied in a terminal."""

import json
import os
import re
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.cli.conftest import Ended

pytestmark = pytest.mark.skipif(os.name != "posix", reason="Unix sockets and signals are POSIX's")

Command = Callable[..., Ended]

SERVER = Path(__file__).parents[1] / "servers" / "turncoat_stdio.py"
CONFIG = f"""
[upstreams.mail]
command = {json.dumps(sys.executable)}
args = [{json.dumps(str(SERVER))}]

[[policy.rules]]
name = "look-first"
effect = "approve"
destructive = true
reason = "It may send mail."
"""


@pytest.fixture
def process(start: Any, tmp_path: Path) -> Any:
    path = tmp_path / "mcp-gateway.toml"
    path.write_text(CONFIG)
    started = start("serve", "--config", path)
    started.initialize("claude-code")
    return started


def refused_id(words: str) -> str:
    found = re.search(r"mcp-gateway approvals approve (\w+)", words)
    assert found, words
    return found[1]


def test_a_call_is_made_after_its_approval_and_not_after_a_denial(process: Any, command: Command, ask: Any) -> None:
    assert "look" in ask(process, "mail__look")
    call = refused_id(ask(process, "mail__send", {"to": "you\x1b[31m"}, fails=True))
    (waiting,) = command("approvals", "ls", "--json").json()
    assert (waiting["id"], waiting["tool"], waiting["principal"], waiting["rule"]) == (
        call,
        "send",
        "local",
        "look-first",
    )
    assert "1 call waiting for an approval: mcp-gateway approvals ls" in command("status").out
    shown = command("approvals", "ls").out
    assert all(words in shown for words in (call, "mail: send", "claude-code", "It may send mail."))
    assert "\x1b" not in shown
    code, _, err = command("approvals", "approve", call)
    assert (code, "--yes" in err) == (2, True)
    assert "needs the user's approval" in ask(process, "mail__send", {"to": "you\x1b[31m"}, fails=True)
    assert command("approvals", "approve", call, "--yes").code == 0
    assert "you" in ask(process, "mail__send", {"to": "you\x1b[31m"})
    call = refused_id(ask(process, "mail__send", {"to": "you"}, fails=True))
    assert command("approvals", "deny", call).code == 0
    assert "declined" in ask(process, "mail__send", {"to": "you"}, fails=True)
    assert command("approvals", "ls", "--json").json() == []


def test_a_call_from_the_command_line_is_approved_by_an_option(command: Command, tmp_path: Path) -> None:
    config = tmp_path / "mcp-gateway.toml"
    config.write_text(CONFIG)
    code, _, err = command("call", "mail__send", '{"to": "you"}', "--config", config)
    assert (code, "--approve approves this call" in err) == (1, True)
    code, out, _ = command("call", "mail__send", '{"to": "you"}', "--approve", "--config", config)
    assert (code, "you" in out) == (0, True)


def test_a_host_that_can_is_asked_for_its_user(start: Any, tmp_path: Path) -> None:
    config = tmp_path / "mcp-gateway.toml"
    config.write_text(CONFIG)
    process = start("serve", "--config", config)
    capabilities = {"elicitation": {}}
    client = {"name": "a-host", "version": "1"}
    params = {"protocolVersion": "2025-06-18", "capabilities": capabilities, "clientInfo": client}
    process.send(id=1, method="initialize", params=params)
    process.answer(1)
    process.send(method="notifications/initialized")
    answers = [("accept", "allow"), ("accept", "do not allow"), ("decline", ""), ("accept", "allow")]
    for number, (action, decision) in enumerate(answers, 10):
        process.send(id=number, method="tools/call", params={"name": "mail__send", "arguments": {"to": "you"}})
        question = process.next_request()
        assert question["method"] == "elicitation/create"
        assert "look-first" in question["params"]["message"]
        process.send(id=question["id"], result={"action": action, "content": {"decision": decision}})
        is_error = process.answer(number)["result"].get("isError", False)
        assert is_error is (decision != "allow")


def test_an_unknown_id_is_an_error(process: Any, command: Command, ask: Any) -> None:
    ask(process, "mail__look")
    code, _, err = command("approvals", "approve", "nothing", "--yes")
    assert code == 1
    assert "no call with this id" in err
