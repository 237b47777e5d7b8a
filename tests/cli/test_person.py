"""`mcp-gateway person` and `mcp-gateway access`: who may approve hosts, and which were approved."""

import io
import json
import time
import tomllib
from pathlib import Path
from typing import Any

import pytest

from gateway.config.load_settings import load_settings
from gateway.serving.authorization import sql_approvals
from gateway.serving.authorization.approvals import Approval
from gateway.serving.authorization.passphrases import is_passphrase
from gateway.serving.authorization.sqlite_database import SqliteDatabase
from gateway.telemetry.audit.chain import Chain
from gateway.telemetry.audit.verify import records_of

PASSPHRASE = "correct horse battery"
CONFIG = """# my servers
[upstreams.docs]  # the best
command = "docs"
enabled = false
"""
OIDC = """
[access.authorization_server.oidc]
issuer = "https://login.example.com"
client_id = "mcp-gateway"
name = "Example Corp"
people = ["*@example.com"]
"""


@pytest.fixture
def config(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MCP_GATEWAY_STATE", str(tmp_path / "state"))
    path = tmp_path / "mcp-gateway.toml"
    path.write_text(CONFIG, "utf-8")
    return path


@pytest.fixture
def typed(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Write a line to stdin."""

    def typed(line: str = PASSPHRASE) -> None:
        monkeypatch.setattr("sys.stdin", io.StringIO(f"{line}\n"))

    return typed


def people(config: Path) -> dict[str, Any]:
    return tomllib.loads(config.read_text("utf-8")).get("access", {}).get("people", {})


def test_a_person_is_added_with_the_hash_of_a_passphrase(config: Path, command: Any, typed: Any) -> None:
    typed()
    added = command("person", "add", "alice", "--upstream", "docs", "--tool", "docs__*", "--calls-per-minute", "9")
    assert "They reach the servers docs, of them the tools docs__*, and nothing else." in added.err
    assert added.code == 0
    assert "[access.authorization_server]" in added.err
    text = config.read_text("utf-8")
    assert text.startswith(CONFIG)
    assert PASSPHRASE not in text
    assert is_passphrase(PASSPHRASE, people(config)["alice"]["hash"])
    person = load_settings(config, environ={}).settings.access.people["alice"]
    assert (person.upstreams, person.tools, person.calls_per_minute) == (("docs",), ("docs__*",), 9)


def test_people_are_listed_without_anything_secret(config: Path, command: Any, typed: Any) -> None:
    assert "person add" in command("person", "ls").err
    typed()
    command("person", "add", "alice", "--admin")
    listed = command("person", "ls").out
    assert listed.splitlines()[1].split() == ["alice", "all", "all", "-", "-", "yes"]
    assert json.loads(command("person", "ls", "--json").out) == [{"name": "alice", "admin": True}]


def test_a_person_is_removed_and_the_rest_stays(config: Path, command: Any, typed: Any) -> None:
    typed()
    command("person", "add", "alice")
    assert command("person", "rm", "alice").code == 0
    assert config.read_text("utf-8").strip() == CONFIG.strip()
    refused = command("person", "rm", "alice")
    assert refused.code == 2
    assert "there is no person 'alice'" in refused.err


def test_who_may_log_in_otherwise_is_told_when_a_person_is_removed(config: Path, command: Any, typed: Any) -> None:
    for name in ("alice@example.com", "bob"):
        typed()
        command("person", "add", name)
    config.write_text(config.read_text("utf-8") + OIDC, "utf-8")
    assert "may still log in with Example Corp" in command("person", "rm", "alice@example.com").err
    assert "may still log in" not in command("person", "rm", "bob").err


@pytest.mark.parametrize(
    ("name", "line", "words"),
    [
        ("a b", PASSPHRASE, "cannot be the name of a person"),
        ("local", PASSPHRASE, "is the gateway's own"),
        ("alice", "short", "at least 12 characters"),
    ],
)
def test_a_person_that_cannot_be_is_refused(
    config: Path, command: Any, typed: Any, name: str, line: str, words: str
) -> None:
    typed(line)
    refused = command("person", "add", name)
    assert refused.code == 2
    assert words in refused.err
    assert people(config) == {}


def test_nobody_is_added_twice(config: Path, command: Any, typed: Any) -> None:
    typed()
    command("person", "add", "alice")
    typed()
    refused = command("person", "add", "alice")
    assert refused.code == 2
    assert "there is a person 'alice' already" in refused.err


def approve(config: Path, *names: str) -> None:
    """Let these people have approved a host."""
    database = SqliteDatabase(config.parent / "state" / "authorization.sqlite3")
    now = time.time()
    for place, name in enumerate(names):
        where = ("client", "Some Host", "host.example", name, "passphrase", "https://x.example/mcp", "mcp")
        approval = Approval(f"id{place}", *where, now, now, now + 90_000)

        def keep(connection: Any, approval: Approval = approval) -> None:
            code = sql_approvals.approve(connection, approval, "https://host.example/callback", "challenge")
            assert sql_approvals.use_code(connection, code, now, 60)

        database.run_now(keep)
    database.close()


def test_approved_hosts_are_listed_and_revoked(config: Path, command: Any, typed: Any) -> None:
    typed()
    command("person", "add", "alice")
    assert command("access", "ls").code == 2
    config.write_text(config.read_text("utf-8") + "\n[access.authorization_server]\n", "utf-8")
    assert "no host has been approved" in command("access", "ls").err
    approve(config, "alice", "bob", "bob")
    [headings, *rows] = command("access", "ls").out.splitlines()
    assert headings.split()[:3] == ["id", "person", "host"]
    assert {tuple(row.split()[:2]) for row in rows} == {("id0", "alice"), ("id1", "bob"), ("id2", "bob")}
    assert command("access", "revoke", "--person", "bob").out.count("revoked: Some Host, approved by bob") == 2
    assert command("access", "revoke", "id7").code == 2
    assert command("access", "revoke").code == 2
    assert command("access", "revoke", "id0").code == 0
    assert json.loads(command("access", "ls", "--json").out) == []
    assert command("access", "revoke", "--all").code == 0


def test_what_is_revoked_is_in_the_audit_trail(config: Path, command: Any, typed: Any) -> None:
    typed()
    command("person", "add", "alice")
    audited = '\n[access.authorization_server]\n\n[audit]\npath = "audit.jsonl"\n'
    config.write_text(config.read_text("utf-8") + audited, "utf-8")
    approve(config, "alice", "bob")
    own = Chain(config.parent / "audit.jsonl", max_bytes=100_000, keep=0)  # as a running gateway has it
    assert command("access", "revoke", "id1").code == 0
    [line] = [one for one in records_of(config.parent / "audit-2.jsonl") if one["event"] == "host approval"]
    assert (line["principal"], line["outcome"], line["approval"]) == ("bob", "revoked", "id1")
    assert (line["client"], line["goes_to"]) == ("Some Host", "host.example")
    assert line["by"].startswith("command line (")
    own.close()
    assert command("audit", "verify").code == 0


def test_revoking_does_not_depend_on_the_audit_trail(config: Path, command: Any, typed: Any) -> None:
    typed()
    command("person", "add", "alice")
    (config.parent / "file").write_text("", "utf-8")
    audited = '\n[access.authorization_server]\n\n[audit]\npath = "file/audit.jsonl"\n'
    config.write_text(config.read_text("utf-8") + audited, "utf-8")
    approve(config, "alice")
    revoked = command("access", "revoke", "id0")
    assert revoked.code == 1
    assert "not recorded in the audit trail" in revoked.err
    assert json.loads(command("access", "ls", "--json").out) == []
