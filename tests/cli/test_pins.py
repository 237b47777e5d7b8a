"""`mcp-gateway pins`: what has changed in words, and approving it, with a gateway that runs and without one."""

import json
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.cli.conftest import Ended

pytestmark = pytest.mark.skipif(os.name != "posix", reason="Unix sockets and signals are POSIX's")

Command = Callable[..., Ended]

SERVER = Path(__file__).parents[1] / "servers" / "turncoat_stdio.py"


@pytest.fixture
def config(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("MCP_GATEWAY_STATE", str(tmp_path / "state"))
    path = tmp_path / "mcp-gateway.toml"
    upstream = f"[upstreams.mail]\ncommand = {json.dumps(sys.executable)}\nargs = [{json.dumps(str(SERVER))}]\n"
    path.write_text(upstream + '[pins]\nmode = "hold"\n')
    return path


@pytest.fixture
def changed(start: Any, config: Path, ask: Any) -> Any:
    """A running gateway whose server has changed its tools after they were pinned."""
    process = start("serve", "--config", config)
    process.initialize()
    assert names(process) == ["mail__turn", "mail__send", "mail__look"]
    ask(process, "mail__turn")
    while "mail__send" in names(process):
        pass
    return process


def names(process: Any) -> list[str]:
    process.send(id="list", method="tools/list", params={})
    tools = process.answer("list")["result"]["tools"]
    return [tool["name"] for tool in tools if not tool["name"].startswith("gateway_")]


def test_changes_are_shown_in_words_and_approved_while_the_gateway_runs(
    changed: Any, command: Command, config: Path, ask: Any
) -> None:
    shown = command("pins", "diff", "--config", config)
    assert shown.code == 1
    assert shown.out.splitlines() == [
        "mail: send: argument bcc is new and required",
        "mail: look: its description is worded differently",
        "mail: find: it is new",
    ]
    (row,) = command("pins", "ls", "--config", config, "--json").json()
    assert (row["mode"], row["tools"], len(row["changes"])) == ("hold", ["look", "send", "turn"], 3)
    sentence = "2 tools withheld: changed or new since it was pinned (send, find); `mcp-gateway pins diff mail`"
    (upstream,) = command("status", "--json").json()["gateways"][0]["upstreams"]
    assert upstream["left_out"] == [sentence]
    assert f"mail: {sentence}" in command("status").out
    misspelled = command("pins", "approve", "mail", "sned", "--config", config)
    assert (misspelled.code, misspelled.out) == (1, "")
    assert "mail has no tool 'sned' (changed are: send, look, find)" in misspelled.err
    approved = command("pins", "approve", "mail", "send", "--config", config)
    assert (approved.code, approved.out.splitlines()[-1]) == (0, "approved: 1 change of mail")
    assert names(changed) == ["mail__turn", "mail__send", "mail__look"]
    assert "bcc" in ask(changed, "mail__send", {"to": "you", "bcc": "me"})
    assert command("pins", "approve", "mail", "--config", config).code == 0
    assert names(changed) == ["mail__turn", "mail__send", "mail__look", "mail__find"]
    assert command("pins", "diff", "mail", "--config", config).code == 0


def test_without_a_gateway_what_was_seen_last_is_shown_and_approved(
    changed: Any, command: Command, config: Path
) -> None:
    changed.process.kill()
    changed.wait()
    assert command("pins", "diff", "mail", "--config", config).code == 1
    assert command("pins", "approve", "mail", "--config", config).code == 0
    assert command("pins", "diff", "mail", "--config", config).code == 0
    assert "worded differently" in command("pins", "ls", "--config", config).out


def test_doctor_finds_changed_tools(changed: Any, command: Command, config: Path) -> None:
    changed.process.kill()
    changed.wait()
    # The server that doctor starts is as it was pinned, but for what it was seen with it has to be told apart.
    found = command("doctor", "--config", config, "--json").json()["findings"]
    assert not any("withheld" in each["text"] for each in found)
    path = next((config.parent / "state" / "pins").glob("mail-*.json"))
    pins = json.loads(path.read_text())
    pins["server"] = {"name": "another"}
    path.write_text(json.dumps(pins))
    found = command("doctor", "--config", config, "--json").json()["findings"]
    (finding,) = [each for each in found if "withheld" in each["text"]]
    assert (finding["level"], finding["cure"]) == ("problem", "mcp-gateway pins diff mail")


def test_damaged_pins_are_reported_and_can_be_made_anew(changed: Any, command: Command, config: Path) -> None:
    path = next((config.parent / "state" / "pins").glob("mail-*.json"))
    path.write_text(path.read_text()[:-10])
    assert "cannot be read" in command("pins", "diff", "mail", "--config", config).err
    assert "damaged" in command("pins", "ls", "--config", config).out
    assert command("pins", "approve", "mail", "--config", config).code == 0
    assert len(names(changed)) == 4
    assert path.exists()


def test_an_unknown_server_is_refused(command: Command, config: Path) -> None:
    for words in (("diff", "male"), ("approve", "male")):
        code, _, err = command("pins", *words, "--config", config)
        assert (code, "there is no upstream 'male' (did you mean 'mail'?)" in err) == (2, True)


def test_a_server_can_be_added_with_pins(command: Command, config: Path) -> None:
    assert command("add", "other", "--pin", "--config", config, "--", "some-server").code == 0
    assert 'pins = "hold"' in config.read_text()
    (_, row) = command("pins", "ls", "--config", config, "--json").json()
    assert (row["server"], row["mode"], row["pinned"]) == ("other", "hold", None)
