"""The audit trail: what a line has, what it never has, and what happens when it cannot be written."""

import hashlib
import json
import threading
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import pybase64
import pytest
from anyio import to_thread

from gateway.config.schema import Settings
from gateway.config.upstream_settings import UpstreamSettings
from gateway.core.model.caller import Caller
from gateway.errors import AuditUnavailable, ConfigError, TooManyCalls, UpstreamTimeout
from gateway.telemetry.audit.chain import Chain
from gateway.telemetry.audit.trail import AuditTrail, open_audit_trail
from gateway.telemetry.audit.verify import records_of, verify_chain

pytestmark = pytest.mark.anyio

ALICE = Caller(
    revision="2025-11-25",
    client_name="codex",
    client_version="0.1",
    principal="alice",
    token="laptop",
    session="not-for-the-log",
    headers={"authorization": "Bearer not-for-the-log"},
)
SECRET = "s3cr3t-canary"
UPSTREAM = UpstreamSettings(
    url=f"https://user:{SECRET}@docs.example/mcp?key={SECRET}", headers={"Authorization": f"Bearer {SECRET}"}
)
PARAMS: Mapping[str, Any] = {
    "name": "docs__find",
    "arguments": {"what": "x", "password": "hunter2", "note": f"my {SECRET}"},
}
IMAGE = b"\x89PNG not really"
RESULT: Mapping[str, Any] = {
    "content": [
        {"type": "text", "text": "found"},
        {"type": "image", "data": pybase64.b64encode_as_string(IMAGE), "mimeType": "image/png"},
    ],
    "structuredContent": {"b": 1, "a": 2},
}


def sha256(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


@asynccontextmanager
async def trail_at(path: Path, **audit: Any) -> AsyncGenerator[AuditTrail]:
    settings = Settings.model_validate({"audit": {"path": path, **audit}, "upstreams": {"docs": dict(UPSTREAM)}})
    info = {"name": "docs server", "version": "3"}
    found: Callable[[str], Any] = lambda name: (UPSTREAM, info) if name == "docs" else None  # noqa: E731
    async with open_audit_trail(settings, found) as trail:
        assert trail is not None
        yield trail


async def call(trail: AuditTrail, params: Mapping[str, Any] = PARAMS, schema: Any = None, **how: Any) -> None:
    async with trail.begin("tools/call", params, ALICE, "codex") as entry:
        entry.routed("docs", "find", lambda: schema)
        if error := how.get("error"):
            raise error
        entry.returned(RESULT)
        entry.shown(how.get("shown", RESULT))


def lines(path: Path) -> list[dict[str, Any]]:
    assert verify_chain(path).breaks == []
    return list(records_of(path))


@pytest.fixture
def path(tmp_path) -> Path:
    return tmp_path / "audit.jsonl"


async def test_a_line_says_who_asked_for_what_and_what_was_shown(path):
    text = {"content": [{"type": "text", "text": "an image"}]}
    async with trail_at(path) as trail:
        await call(trail, shown=text)
    start, line = lines(path)
    assert start["event"] == "start"
    assert line["time"].endswith("Z")
    assert line["event"] == "tools/call"
    assert (line["principal"], line["token"]) == ("alice", "laptop")
    assert line["host"] == {"name": "codex", "version": "0.1", "profile": "codex", "revision": "2025-11-25"}
    assert (line["upstream"], line["tool"]) == ("docs", "find")
    assert line["server"] == {"name": "docs server", "version": "3", "url": "https://docs.example/mcp"}
    assert (line["decision"], line["outcome"]) == ("allow", "ok")
    canonical = json.dumps(PARAMS["arguments"], sort_keys=True, separators=(",", ":")).encode()
    assert line["arguments_sha256"] == sha256(canonical)
    assert line["returned"] == [
        {"type": "text", "bytes": 5, "sha256": sha256(b"found")},
        {"type": "image", "media_type": "image/png", "bytes": len(IMAGE), "sha256": sha256(IMAGE)},
        {"type": "structured", "bytes": 13, "sha256": sha256(b'{"a":2,"b":1}')},
    ]
    assert line["shown"] == [{"type": "text", "bytes": 8, "sha256": sha256(b"an image")}]


@pytest.mark.parametrize("rule", ["none", "hash", "full"])
async def test_no_line_has_a_secret(path, rule):
    schema = {
        "properties": {"pin": {"anyOf": [{"$ref": "#/$defs/pin"}, {"type": "null"}]}, "deep": {"items": {"$ref": "#"}}},
        "$defs": {"pin": {"format": "password"}},
    }
    arguments = {**PARAMS["arguments"], "pin": "1234-5678", "deep": [{"pin": "8765-4321"}], "big": SECRET * 1_000}
    async with trail_at(path, arguments=rule) as trail:
        await call(trail, {"name": "docs__find", "arguments": arguments}, schema)
        error = UpstreamTimeout("docs", f"no answer to {SECRET}")
        with pytest.raises(UpstreamTimeout):
            await call(trail, {"name": "docs__find", "arguments": arguments}, schema, error=error)
        trail.login("alice", "docs", "failed", f"https://login.example/{SECRET}")
        trail.reloaded([f"upstream {SECRET} added"])
        async with trail.begin("resources/read", {"uri": f"docs://{SECRET}?token=hunter2"}, ALICE, "codex") as entry:
            entry.routed("docs")
    written = path.read_text("utf-8")
    for secret in (SECRET, "hunter2", "1234-5678", "8765-4321", "not-for-the-log"):
        assert secret not in written
    shown = lines(path)[1].get("arguments")
    assert ("arguments_sha256" in lines(path)[1]) is (rule != "none")
    if rule != "full":
        assert shown is None
    else:
        assert isinstance(shown, dict)
        assert {**shown, "big": ""} == {
            "what": "x",
            "password": "***",
            "note": "my ***",
            "pin": "***",
            "deep": [{"pin": "***"}],
            "big": "",
        }
        assert shown["big"].startswith("<13,000 characters, sha256 ")


async def test_each_tool_may_have_a_rule_of_its_own(path):
    async with trail_at(path, arguments="none", tools={"docs__f*": "full", "*": "hash"}) as trail:
        assert trail.argument_rule("docs", "find") == "full"
        assert trail.argument_rule("docs", "other") == "hash"
        trail.reconfigure(Settings.model_validate({"audit": {"path": path, "arguments": "none"}}))
        assert trail.argument_rule("docs", "find") == "none"


async def test_what_went_wrong_is_named(path):
    async with trail_at(path) as trail:
        with pytest.raises(UpstreamTimeout):
            await call(trail, error=UpstreamTimeout("docs", "took too long"))
        with pytest.raises(TooManyCalls):
            await call(trail, error=TooManyCalls("only 1 tool call a day is allowed"))
        await call(trail, shown={"content": [], "isError": True})
        with anyio.CancelScope() as scope:
            async with trail.begin("tools/call", PARAMS, ALICE, "codex"):
                scope.cancel()
                await anyio.sleep_forever()
    _, timeout, limited, failed, cancelled = lines(path)
    assert (timeout["outcome"], timeout["cause"]) == ("timeout", "upstream 'docs': took too long")
    assert (limited["decision"], limited["rule"]) == ("deny", "limits")
    assert failed["outcome"] == "tool_error"
    assert cancelled["outcome"] == "cancelled"


async def test_what_the_gateway_turned_down_is_no_error_of_the_tool(path):
    async with trail_at(path) as trail, trail.begin("tools/call", PARAMS, ALICE, "codex") as entry:
        entry.routed("docs", "find")
        entry.turned_down("photo: there is no content with the handle 'img_0'")
        entry.returned({"content": [], "isError": True})
        entry.shown({"content": [], "isError": True})
    *_, line = lines(path)
    assert (line["outcome"], line["cause"]) == ("invalid", "photo: there is no content with the handle 'img_0'")
    assert "returned" not in line


async def test_events_have_lines_of_their_own(path):
    async with trail_at(path) as trail:
        trail.reloaded(["upstream docs added"])
        trail.reloaded((), "http.port: must be a number")
        trail.login("alice", "docs", "ok", "https://login.example")
        trail.approval("alice", "docs", "delete", "allow", "destructive", by="terminal")
        for _ in range(100):
            trail.token_refused("192.0.2.1", "wrong")
            trail.too_many_requests("alice", "laptop")
            trail.too_many_requests("bob", None)
            trail.login_refused("alice", "192.0.2.1", "a wrong passphrase")
        trail.host_approval("alice", "approved", "9f86d081884c", "Claude", "claude.ai")
    events = lines(path)[1:]
    assert [event["event"] for event in events] == [
        *("reload", "reload", "login", "approval", "token refused", "too many requests", "too many requests"),
        *("login refused", "host approval"),
    ]
    assert events[1]["problem"] == "http.port: must be a number"
    assert events[3]["by"] == "terminal"
    assert [(event["principal"], event.get("token")) for event in events[5:7]] == [("alice", "laptop"), ("bob", None)]
    assert {(event["decision"], event["rule"]) for event in events[5:7]} == {("deny", "limits")}
    assert (events[7]["principal"], events[7]["address"]) == ("alice", "192.0.2.1")
    assert (events[8]["outcome"], events[8]["approval"], events[8]["goes_to"]) == (
        *("approved", "9f86d081884c", "claude.ai"),
    )


async def test_calls_at_once_are_lines_in_one_chain(path):
    async with trail_at(path, max_bytes="8KiB") as trail, anyio.create_task_group() as tasks:
        for _ in range(200):
            tasks.start_soon(call, trail)
    assert len(lines(path)) == 201
    assert verify_chain(path).files > 3


class _FullDisk:
    """A disk that can be full."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.is_full = True
        self.has_lost_three = threading.Event()
        append = Chain.append

        def refusing(chain: Chain, records: Any) -> None:
            if records[-1].get("lines") == 3:
                self.has_lost_three.set()
            if self.is_full:
                raise OSError(28, "No space left on device")
            append(chain, records)

        monkeypatch.setattr(Chain, "append", refusing)


async def failing_call(disk: _FullDisk, trail: AuditTrail) -> None:
    """A call that fails, while the disk becomes full."""
    async with trail.begin("tools/call", PARAMS, ALICE, "codex"):
        disk.is_full = True
        raise UpstreamTimeout("docs", "took too long")


async def test_requests_are_refused_while_nothing_can_be_written(path, monkeypatch, caplog):
    disk, asked = _FullDisk(monkeypatch), 0
    async with trail_at(path) as trail:
        for said in ("carried out, but its result is withheld", "the request is refused", "the request is refused"):
            with pytest.raises(AuditUnavailable, match=said):
                async with trail.begin("tools/call", PARAMS, ALICE, "codex"):
                    asked += 1
        assert asked == 1  # the first showed it, and the others were refused before anything was asked
        assert trail.problem == "No space left on device"
        assert "requests are refused" in caplog.text
        disk.is_full = False
        with pytest.raises(UpstreamTimeout):  # where there is no result, none is withheld
            await failing_call(disk, trail)
        disk.is_full = False
        await call(trail)
        assert trail.problem is None
    assert [line["event"] for line in lines(path)] == ["start", *["tools/call"] * 3]


async def test_or_they_are_answered_and_what_was_lost_is_counted(path, monkeypatch, caplog):
    disk = _FullDisk(monkeypatch)
    monkeypatch.setattr("gateway.telemetry.audit.record_writer._UNWRITTEN", 2)
    async with trail_at(path, on_failure="warn") as trail:
        for _ in range(5):
            await call(trail)
        await to_thread.run_sync(disk.has_lost_three.wait)
        disk.is_full = False
        await call(trail)
    assert caplog.text.count("requests are answered without") == 1
    events = lines(path)
    assert [line["event"] for line in events] == ["start", "tools/call", "tools/call", "dropped"]
    assert events[-1]["lines"] == 4


async def test_a_path_that_cannot_be_written_to_is_refused_at_the_start(tmp_path):
    (tmp_path / "file").write_text("", "utf-8")
    with pytest.raises(ConfigError, match=r"audit\.path: cannot be written: .*name a file in a folder of this user"):
        async with trail_at(tmp_path / "file" / "audit.jsonl"):
            pass


async def test_only_the_last_folder_of_the_path_is_created(tmp_path):
    with pytest.raises(ConfigError, match=rf"or create {tmp_path}/missing"):
        async with trail_at(tmp_path / "missing" / "logs" / "audit.jsonl"):
            pass
    assert not (tmp_path / "missing").exists()


async def test_without_a_path_nothing_is_audited():
    async with open_audit_trail(Settings(), lambda _: None) as trail:
        assert trail is None


async def test_events_that_find_no_room_are_counted(path, monkeypatch):
    monkeypatch.setattr("gateway.telemetry.audit.trail._QUEUED", 3)
    async with trail_at(path) as trail:
        for _ in range(5):  # nothing is awaited, so the writer takes none of them
            trail.login("alice", "docs", "ok")
    events = lines(path)
    assert [line["event"] for line in events] == ["start", "login", "login", "login", "dropped"]
    assert events[-1]["lines"] == 2


async def test_a_request_that_is_cancelled_while_there_is_no_room_is_counted(path, monkeypatch):
    monkeypatch.setattr("gateway.telemetry.audit.trail._QUEUED", 1)
    async with trail_at(path) as trail:
        trail.login("alice", "docs", "ok")
        with anyio.CancelScope() as scope:
            scope.cancel()
            await call(trail)
    assert [line["event"] for line in lines(path)] == ["start", "login", "dropped"]
