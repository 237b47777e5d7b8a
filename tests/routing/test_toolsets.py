"""What is not in a host's toolset is in no list, and answers no request."""

from dataclasses import replace

import pytest

from gateway.config.policy_settings import PolicySettings, RuleSettings
from gateway.config.schema import Settings
from gateway.config.toolset_settings import ToolsetSettings
from gateway.config.upstream_settings import UpstreamSettings
from gateway.core.model.caller import Caller
from gateway.core.model.change import Change
from gateway.core.model.grant import Grant
from gateway.core.model.toolset_scope import ToolsetScope
from gateway.errors import (
    InvalidRequest,
    NotAllowed,
    UnknownPrompt,
    UnknownResource,
    UnknownTool,
    UnknownToolset,
)

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


@pytest.mark.parametrize("up", ["..", "%2e%2E", ".%2e", "%252e%252e"])
@pytest.mark.parametrize("slash", ["/", "%2f", "\\", "%5C"])
def test_no_uri_leads_out_of_a_pattern(up, slash):
    scope = ToolsetScope("work", resources=("docs__file:///srv/docs/*",))
    assert scope.has_resource("docs", "file:///srv/docs/a/b..c/.hidden/x")
    assert not scope.has_resource("docs", f"file:///srv/docs/{up}{slash}{up}{slash}etc{slash}passwd")
    assert not scope.has_resource("docs", f"file:///srv/docs/a{slash}{up}")


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
    gateway.reconfigure(changed, gateway._profiles.profiles, shaper)  # pyright: ignore[reportPrivateUsage]
    assert await names(gateway, WORK) == ["docs__delete"]
    assert {change.kind for change in heard} == {"tools", "prompts", "resources"}
    with pytest.raises(UnknownToolset):
        await gateway.respond("tools/list", {}, replace(HOST, toolsets=("mails",)))


async def test_a_host_hears_only_of_what_is_in_its_toolset(served):
    gateway = served()
    assert gateway.hears(WORK, Change("tools", "docs"))
    assert not gateway.hears(WORK, Change("tools", "mail"))
    assert not gateway.hears(WORK, Change("prompts", "mail"))


class Rooted:
    """A host that answers with these folders when it is asked for its roots."""

    bounds_waiting = False
    connection = None

    def __init__(self, *folders: str) -> None:
        self.folders = folders
        self.asked: list[str] = []

    async def ask(self, method, params):
        self.asked.append(method)
        return {"roots": [{"uri": folder} for folder in self.folders]}

    async def tell(self, method, params):
        pass


@pytest.fixture
def project(tmp_path):
    (tmp_path / ".git").mkdir()
    (tmp_path / ".mcp-gateway.toml").write_text('toolset = "work"\n')
    return tmp_path


ROOTED = replace(HOST, on_stdio=True, capabilities={"roots": {}})


async def listed(gateway, caller, host):
    return [tool["name"] for tool in (await gateway.respond("tools/list", {}, caller, host=host))["tools"]]


async def test_a_host_with_a_project_open_has_the_toolset_of_that(served, project, tmp_path):
    gateway, heard = served(), []
    gateway.subscribe(heard.append)
    host = Rooted("https://example.com/", "file:///nowhere", "file://other.example/tmp", "file://[", project.as_uri())
    assert await listed(gateway, ROOTED, host) == ["docs__find"]
    with pytest.raises(UnknownTool):
        await gateway.respond("tools/call", {"name": "mail__send"}, ROOTED, host=host)
    with pytest.raises(UnknownResource):
        await gateway.watch("docs://b", ROOTED)
    assert host.asked == ["roots/list"]
    (project / ".mcp-gateway.toml").write_text('toolset = "mails"\n')
    await gateway.roots_changed("s1")
    assert {change.kind for change in heard} == {"tools", "prompts", "resources"}
    assert await listed(gateway, ROOTED, host) == ["mail__send"]
    gateway.left("s1")
    assert await listed(gateway, replace(ROOTED, toolsets=("work",)), host) == []


async def test_the_project_of_a_host_that_is_not_on_stdio_says_nothing(served, project):
    host = Rooted(project.as_uri())
    for caller in (replace(ROOTED, on_stdio=False), replace(ROOTED, capabilities={}), replace(ROOTED, session=None)):
        assert await listed(served(), caller, host) == ["docs__find", "docs__delete", "mail__send"]
    assert host.asked == []


async def test_where_a_file_cannot_be_used_nothing_is_offered_until_it_is_mended(served, project, caplog):
    gateway, host = served(), Rooted(project.as_uri())
    (project / ".mcp-gateway.toml").write_text("[upstreams]\n")
    assert await listed(gateway, ROOTED, host) == []
    said = gateway.unknown_toolset(ROOTED)
    assert said is not None
    assert "it may only have one line" in said
    (project / ".mcp-gateway.toml").write_text('toolset = "wrk"\n')
    gateway.left("s1")
    assert await listed(gateway, ROOTED, host) == []
    said = gateway.unknown_toolset(ROOTED)
    assert said is not None
    assert f"{project / '.mcp-gateway.toml'}: there is no toolset 'wrk' (did you mean 'work'?" in said
    assert sum("there is no toolset 'wrk' (did you mean 'work'?" in line for line in caplog.messages) == 1
    with pytest.raises(UnknownToolset, match="did you mean 'work'"):
        await gateway.respond("tools/call", {"name": "docs__find"}, ROOTED, host=host)
    (project / ".mcp-gateway.toml").write_text('toolset = "work"\n')
    await gateway.roots_changed("s1")
    assert await listed(gateway, ROOTED, host) == ["docs__find"]
    assert gateway.unknown_toolset(ROOTED) is None


async def test_without_any_toolsets_no_host_is_asked_for_its_project(router, docs, mail, project):
    host = Rooted(project.as_uri())
    assert await listed(router(docs, mail), ROOTED, host) == ["docs__find", "docs__delete", "mail__send"]
    assert host.asked == []
