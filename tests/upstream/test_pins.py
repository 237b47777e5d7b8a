"""Pins on disk: of first lists, held against later ones, shared by gateways, approved by commands."""

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from gateway.config.policy_settings import PinMode
from gateway.config.schema import Settings
from gateway.config.upstream_settings import UpstreamSettings
from gateway.core.model.caller import Caller
from gateway.routing.call_rules import CallRules
from gateway.upstream import Upstream
from gateway.upstream.catalogues import RememberedLists
from gateway.upstream.pin_files import PinnedTools, PinsDamaged, PinsNewer, change_pins, pins_path, read_pins
from gateway.upstream.pins import Pins

HOST = Caller()


@dataclass
class Server:
    """An upstream that is what a test says."""

    name: str = "mail"
    settings: UpstreamSettings = field(default_factory=lambda: UpstreamSettings(command="mail"))
    server_info: dict[str, Any] | None = field(default_factory=lambda: {"name": "Mail", "version": "1"})
    kind: str | None = "{}"

    def listed_kind(self, caller: Caller) -> str | None:
        return self.kind


def tool(name: str, *required: str, words: str = "Sends.", **annotations: Any) -> dict[str, Any]:
    properties = {each: {"type": "string"} for each in ("to", *required)}
    schema = {"type": "object", "properties": properties, "required": list(required)}
    return {"name": name, "description": words, "inputSchema": schema, "annotations": annotations}


SEND, READ = tool("send"), tool("read")


def held(pins: Pins, server: Server, *tools: Any) -> dict[str, str]:
    return {each.tool: each.why for each in pins.look(server, HOST, tools)()}


@pytest.fixture
def server() -> Server:
    return Server()


def file_of(folder: Path, server: Server) -> Path:
    return pins_path(folder, server.name, server.settings)


@pytest.mark.parametrize("folder", ["here", None])
def test_a_changed_tool_and_a_new_one_are_withheld_and_the_others_are_not(
    tmp_path: Path, server: Server, folder: str | None
) -> None:
    pins = Pins(None if folder is None else tmp_path / folder, "hold")
    assert held(pins, server, SEND, READ) == {}
    found = held(pins, server, tool("send", "bcc"), READ, tool("steal"))
    assert list(found) == ["send", "steal"]
    assert "argument bcc is new and required" in found["send"]
    assert "mcp-gateway pins diff mail" in found["send"]
    assert "new since" in found["steal"]
    assert held(pins, server, SEND, READ) == {}


def test_a_reworded_tool_is_reported_but_goes_on(tmp_path: Path, server: Server) -> None:
    pins = Pins(tmp_path, "hold")
    held(pins, server, SEND)
    assert held(pins, server, tool("send", words="Sends mail.")) == {}
    (change,) = pins.changes(server.name, server.settings)
    assert change.is_wording
    assert pins.summary(server.name, server.settings) is None


def test_a_changed_annotation_withholds(tmp_path: Path, server: Server) -> None:
    pins = Pins(tmp_path, "hold")
    held(pins, server, tool("send", destructiveHint=True))
    assert "destructiveHint was true, and is false" in held(pins, server, tool("send", destructiveHint=False))["send"]


def test_a_second_tool_of_the_same_name_has_to_match_too(tmp_path: Path, server: Server) -> None:
    pins = Pins(tmp_path, "hold")
    held(pins, server, SEND)
    assert list(held(pins, server, SEND, tool("send", "bcc"))) == ["send"]


def test_another_server_under_the_same_settings_is_withheld_as_a_whole(tmp_path: Path, server: Server) -> None:
    pins = Pins(tmp_path, "hold")
    held(pins, server, SEND)
    server.server_info = {"name": "Mail", "version": "2"}
    assert held(pins, server, SEND) == {}
    server.server_info = {"name": "Malory", "version": "2"}
    assert "calls itself Malory" in held(pins, server, SEND)["send"]
    assert "all tools withheld" in str(pins.summary(server.name, server.settings))


def test_in_warn_mode_nothing_is_withheld(tmp_path: Path, server: Server, caplog: pytest.LogCaptureFixture) -> None:
    pins = Pins(tmp_path, "warn")
    held(pins, server, SEND)
    for _ in range(3):
        assert held(pins, server, tool("send", "bcc")) == {}
    assert [record.message.count("send") for record in caplog.records] == [1]


def test_off_writes_nothing_and_an_upstream_may_decide_otherwise(tmp_path: Path, server: Server) -> None:
    pins = Pins(tmp_path)
    held(pins, server, SEND)
    assert list(tmp_path.iterdir()) == []
    server.settings = UpstreamSettings(command="mail", pins="hold")
    held(pins, server, SEND)
    assert file_of(tmp_path, server).exists()


def test_an_empty_list_is_not_pinned_and_neither_is_a_remembered_one(tmp_path: Path, server: Server) -> None:
    pins = Pins(tmp_path, "hold")
    held(pins, server)
    server.kind = None
    held(pins, server, SEND)
    assert read_pins(file_of(tmp_path, server)) is None
    server.kind = "{}"
    assert held(pins, server, SEND) == {}
    server.kind = None
    assert list(held(pins, server, tool("send", "bcc"))) == ["send"]
    assert pins.changes(server.name, server.settings) == []


def test_the_first_list_for_another_kind_of_hosts_is_pinned_without_what_was_withheld(
    tmp_path: Path, server: Server
) -> None:
    pins = Pins(tmp_path, "hold")
    held(pins, server, SEND)
    assert list(held(pins, server, SEND, tool("steal"))) == ["steal"]
    server.kind = '{"elicitation": {}}'
    found = held(pins, server, SEND, tool("ask"), tool("steal"), tool("steal"))
    assert list(found) == ["steal"]
    assert list(held(pins, server, tool("send", "bcc"), tool("ask"), tool("more"))) == ["send", "more"]


def test_other_settings_are_another_server_but_a_changed_token_is_not(tmp_path: Path, server: Server) -> None:
    before = file_of(tmp_path, server)
    server.settings = UpstreamSettings(command="mail", env={"TOKEN": "new"})
    assert file_of(tmp_path, server) == before
    server.settings = UpstreamSettings(command="mail", args=("--other",))
    assert file_of(tmp_path, server) != before


def test_approving_pins_what_was_seen(tmp_path: Path, server: Server) -> None:
    pins, path = Pins(tmp_path, "hold"), file_of(tmp_path, server)
    held(pins, server, SEND, READ)
    news = [tool("send", "bcc"), tool("read", "all"), tool("steal")]
    assert len(held(pins, server, *news)) == 3
    change_pins(path, lambda now: now and now.approved(frozenset({"send"})))
    assert list(held(pins, server, *news)) == ["read", "steal"]
    change_pins(path, lambda now: now and now.approved())
    assert held(pins, server, *news) == {}
    assert list(held(pins, server, SEND)) == ["send"]


def test_two_gateways_share_the_file(tmp_path: Path, server: Server) -> None:
    one, other = Pins(tmp_path, "hold"), Pins(tmp_path, "hold")
    assert held(one, server, SEND) == {}
    assert list(held(other, server, SEND, tool("steal"))) == ["steal"]
    assert [change.tool for change in one.changes(server.name, server.settings)] == ["steal"]
    change_pins(file_of(tmp_path, server), lambda now: now and now.approved())
    assert held(one, server, SEND, tool("steal")) == held(other, server, SEND, tool("steal")) == {}


@pytest.mark.parametrize(
    "damage",
    [
        lambda text: text[: len(text) // 2],
        lambda text: "[]",
        lambda text: text.replace('"version":1', '"version":0'),
        lambda text: text.replace("Sends.", "Sends!"),
        lambda text: "\x00",
        lambda text: "[" * 100_000,
    ],
    ids=["cut", "another value", "no version", "edited", "no JSON", "deep"],
)
@pytest.mark.parametrize("mode", ["hold", "warn"])
def test_damaged_pins_withhold_everything_where_changes_would(
    tmp_path: Path, server: Server, damage: Any, mode: PinMode
) -> None:
    pins, path = Pins(tmp_path, mode), file_of(tmp_path, server)
    held(pins, server, SEND)
    damaged = damage(path.read_text())
    path.write_text(damaged)
    assert list(held(pins, server, SEND)) == (["send"] if mode == "hold" else [])
    assert path.read_text() == damaged
    assert "pins approve mail" in str(pins.summary(server.name, server.settings))
    with pytest.raises(PinsDamaged):
        read_pins(path)


@pytest.mark.parametrize("mode", ["hold", "warn"])
def test_pins_of_a_newer_gateway_withhold_as_damaged_ones_do_and_are_never_replaced(
    tmp_path: Path, server: Server, mode: PinMode
) -> None:
    pins, path = Pins(tmp_path, mode), file_of(tmp_path, server)
    held(pins, server, SEND)
    path.write_text(path.read_text().replace('"version":1', '"version":9'))
    newer = path.read_bytes()
    assert list(held(pins, server, SEND)) == (["send"] if mode == "hold" else [])
    assert "update the gateway" in str(pins.summary(server.name, server.settings))
    with pytest.raises(PinsNewer):
        change_pins(path, lambda _: PinnedTools(server.name))
    assert path.read_bytes() == newer


def test_pins_that_cannot_be_written_hold_for_as_long_as_the_gateway_runs(tmp_path: Path, server: Server) -> None:
    (tmp_path / "file").write_text("")
    pins = Pins(tmp_path / "file" / "pins", "hold")
    assert held(pins, server, SEND) == {}
    assert list(held(pins, server, SEND, tool("steal"))) == ["steal"]


def test_the_file_is_for_its_user_only_and_has_a_digest_of_each_tool(tmp_path: Path, server: Server) -> None:
    pins = Pins(tmp_path / "pins", "hold")
    held(pins, server, SEND)
    path = file_of(tmp_path / "pins", server)
    assert path.stat().st_mode & 0o077 == 0
    assert len(json.loads(path.read_text())["tools"]["send"]["sha256"]) == 64


@pytest.mark.anyio
async def test_the_tools_of_everybody_who_has_logged_in_are_pinned_too(tmp_path: Path) -> None:
    settings = Settings(upstreams={"x": UpstreamSettings(url="https://x.example/mcp", pins="hold")})
    logins: Any = object()
    upstream = Upstream("x", settings.upstreams["x"], on_change=lambda *_: None, logins=logins, is_personal=True)
    upstreams: Any = {"x": upstream}
    rules = CallRules(upstreams, settings, Pins(tmp_path, "hold"))

    def withheld(name: str, *tools: Any) -> set[str]:
        caller = Caller(principal=name)
        upstream.for_principal(name).default.lists.take(RememberedLists(tools=tools))
        return {each.tool for each in rules.look(caller, {"x": upstream.lists_for(caller).tools})()}

    assert withheld("alice", SEND) == set()  # only remembered: it may be about to change
    for name in ("alice", "bob"):
        upstream.for_principal(name).default.has_listed = True
    assert withheld("alice", SEND) == set()
    assert withheld("alice", tool("send", "bcc"), READ) == {"send", "read"}
    assert withheld("bob", SEND, tool("search")) == set()
    assert withheld("bob", SEND, tool("search"), tool("drop")) == {"drop"}
