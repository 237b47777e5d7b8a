"""Tasks of 2026-07-28: a call is answered with a task, whose result the host asks for later, through the gateway."""

import pytest

from tests.bridges import hosts
from tests.servers import bridge_server

TASKS = "io.modelcontextprotocol/tasks"
UI = "io.modelcontextprotocol/ui"
CAPABILITIES = {"elicitation": {"form": {}}, "extensions": {TASKS: {}}}


@pytest.fixture
def opened(bridge):
    """Opens a modern host that takes tasks, or what else it is said to do."""
    hosts = []

    def opened(host_kind, upstream_kind, capabilities=CAPABILITIES, **options):
        where = bridge.where(host_kind, upstream_kind)
        hosts.append(bridge.host(host_kind, where, name="patient", capabilities=capabilities, **options))
        return hosts[-1]

    yield opened
    for host in hosts:
        bridge.close_host(host)


def finished(host, task):
    name = {"taskId": task["taskId"]}
    host.request("tasks/get", name)
    host.request("tasks/update", {**name, "inputResponses": {"name": {"action": "accept", "content": {"name": "Ada"}}}})
    return host.request("tasks/get", name)


@pytest.mark.parametrize("upstream_kind", ["modern-stdio", "modern-http", "both-http"])
@pytest.mark.parametrize("host_kind", ["modern-stdio", "modern-http"])
def test_a_task_is_the_hosts_from_its_beginning_to_its_result(opened, host_kind, upstream_kind):
    host = opened(host_kind, upstream_kind)
    task = host.call("later")
    assert (task["resultType"], task["status"], task["x-future"]) == ("task", "working", [None])
    waiting = host.request("tasks/get", {"taskId": task["taskId"]})
    assert waiting["status"] == "input_required"
    assert waiting["inputRequests"]["name"]["params"]["message"] == "Name?"
    done = finished(host, task)
    assert (done["status"], done["x-future"]) == ("completed", {"kept": None})
    assert [block["type"] for block in done["result"]["content"]] == ["image", "text"]


def test_the_result_of_a_task_has_the_shape_that_the_host_shows_best(opened):
    host = opened("modern-http", "modern-http", headers={"X-MCP-Profile": "default"})
    text, picture = finished(host, host.call("later"))["result"]["content"]
    assert text["text"].endswith("Ada")
    assert picture["type"] == "image"


@pytest.mark.parametrize("profile", ["default", "claude-desktop", "chatgpt", "cursor", "passthrough"])
@pytest.mark.parametrize("shows", [True, False], ids=["shows-pages", "blind"])
def test_what_a_task_brings_is_what_the_call_itself_would_have_brought(opened, profile, shows):
    """For the model and for the page: whose data is the upstream's to the byte, whichever way it comes."""
    extensions = {TASKS: {}, **({UI: {"mimeTypes": ["text/html;profile=mcp-app"]}} if shows else {})}
    host = opened("modern-http", "modern-http", {"extensions": extensions}, headers={"X-MCP-Profile": profile})
    for tool in ("chart", "chunk") if shows else ("chart",):
        at_once = host.call(tool)
        task = host.call(tool, later=True)
        assert task["resultType"] == "task"
        brought = host.request("tasks/get", {"taskId": task["taskId"]})["result"]
        members = ("content", "structuredContent", "isError")
        assert [brought.get(each) for each in members] == [at_once.get(each) for each in members]
        stamped = {key: at_once.get("_meta", {}).get(key) for key in brought.get("_meta", {})}
        assert brought.get("_meta", {}) == stamped
        sent = {"chart": bridge_server.CHART, "chunk": bridge_server.CHUNK}[tool]
        assert not shows or brought["structuredContent"] == sent["structuredContent"]
        assert ("structuredContent" in brought) == (shows or profile in ("chatgpt", "passthrough"))
    if shows:
        assert brought["content"][0]["text"].count("A") == 100_000


@pytest.mark.parametrize("host_kind", ["modern-stdio", "modern-http"])
def test_a_task_that_is_not_wanted_any_more_is_cancelled(opened, host_kind):
    host = opened(host_kind, "modern-http")
    name = {"taskId": host.call("later")["taskId"]}
    host.request("tasks/cancel", name)
    assert host.request("tasks/get", name)["status"] == "cancelled"


@pytest.mark.parametrize("upstream_kind", ["modern-http", "handshake-http"])
def test_a_host_that_takes_no_tasks_gets_its_result_at_once(opened, upstream_kind):
    host = opened("modern-http", upstream_kind, capabilities={})
    assert host.call("later")["content"][0]["text"] == "at once"


def test_an_upstream_that_knows_no_tasks_gives_none(opened):
    assert opened("modern-http", "handshake-http").call("later")["content"][0]["text"] == "at once"


def test_a_task_that_nobody_was_given_is_nobodys(opened):
    host = opened("modern-http", "modern-http")
    with pytest.raises(hosts.Refused, match="this caller has no task"):
        host.request("tasks/get", {"taskId": "task-of-somebody-else"})


def test_hosts_of_the_handshake_know_no_such_methods(bridge):
    host = bridge.over("handshake-http", "modern-http")
    with pytest.raises(hosts.Refused, match="not found"):
        host.request("tasks/get", {"taskId": "x"})


def test_tasks_are_offered_to_hosts_that_can_take_them(opened):
    assert TASKS in opened("modern-http", "modern-http").request("server/discover")["capabilities"]["extensions"]
