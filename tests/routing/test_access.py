"""What a caller may not reach does not exist: in no list, for no request, in no error."""

from dataclasses import replace

import pytest

from gateway.core.model.caller import Caller
from gateway.core.model.grant import Grant
from gateway.errors import InvalidRequest, TooManyCalls, UnknownResource, UnknownTool
from gateway.routing.call_rates import CallRates
from gateway.upstream import UpstreamState

pytestmark = pytest.mark.anyio

ALICE = Caller(revision="2025-11-25", client_name="codex", principal="alice", grant=Grant(upstreams=("doc*",)))
SECRET = "vault"


def tool(name):
    return {"name": name, "inputSchema": {"type": "object"}}


@pytest.fixture
def vault(fake_upstream):
    """An upstream that Alice does not reach."""
    return fake_upstream(
        SECRET,
        [tool("open"), tool("close")],
        resource_list=[{"uri": "vault://gold", "name": "gold"}],
        template_list=[{"uriTemplate": "vault://{what}", "name": "any"}],
        prompt_list=[{"name": "ask"}],
        offers=("completions",),
        instructions="Say friend.",
    )


@pytest.fixture
def docs(fake_upstream):
    return fake_upstream(
        "docs",
        [tool("find"), tool("delete")],
        resource_list=[{"uri": "docs://a", "name": "a"}],
        prompt_list=[{"name": "ask"}],
    )


LISTS = {
    "tools/list": "tools",
    "resources/list": "resources",
    "resources/templates/list": "resourceTemplates",
    "prompts/list": "prompts",
}


@pytest.mark.parametrize("method", LISTS)
async def test_the_lists_have_only_what_the_caller_reaches(router, vault, docs, method):
    served = router(vault, docs)
    everything = await served.respond(method, {}, replace(ALICE, grant=Grant()))
    assert SECRET in str(everything)
    assert SECRET not in str(await served.respond(method, {}, ALICE))


@pytest.mark.parametrize(
    ("method", "params"),
    [
        ("tools/call", {"name": "vault__open", "arguments": {}}),
        ("tools/call", {"name": "open", "arguments": {}}),
        ("resources/read", {"uri": "vault://gold"}),
        ("resources/read", {"uri": "vault://silver"}),
        ("resources/read", {"uri": "ui://vault/page"}),
        ("prompts/get", {"name": "vault__ask"}),
        ("completion/complete", {"ref": {"type": "ref/prompt", "name": "vault__ask"}, "argument": {"name": "a"}}),
        ("completion/complete", {"ref": {"type": "ref/resource", "uri": "vault://{what}"}, "argument": {"name": "a"}}),
        ("tasks/get", {"taskId": "t"}),
    ],
)
@pytest.mark.parametrize("state", [UpstreamState.READY, UpstreamState.STARTING, UpstreamState.FAILED])
async def test_nothing_else_is_asked_or_named(router, vault, docs, method, params, state):
    served = router(vault, docs)
    vault.become(state, "the vault is burning")
    asked = str(params)
    docs.answer = lambda *_: (_ for _ in ()).throw(UnknownResource("docs has no such thing"))
    with pytest.raises(InvalidRequest) as caught:
        await served.respond(method, params, ALICE)
    assert vault.asked == []
    assert vault.awaited == 0
    told = str(caught.value).replace("vault://", "").replace("ui://vault", "").replace("vault__", "")
    assert "vault" not in told, asked


async def test_nobody_can_subscribe_there(router, vault, docs):
    with pytest.raises(UnknownResource):
        await router(vault, docs).watch("vault://gold", ALICE)


async def test_patterns_of_tools_hold_in_the_list_and_at_the_call(router, docs):
    served = router(docs)
    reader = replace(ALICE, grant=Grant(tools=("docs__f*",)))
    listed = await served.respond("tools/list", {}, reader)
    assert [each["name"] for each in listed["tools"]] == ["docs__find"]
    await served.respond("tools/call", {"name": "docs__find", "arguments": {}}, reader)
    with pytest.raises(UnknownTool):
        await served.respond("tools/call", {"name": "docs__delete", "arguments": {}}, reader)
    whole = await served.respond("tools/list", {}, replace(ALICE, grant=Grant()))
    assert [each["name"] for each in whole["tools"]] == ["docs__find", "docs__delete"]


async def test_a_renamed_tool_is_still_the_tool_of_its_upstream(router, docs):
    served = router(docs, prefix="never")
    reader = replace(ALICE, grant=Grant(tools=("docs__find",)))
    assert [each["name"] for each in (await served.respond("tools/list", {}, reader))["tools"]] == ["find"]


async def test_a_call_too_many_is_refused_before_anything_is_asked(router, docs):
    served = router(docs)
    hasty = replace(ALICE, grant=Grant(calls_per_minute=2))
    for _ in range(2):
        await served.respond("tools/call", {"name": "docs__find", "arguments": {}}, hasty)
    with pytest.raises(TooManyCalls):
        await served.respond("tools/call", {"name": "docs__find", "arguments": {}}, hasty)
    assert len(docs.asked) == 2
    await served.respond("tools/list", {}, hasty)


def test_the_calls_of_tokens_with_one_principal_are_counted_apart():
    rates = CallRates(lambda: 0.0)
    laptop = replace(ALICE, token="laptop", grant=Grant(calls_per_minute=1))
    rates.count(laptop)
    rates.count(replace(laptop, token="phone"))
    with pytest.raises(TooManyCalls):
        rates.count(laptop)


def test_calls_are_counted_within_any_minute_for_each_principal():
    now = 0.0
    rates = CallRates(lambda: now)
    hasty, other = replace(ALICE, grant=Grant(calls_per_minute=2)), replace(ALICE, principal="bob")
    rates.count(hasty)
    now = 40.0
    rates.count(hasty)
    now = 59.0
    with pytest.raises(TooManyCalls) as caught:
        rates.count(hasty)
    assert str(caught.value) == "only 2 tool calls a minute are allowed (try again in 1 s)"
    rates.count(replace(other, grant=hasty.grant))
    now = 60.0
    rates.count(hasty)
    with pytest.raises(TooManyCalls, match="try again in 40 s"):
        rates.count(hasty)
    with pytest.raises(TooManyCalls, match="try again in 60 s"):  # the limit was lowered
        rates.count(replace(ALICE, grant=Grant(calls_per_minute=1)))
