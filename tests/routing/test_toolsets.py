"""What is not in a host's toolset is in no list, and answers no request."""

from dataclasses import replace

import pytest

from gateway.config.policy_settings import PolicySettings, RuleSettings
from gateway.config.schema import Settings, UpstreamSettings
from gateway.config.toolset_settings import ToolsetSettings
from gateway.core.model.caller import Caller
from gateway.core.model.change import Change
from gateway.core.model.grant import Grant
from gateway.errors import InvalidRequest, NotAllowed, UnknownPrompt, UnknownResource, UnknownTool, UnknownToolset

pytestmark = pytest.mark.anyio

HOST = Caller(revision="2025-11-25", client_name="codex", session="s1")
WORK = replace(HOST, toolsets=("work",))
PAGE = "ui://docs/page"


def tool(name, **more):
    return {"name": name, "inputSchema": {"type": "object"}, **more}


@pytest.fixture
def docs(fake_upstream):
    pages = {"find": PAGE, "delete": "ui://docs/x"}
    templates = {"pages": "docs://a/{page}", "any": "docs://{x}"}
    return fake_upstream(
        "docs",
        [tool(name, _meta={"ui": {"resourceUri": page}}) for name, page in pages.items()],
        resource_list=[{"uri": "docs://a", "name": "a"}, {"uri": "docs://b", "name": "b"}],
        template_list=[{"uriTemplate": uri, "name": name} for name, uri in templates.items()],
        prompt_list=[{"name": "ask"}, {"name": "sum"}],
        offers=("completions",),
    )


@pytest.fixture
def mail(fake_upstream):
    inbox = {"uri": "mail://inbox", "name": "inbox"}
    return fake_upstream("mail", [tool("send")], resource_list=[inbox], prompt_list=[{"name": "reply"}])


@pytest.fixture
def served(router, docs, mail):
    """A router with both upstreams and these toolsets."""

    def make(toolsets=None, **sections):
        given = toolsets or {
            "work": ToolsetSettings(tools=("docs__find",), prompts=("docs__ask",), resources=("docs__docs://a*",)),
            "mails": ToolsetSettings(upstreams=("mail",)),
        }
        upstreams = {name: UpstreamSettings(command="fake") for name in ("docs", "mail")}
        return router(docs, mail, toolsets=given, upstreams=upstreams, **sections)

    return make


async def names(served, caller, method="tools/list", key="tools", by="name"):
    return [each[by] for each in (await served.respond(method, {}, caller))[key] if not each[by].startswith("content:")]


async def test_lists_have_what_is_in_the_toolset(served):
    gateway = served()
    assert await names(gateway, WORK) == ["docs__find"]
    assert await names(gateway, WORK, "prompts/list", "prompts") == ["docs__ask"]
    assert await names(gateway, WORK, "resources/list", "resources", "uri") == ["docs://a"]
    templates = await names(gateway, WORK, "resources/templates/list", "resourceTemplates", "uriTemplate")
    assert templates == ["docs://a/{page}"]
    assert await names(gateway, HOST) == ["docs__find", "docs__delete", "mail__send"]


@pytest.mark.parametrize(
    ("method", "params", "error"),
    [
        ("tools/call", {"name": "docs__delete", "arguments": {}}, UnknownTool),
        ("tools/call", {"name": "mail__send", "arguments": {}}, UnknownTool),
        ("tools/call", {"name": "delete", "arguments": {}}, UnknownTool),
        ("resources/read", {"uri": "docs://b"}, UnknownResource),
        ("resources/read", {"uri": "docs://other"}, UnknownResource),
        ("resources/read", {"uri": "mail://inbox"}, UnknownResource),
        ("resources/read", {"uri": "ui://docs/docs/x"}, UnknownResource),
        ("prompts/get", {"name": "docs__sum"}, UnknownPrompt),
        ("prompts/get", {"name": "mail__reply"}, UnknownPrompt),
        ("completion/complete", {"ref": {"type": "ref/prompt", "name": "docs__sum"}, "argument": {}}, UnknownPrompt),
        ("completion/complete", {"ref": {"type": "ref/resource", "uri": "docs://{x}"}, "argument": {}}, InvalidRequest),
    ],
)
async def test_nothing_else_is_called_read_or_asked_for(served, docs, mail, method, params, error):
    gateway = served()
    with pytest.raises(error):
        await gateway.respond(method, params, WORK)
    assert docs.asked == mail.asked == []


@pytest.mark.parametrize(
    ("method", "params"),
    [
        ("tools/call", {"name": "docs__find", "arguments": {}}),
        ("resources/read", {"uri": "docs://a"}),
        ("resources/read", {"uri": "docs://a/1"}),
        ("prompts/get", {"name": "docs__ask"}),
        ("completion/complete", {"ref": {"type": "ref/resource", "uri": "docs://a/{page}"}, "argument": {}}),
    ],
)
async def test_what_is_in_it_is_answered(served, docs, method, params):
    docs.answer = lambda method, _: {"content": [], "contents": [], "messages": []}
    await served().respond(method, params, WORK)
    assert [asked[0] for asked in docs.asked] == [method]


async def test_what_a_tool_names_in_its_result_can_be_read_in_this_toolset_alone(served, docs):
    link = {"type": "resource_link", "uri": "docs://b", "name": "b"}
    docs.answer = lambda method, _: {"content": [link]} if method == "tools/call" else {"contents": []}
    gateway = served({"work": ToolsetSettings(tools=("docs__find",)), "other": ToolsetSettings(tools=("docs__find",))})
    with pytest.raises(UnknownResource):
        await gateway.respond("resources/read", {"uri": "docs://b"}, WORK)
    await gateway.respond("tools/call", {"name": "docs__find", "arguments": {}}, WORK)
    assert await gateway.respond("resources/read", {"uri": "docs://b"}, WORK) == {"contents": []}
    with pytest.raises(UnknownResource):
        await gateway.respond("resources/read", {"uri": "docs://b"}, replace(HOST, toolsets=("other",)))


async def test_the_page_of_a_tool_in_it_can_be_read(served, docs):
    docs.answer = lambda *_: {"contents": [{"uri": PAGE, "text": "<p>"}]}
    found = await served().respond("resources/read", {"uri": "ui://docs/docs/page"}, WORK)
    assert found["contents"][0]["text"] == "<p>"


async def test_nobody_subscribes_to_what_is_not_in_it(served, docs, mail):
    for uri in ("docs://b", "mail://inbox", "docs://new"):
        with pytest.raises(UnknownResource):
            await served().watch(uri, WORK)


async def test_several_leave_what_is_in_all_of_them(served):
    both = replace(HOST, toolsets=("work", "mails"))
    gateway = served()
    assert await names(gateway, both) == []
    with pytest.raises(UnknownTool):
        await gateway.respond("tools/call", {"name": "docs__find", "arguments": {}}, both)


async def test_grants_and_rules_hold_within_it(served):
    rule = RuleSettings(name="no", effect="deny", tools=("docs__find",))
    with pytest.raises(NotAllowed):
        await served(policy=PolicySettings(rules=(rule,))).respond("tools/call", {"name": "docs__find"}, WORK)
    stranger = replace(WORK, principal="alice", grant=Grant(upstreams=("mail",)))
    assert await names(served(), stranger) == []


async def test_the_names_of_tools_are_those_of_the_toolset_alone(router, fake_upstream):
    one, two = (fake_upstream(name, [tool("find")]) for name in ("one", "two"))
    upstreams = {name: UpstreamSettings(command="fake") for name in ("one", "two")}
    toolsets = {"first": ToolsetSettings(upstreams=("one",))}
    gateway = router(one, two, prefix="when-needed", toolsets=toolsets, upstreams=upstreams)
    assert await names(gateway, replace(HOST, toolsets=("first",))) == ["find"]
    assert await names(gateway, HOST) == ["one__find", "two__find"]


async def test_one_that_does_not_exist_is_an_error_that_names_those_that_do(served):
    with pytest.raises(UnknownToolset, match=r"no toolset 'wrk' \(did you mean 'work'\? there are: work, mails"):
        await served().respond("tools/list", {}, replace(HOST, toolsets=("wrk",)))


async def test_a_changed_toolset_holds_from_the_next_request_and_hosts_are_told(served, shaper):
    gateway = served()
    heard = []
    gateway.subscribe(heard.append)
    upstreams = {name: UpstreamSettings(command="fake") for name in ("docs", "mail")}
    changed = Settings(upstreams=upstreams, toolsets={"work": ToolsetSettings(tools=("docs__delete",))})
    gateway.reconfigure(changed, gateway._profiles, shaper)  # pyright: ignore[reportPrivateUsage]
    assert await names(gateway, WORK) == ["docs__delete"]
    assert {change.kind for change in heard} == {"tools", "prompts", "resources"}
    with pytest.raises(UnknownToolset):
        await gateway.respond("tools/list", {}, replace(HOST, toolsets=("mails",)))


async def test_a_host_hears_only_of_what_is_in_its_toolset(served):
    gateway = served()
    assert gateway.hears(WORK, Change("tools", "docs"))
    assert not gateway.hears(WORK, Change("tools", "mail"))
    assert not gateway.hears(WORK, Change("prompts", "mail"))
