"""`mcp-gateway audit`: lines of real chains, whole and broken."""

import json
from pathlib import Path

import pytest

from gateway.cli.commands import audit
from gateway.telemetry.audit.chain import Chain

CALL = {
    "time": "2026-11-22T10:00:00.000Z",
    "event": "tools/call",
    "principal": "alice",
    "host": {"name": "codex"},
    "upstream": "docs",
    "tool": "find",
    "decision": "allow",
    "outcome": "ok",
    "seconds": 0.25,
    "arguments_sha256": "ab" * 32,
    "shown": [{"type": "image", "media_type": "image/png", "bytes": 2_000, "sha256": "cd" * 32}],
}


@pytest.fixture
def path() -> Path:
    """The audit trail of the configuration in this folder: three lines of one gateway, and one of another."""
    here = Path.cwd()
    (here / "mcp-gateway.toml").write_text('[audit]\npath = "log/audit.jsonl"\n', "utf-8")
    first, second = (Chain(here / "log" / "audit.jsonl", max_bytes=10_000, keep=0) for _ in range(2))
    refused = {**CALL, "principal": "bob", "decision": "deny", "rule": "limits", "outcome": "failed", "cause": "why"}
    first.append([{"time": "2026-11-22T09:00:00.000Z", "event": "start"}, CALL, refused])
    second.append([{"time": "2026-11-22T11:00:00.000Z", "event": "reload", "changes": ["upstream docs added"]}])
    for chain in (first, second):
        chain.keep_head()
        chain.close()
    return here / "log" / "audit.jsonl"


def test_whole_chains(command, path):
    ended = command("audit", "verify")
    assert (ended.code, ended.err) == (0, "")
    first, second = ended.out.splitlines()
    assert first.startswith(f"{path}: whole, 3 lines in 1 file, last line 3, sha256 ")
    assert second.startswith(f"{path.with_name('audit-2.jsonl')}: whole, 1 line in 1 file, last line 1, sha256 ")
    told = command("audit", "verify", "--json", "--file", str(path)).json()["chains"]
    assert [(one["file"], one["whole"], one["lines"]) for one in told] == [(str(path), True, 3)]


def test_a_broken_chain(command, path):
    path.write_text(path.read_text("utf-8").replace('"alice"', '"mallory"'), "utf-8")
    ended = command("audit", "verify")
    assert ended.code == 1
    assert ended.err == f"error: {path}:3: line 2 was changed: line 3 has another hash of it\n"
    assert f"{path}: broken in 1 place, 3 lines in 1 file" in ended.out
    assert command("audit", "verify", "--json").json()["chains"][0]["breaks"] == [
        {"file": str(path), "line": 3, "what": "line 2 was changed: line 3 has another hash of it"}
    ]


def test_lines_in_words(command, path):
    assert command("audit", "show").out.splitlines() == [
        "2026-11-22T09:00:00.000Z 1 start",
        "2026-11-22T10:00:00.000Z 2 alice (codex), tools/call docs__find, ok, 0.25 s, arguments abababababab, "
        "shown image/png 2.0 KB cdcdcdcdcdcd",
        "2026-11-22T10:00:00.000Z 3 bob (codex), tools/call docs__find, deny by limits, failed, 0.25 s, "
        "arguments abababababab, shown image/png 2.0 KB cdcdcdcdcdcd, cause why",
        "2026-11-22T11:00:00.000Z 1 reload, changes ['upstream docs added']",
    ]
    assert len(command("audit", "show", "--principal", "alice").out.splitlines()) == 1
    (line,) = command("audit", "show", "--json", "-n", "1", "--file", str(path)).out.splitlines()
    assert json.loads(line)["sequence"] == 3


def test_verdicts_in_words(command, path):
    about = {"event": "approval", "principal": "alice", "upstream": "mail", "tool": "send", "rule": "ask-first"}
    chain = Chain(path.with_name("other.jsonl"), max_bytes=10_000, keep=0)
    ways = (("denied", "host"), ("approved", "terminal"), ("approved", "program"))
    chain.append([{**about, "time": "2026-11-22T09:00:00.000Z", "verdict": verdict, "by": by} for verdict, by in ways])
    chain.close()
    shown = command("audit", "show", "--file", str(path.with_name("other.jsonl"))).out.splitlines()
    assert [line.split("mail__send, ")[1] for line in shown] == [
        "denied by the host's user, asked because of ask-first",
        "approved by somebody in a terminal, asked because of ask-first",
        "approved by the program's user, asked because of ask-first",
    ]


def test_new_lines_are_shown_as_they_are_written(command, path, monkeypatch):
    looks = 0

    def sleep(seconds: float) -> None:
        nonlocal looks
        looks += 1
        if looks > 1:
            raise KeyboardInterrupt
        chain = Chain(path, max_bytes=10_000, keep=0)
        chain.append([{"time": "later", "event": "reload"}])
        chain.keep_head()
        chain.close()

    monkeypatch.setattr(audit.time, "sleep", sleep)
    assert command("audit", "tail", "-n", "1", "--file", str(path)).out.splitlines()[1:] == ["later 4 reload"]


@pytest.mark.parametrize("words", [("verify",), ("show",), ("tail",)])
def test_where_there_is_none_that_is_said(command, words):
    ended = command("audit", *words)
    assert ended.code == 2
    assert "no audit trail is configured (set it, or name a --file)" in ended.err
    Path("mcp-gateway.toml").write_text('[audit]\npath = "audit.jsonl"\n', "utf-8")
    assert "nothing has been written yet" in command("audit", *words).err
    assert "there is no audit trail" in command("audit", *words, "--file", "nowhere.jsonl").err
