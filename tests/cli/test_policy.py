"""`mcp-gateway policy test`, `tools --why`, and what `doctor` says about rules that match nothing."""

import json
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.cli.conftest import Ended

Command = Callable[..., Ended]

SERVER = Path(__file__).parents[1] / "servers" / "turncoat_stdio.py"
UPSTREAM = f"[upstreams.mail]\ncommand = {json.dumps(sys.executable)}\nargs = [{json.dumps(str(SERVER))}]\n"
RULES = """
[[policy.rules]]
name = "alice-may-send"
effect = "allow"
tools = ["mail__send"]
principals = ["alice"]

[[policy.rules]]
name = "not-to-me"
effect = "deny"
arguments = { required = ["to"], properties = { to = { const = "me" } } }
reason = "Nobody writes to me."

[[policy.rules]]
name = "look-first"
effect = "approve"
destructive = true

[[policy.rules]]
name = "no-finding"
effect = "deny"
tools = ["mail__l*"]
"""


@pytest.fixture
def config(tmp_path: Path) -> Path:
    path = tmp_path / "mcp-gateway.toml"
    path.write_text(UPSTREAM + RULES)
    return path


def test_the_rule_that_decides_is_named(command: Command, config: Path) -> None:
    def verdict(*words: str) -> tuple[int, str, str | None, str, str | None]:
        code, out, _ = command("policy", "test", *words, "--config", config, "--json")
        said = json.loads(out)
        return code, said["list"]["verdict"], said["list"]["rule"], said["call"]["verdict"], said["call"]["rule"]

    assert verdict("mail__send", "--principal", "alice") == (0, "allow", "alice-may-send", "allow", "alice-may-send")
    assert verdict("mail__send") == (1, "approve", "look-first", "approve", "look-first")
    assert verdict("mail__send", "--arguments", '{"to": "me"}') == (1, "approve", "look-first", "deny", "not-to-me")
    reading = ("--annotations", '{"readOnlyHint": true}')
    assert verdict("mail__look", *reading) == (1, "deny", "no-finding", "deny", "no-finding")
    assert verdict("mail__other", *reading) == (0, "allow", None, "allow", None)


def test_the_answer_can_be_read(command: Command, config: Path) -> None:
    code, out, err = command("policy", "test", "mail__send", "--arguments", '{"to": "me"}', "--config", config)
    assert (code, err) == (1, "")
    assert out.splitlines() == [
        "the tool is not known yet, so it counts as one without annotations: destructive, in an open world",
        "list: offered, by the rule 'look-first'",
        "call: denied, by the rule 'not-to-me' (Nobody writes to me.)",
    ]


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        (("mail__send", "--arguments", "{"), "is not JSON"),
        (("mail__send", "--arguments", "[]"), "is not a JSON object"),
        (("send",), "is not a tool of a server"),
        (("other__send",), "the servers are: mail"),
    ],
    ids=str,
)
def test_what_cannot_be_asked_is_refused(
    command: Command, config: Path, words: tuple[str, ...], complaint: str
) -> None:
    code, _, err = command("policy", "test", *words, "--config", config)
    assert code == 2
    assert complaint in err


def test_tools_tells_what_is_withheld_and_why_if_asked(command: Command, config: Path) -> None:
    listed = command("tools", "--config", config, "--json").json()
    assert "withheld" not in listed
    listed = command("tools", "--config", config, "--why", "--json").json()
    assert listed["withheld"] == {"mail__look": "not allowed by the rule 'no-finding' of the gateway"}
    assert listed["asks"] == {"mail__turn": "look-first", "mail__send": "look-first"}
    shown = command("tools", "--config", config, "--why").out
    assert "mail__look is withheld: not allowed" in shown
    assert "mail__send asks the user first, by the rule 'look-first'" in shown


def test_doctor_finds_rules_that_match_nothing(command: Command, tmp_path: Path) -> None:
    config = tmp_path / "mcp-gateway.toml"
    rules = '[[policy.rules]]\nname = "a"\neffect = "deny"\ntools = ["mail__snd", "mail__se*"]\nupstreams = ["male"]\n'
    config.write_text(UPSTREAM + rules)
    found = command("doctor", "--config", config, "--json").json()["findings"]
    assert [each["text"] for each in found if each["about"] == "policy"] == [
        "policy.rules[0].upstreams: 'male' of the rule 'a' matches no upstream",
        "policy.rules[0].tools: 'mail__snd' of the rule 'a' matches no tool",
    ]
