"""What a caller may not reach does not exist: in no list, for no request, in no error."""

from dataclasses import replace

import pytest

from gateway.config.policy_settings import PolicySettings
from gateway.core.model.caller import Caller
from gateway.core.model.change import Change
from gateway.core.model.grant import Grant
from gateway.core.model.tool_facts import Hints, ToolFacts
from gateway.errors import InvalidRequest, ScopeMissing, TooManyCalls, UnknownResource, UnknownTool
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


async def test_members_of_several_groups_get_no_list_of_members_of_others(router, vault, docs):
    served, all_finds = router(vault, docs), Grant(("vault", "docs"), ("*__find", "*__open"))
    everywhere = Grant(("docs",), others=(all_finds,))
    here = Grant(("vault",), others=(all_finds,))
    first = await served.respond("tools/list", {}, replace(ALICE, principal="carol", grant=everywhere))
    assert {tool["name"] for tool in first["tools"]} >= {"docs__find", "docs__delete", "vault__open"}
    second = await served.respond("tools/list", {}, replace(ALICE, grant=here))
    assert "docs__delete" not in {tool["name"] for tool in second["tools"]}
    with pytest.raises(UnknownTool):
        await served.respond("tools/call", {"name": "docs__delete", "arguments": {}}, replace(ALICE, grant=here))


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


@pytest.mark.parametrize("prefix", ["always", "never"])
async def test_a_call_without_its_scope_is_refused_before_anything_is_asked(router, docs, prefix):
    served = router(docs, prefix=prefix)
    reader = replace(ALICE, grant=Grant(scoped=(("docs__del*", ("docs.write",)),)))
    name = {"always": "docs__{}", "never": "{}"}[prefix].format
    listed = await served.respond("tools/list", {}, reader)
    assert [each["name"] for each in listed["tools"]] == [name("find"), name("delete")]
    await served.respond("tools/call", {"name": name("find"), "arguments": {}}, reader)
    with pytest.raises(ScopeMissing) as early:
        await served.check_scopes({"name": name("delete")}, reader)
    with pytest.raises(ScopeMissing, match=r"needs the scope docs\.write") as late:
        await served.respond("tools/call", {"name": name("delete"), "arguments": {}}, reader)
    assert early.value.scopes == late.value.scopes == ("docs.write",)
    assert len(docs.asked) == 1
    await served.check_scopes({"name": name("find")}, reader)
    await served.check_scopes({"name": "nothing"}, reader)
    await served.check_scopes({"name": name("delete")}, ALICE)


async def test_what_any_of_several_grants_reaches_is_reached(router, docs):
    served = router(docs)
    both = replace(ALICE, grant=Grant(("vault",), ("*",), others=(Grant(("docs",), ("docs__f*",)),)))
    assert [each["name"] for each in (await served.respond("tools/list", {}, both))["tools"]] == ["docs__find"]
    with pytest.raises(UnknownTool):
        await served.respond("tools/call", {"name": "docs__delete", "arguments": {}}, both)
    more = replace(ALICE, grant=Grant(("vault",), ("*",), others=(Grant(("docs",)),)))
    listed = await served.respond("tools/list", {}, more)
    assert [each["name"] for each in listed["tools"]] == ["docs__find", "docs__delete"]


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


@pytest.mark.parametrize("kind", ["tools", "prompts", "resources", "updated:vault://gold"])
async def test_nobody_hears_of_a_change_of_what_does_not_exist_for_them(router, vault, docs, kind):
    served, told = router(vault, docs), []
    served.subscribe(told.append)
    for name in (SECRET, "docs"):
        served.upstream_changed(name, kind)
    theirs, ours = told
    assert not served.hears(ALICE, theirs)
    assert served.hears(ALICE, ours)
    assert served.hears(replace(ALICE, grant=Grant()), theirs)


READ, ASKED = ToolFacts("docs", "find", Hints(read_only=True, destructive=False)), ToolFacts("docs", "delete")


@pytest.mark.parametrize(
    ("grant", "tools", "hears"),
    [
        (Grant(), None, True),
        (Grant(), {READ, ASKED}, True),
        (Grant(tools=("docs__find",)), {ASKED}, False),
        (Grant(tools=("docs__find",)), {READ, ASKED}, True),
        (Grant(tools=("docs__find",)), None, True),  # nobody knows what has changed
        (Grant(upstreams=("vault",), others=(Grant(tools=("docs__del*",)),)), {ASKED}, True),
        (Grant(upstreams=("vault",), others=(Grant(tools=("docs__del*",)),)), {READ}, False),
    ],
)
async def test_a_change_of_tools_concerns_those_who_reach_one_of_them(router, docs, grant, tools, hears):
    served, told = router(docs), []
    served.subscribe(told.append)
    served.upstream_changed("docs", "tools", None, None if tools is None else frozenset(tools))
    assert served.hears(replace(ALICE, grant=grant), told[0]) is hears


async def test_a_change_of_tools_concerns_nobody_from_whom_a_rule_withholds_all_of_them(router, docs):
    rule = {"name": "harmless", "effect": "deny", "principals": ["bob"], "destructive": True}
    served = router(docs, policy=PolicySettings.model_validate({"rules": [rule]}))
    bob = replace(ALICE, principal="bob")
    for changed, hears in (({ASKED}, False), ({READ}, True), ({ASKED, READ}, True)):
        change = Change("tools", "docs", tools=frozenset(changed))
        assert served.hears(bob, change) is hears
        assert served.hears(ALICE, change)


async def test_what_a_principals_own_login_opens_concerns_nobody_else(router, vault, docs):
    served, told = router(vault, docs), []
    served.subscribe(told.append)
    served.upstream_changed("docs", "tools", "bob")
    served.upstream_changed("docs", "updated:docs://a", "alice")
    assert [served.hears(ALICE, change) for change in told] == [False, True]
