"""What routing tells the audit trail: whatever was asked, decided, returned and shown."""

from collections.abc import AsyncGenerator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from gateway.config.access_settings import AccessSettings
from gateway.config.policy_settings import PolicySettings
from gateway.config.schema import Settings
from gateway.core.model.caller import Caller
from gateway.core.model.grant import Grant
from gateway.errors import (
    ApprovalNeeded,
    InvalidRequest,
    NotAllowed,
    ScopeMissing,
    TooManyCalls,
    UnknownTool,
    UpstreamUnavailable,
)
from gateway.telemetry.audit.trail import AuditTrail, open_audit_trail
from gateway.telemetry.audit.verify import records_of

pytestmark = pytest.mark.anyio

ALICE = Caller(revision="2025-11-25", client_name="codex", principal="alice")


@pytest.fixture
def path(tmp_path) -> Path:
    return tmp_path / "audit.jsonl"


@pytest.fixture
async def trail(path) -> AsyncGenerator[AuditTrail]:
    settings = Settings.model_validate({"audit": {"path": path, "arguments": "full"}})
    async with open_audit_trail(settings, lambda _: None) as trail:
        assert trail is not None
        yield trail


@pytest.fixture
def docs(fake_upstream):
    return fake_upstream(
        "docs",
        [{"name": "find", "inputSchema": {"type": "object", "properties": {"pin": {"format": "password"}}}}],
        resource_list=[{"uri": "docs://a", "name": "a"}],
        prompt_list=[{"name": "ask"}],
    )


def lines(path: Path) -> list[dict[str, Any]]:
    return [record for record in records_of(path) if record["event"] != "start"]


async def test_a_call(router, docs, trail, path):
    served = router(docs, audit=trail)
    await served.respond("tools/list", {}, ALICE)
    arguments = {"pin": "1234", "what": "x"}
    await served.respond("tools/call", {"name": "docs__find", "arguments": arguments}, ALICE)
    (line,) = lines(path)
    assert (line["principal"], line["upstream"], line["tool"]) == ("alice", "docs", "find")
    assert (line["decision"], line["outcome"]) == ("allow", "ok")
    assert line["arguments"] == {"pin": "***", "what": "x"}
    assert [part["type"] for part in line["returned"]] == ["text"]
    assert line["shown"] != []


async def test_requests_for_resources_and_prompts(router, docs, trail, path):
    docs.answer = lambda method, _: (
        {"contents": [{"uri": "docs://a", "text": "x"}]}
        if "read" in method
        else {"messages": [{"role": "user", "content": {"type": "text", "text": "x"}}]}
    )
    served = router(docs, audit=trail)
    await served.respond("resources/read", {"uri": "docs://a"}, ALICE)
    await served.respond("prompts/get", {"name": "docs__ask"}, ALICE)
    read, got = lines(path)
    assert (read["event"], read["upstream"], read["resource"]) == ("resources/read", "docs", "docs://a")
    assert (got["event"], got["upstream"], got["prompt"]) == ("prompts/get", "docs", "docs__ask")
    assert read["shown"][0]["bytes"] == got["shown"][0]["bytes"] == 1


async def test_what_is_refused_or_fails(router, docs, trail, path):
    served = router(docs, audit=trail, access=AccessSettings.model_validate({"limits": {"calls_per_day": 2}}))
    find = {"name": "docs__find", "arguments": {}}
    with pytest.raises(UnknownTool):
        await served.respond("tools/call", {"name": "docs__nothing"}, ALICE)
    docs.answer = lambda *_: (_ for _ in ()).throw(UpstreamUnavailable("docs", "is gone"))
    with pytest.raises(UpstreamUnavailable):
        await served.respond("tools/call", find, ALICE)
    with pytest.raises(TooManyCalls):
        await served.respond("tools/call", find, ALICE)
    unknown, gone, refused = lines(path)
    assert (unknown["outcome"], unknown["tool"]) == ("invalid", "docs__nothing")
    assert (gone["outcome"], gone["cause"]) == ("unavailable", "upstream 'docs': is gone")
    assert (refused["decision"], refused["rule"], len(docs.asked)) == ("deny", "limits", 1)


async def test_what_is_beyond_the_grant_is_denied_and_what_was_not_decided_is_not_allowed(router, docs, trail, path):
    served = router(docs, audit=trail)
    await served.respond("tools/list", {}, ALICE)
    closed = replace(ALICE, grant=Grant(upstreams=("other",)))
    asked = [
        ("tools/call", {"name": "docs__find", "arguments": {}}),
        ("resources/read", {"uri": "docs://a"}),
        ("prompts/get", {"name": "docs__ask"}),
        ("tasks/get", {"taskId": "another's"}),
        ("resources/read", {}),
    ]
    for method, params in asked:
        with pytest.raises(InvalidRequest):
            await served.respond(method, params, closed)
    *denied, malformed = lines(path)
    assert [(line["event"], line["decision"], line["rule"]) for line in denied] == [
        (method, "deny", "grant") for method, _ in asked[:-1]
    ]
    assert (malformed["outcome"], "decision" in malformed) == ("invalid", False)
    assert docs.asked == []


async def test_a_call_that_is_refused_for_a_scope_before_it_reaches_a_session(router, docs, trail, path):
    served = router(docs, audit=trail)
    await served.respond("tools/list", {}, ALICE)
    scoped = replace(ALICE, token="laptop", grant=Grant(scoped=(("docs__find", ("docs.read",)),)))
    with pytest.raises(ScopeMissing):
        await served.check_scopes({"name": "docs__find", "arguments": {"pin": "1234"}}, scoped)
    await served.check_scopes({"name": "docs__find", "arguments": {}}, ALICE)
    (line,) = lines(path)
    assert (line["event"], line["principal"], line["token"], line["tool"]) == ("tools/call", "alice", "laptop", "find")
    assert (line["decision"], line["rule"]) == ("deny", "scopes")
    assert line["arguments"] == {"pin": "***"}


async def test_what_a_rule_decides_and_what_a_user_approves(router, docs, trail, path):
    rules = [
        {"name": "no-me", "effect": "deny", "arguments": {"required": ["me"]}},
        {"name": "ask", "effect": "approve", "tools": ["docs__find"]},
    ]
    served = router(docs, audit=trail, policy=PolicySettings.model_validate({"rules": rules}))
    find = {"name": "docs__find", "arguments": {}}
    with pytest.raises(NotAllowed):
        await served.respond("tools/call", {**find, "arguments": {"me": 1}}, ALICE)
    with pytest.raises(ApprovalNeeded):
        await served.respond("tools/call", find, ALICE)
    served.approvals.settle(served.approvals.listed()[0].id, "approved")
    await served.respond("tools/call", find, ALICE)
    decided = [(line.get("decision"), line["rule"], line.get("outcome")) for line in lines(path)]
    assert decided == [
        ("deny", "no-me", "denied"),
        ("approve", "ask", "asked"),
        (None, "ask", None),
        ("approve", "ask", "ok"),
    ]
    approval = lines(path)[2]
    assert (approval["event"], approval["verdict"], approval["by"]) == ("approval", "approved", "terminal")
    assert (approval["principal"], approval["tool"]) == ("alice", "find")
