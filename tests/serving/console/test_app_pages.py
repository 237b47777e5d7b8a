"""Pages of MCP Apps in the console: drawn from an address of their own, and answered by their own upstream alone."""

import json
import sys
from collections.abc import Callable
from typing import Any

import anyio
import pytest

from gateway.serving.console.app_policy import page_policy, usable_domains
from gateway.serving.console.calls import embedded_pages
from gateway.serving.console.watch_policy import watching
from tests.serving.console.conftest import SERVERS, Shown, shown

PAGE_TYPE = "text/html;profile=mcp-app"

pytestmark = pytest.mark.anyio


def app_script(uri: str = "ui://page", **page: Any) -> dict[str, Any]:
    """A server with tools for the model, for its page alone, for the model alone, and one without a page."""

    def tool(name: str, **interface: Any) -> dict[str, Any]:
        return {"name": name, "inputSchema": {"type": "object"}, "_meta": {"ui": interface}}

    result = {"content": [{"type": "text", "text": "done"}], "structuredContent": {"image": "iVBORw0KGgo=" * 20}}
    return {
        "tools": [
            tool("show", resourceUri=uri),
            tool("page_only", visibility=["app"]),
            tool("model_only", visibility=["model"]),
            {"name": "plain", "inputSchema": {"type": "object"}},
        ],
        "results": dict.fromkeys(("show", "page_only", "model_only", "plain"), result),
        "resources": {uri: {"mimeType": PAGE_TYPE, "text": "<h1>hello</h1>", **page}, "note://one": {"text": "one"}},
    }


async def called(one: Shown, tool: str, **arguments: Any) -> int:
    """Let a host call a tool, and return the number of the call."""
    await one.call(tool, **arguments)
    return (await one.json("/calls"))["calls"][0]["number"]


async def asked(one: Shown, number: int, what: str, status: int = 200, **body: Any) -> Any:
    """What the console answers the page of a call."""
    answer = await one.browser.post(f"/console/api/calls/{number}/page/{what}", json=body)
    assert answer.status_code == status, answer.text
    return answer.json()


async def test_a_page_has_an_address_of_its_own_and_a_policy_that_lets_it_reach_nothing(
    scripted: Callable[[dict[str, Any]], dict[str, Any]],
) -> None:
    async with shown({"app": scripted(app_script())}) as one:
        await one.enter()
        number = await called(one, "app__show", latitude=10.0, password="hunter22")
        assert (await one.json(f"/calls/{number}"))["page"] == "ui://app/page"
        assert "Draw its page" in (await one.get(f"/calls/{number}")).text
        view = await one.json(f"/calls/{number}/page")
        assert (view["uri"], view["upstream"], view["reach"]) == ("ui://app/page", "app", {})
        assert view["address"].startswith("/console-pages/")  # where browsers send no cookie of /console
        drawn = await one.browser.get(view["address"])
        assert drawn.text == watching(b"<h1>hello</h1>").decode()
        policy = drawn.headers["content-security-policy"]
        assert "sandbox allow-scripts allow-forms;" in policy
        assert "allow-same-origin" not in policy
        assert "http" not in policy
        assert "connect-src data: blob:;" in policy
        given = await one.json(f"/calls/{number}/page/given")
        assert given["arguments"]["latitude"] == 10.0
        assert "hunter22" not in str(given)
        assert given["result"]["structuredContent"]["image"] == "iVBORw0KGgo=" * 20
        fragment = (await one.get(f"/calls/{number}/page", **{"HX-Request": "true"})).text
        assert 'sandbox="allow-scripts allow-forms"' in fragment
        assert "allow-same-origin" not in fragment


async def test_a_page_calls_the_tools_of_its_own_server_that_pages_may_call(
    scripted: Callable[[dict[str, Any]], dict[str, Any]],
) -> None:
    app = scripted(app_script())
    async with shown({"app": app, "other": app}) as one:
        await one.enter()
        number = await called(one, "app__show")
        answer = await asked(one, number, "call", name="page_only", arguments={"a": 1})
        assert answer["result"]["structuredContent"]["image"] == "iVBORw0KGgo=" * 20  # as it came: no model reads it
        assert (await asked(one, number, "call", name="plain"))["result"]["content"][0]["text"] == "done"
        for name in ("model_only", "app__plain", "other__plain", "gateway_read", "missing", 7):
            refused = await asked(one, number, "call", 400, name=name)
            assert "is not a tool of app that its pages may call" in refused["error"], name
        assert (await asked(one, number, "read", uri="note://one"))["result"]["contents"][0]["text"] == "one"
        for uri in ("ui://other/page", "gateway://content/x", "", None, "file:///etc/passwd"):
            await asked(one, number, "read", 400, uri=uri)
        # What pages ask for is among the calls, like what anybody asks for.
        rows = (await one.json("/calls"))["calls"][:2]
        assert [(row["upstream"], row["upstream_tool"]) for row in rows] == [("app", "plain"), ("app", "page_only")]


async def test_rules_apply_to_what_a_page_calls(scripted: Callable[[dict[str, Any]], dict[str, Any]]) -> None:
    rule = {"name": "no", "effect": "deny", "tools": ["app__page_only"]}
    async with shown({"app": scripted(app_script())}, policy={"rules": [rule]}) as one:
        await one.enter()
        number = await called(one, "app__show")
        await asked(one, number, "call", 400, name="page_only")


async def test_only_a_page_of_the_console_that_acts_may_pass_on_what_pages_of_apps_ask(
    scripted: Callable[[dict[str, Any]], dict[str, Any]],
) -> None:
    async with shown({"app": scripted(app_script())}) as one:
        await one.enter()
        number = await called(one, "app__show")
        del one.browser.headers["X-Console-Token"]
        answer = await one.browser.post(f"/console/api/calls/{number}/page/call", json={"name": "page_only"})
        assert answer.status_code == 403


async def test_domains_that_a_page_declares_are_reached_only_with_leave(
    scripted: Callable[[dict[str, Any]], dict[str, Any]],
) -> None:
    csp = {"connectDomains": ["https://api.example.com/", "*", "http://plain.example"], "resourceDomains": ["data:; x"]}
    async with shown({"app": scripted(app_script(_meta={"ui": {"csp": csp, "permissions": {"camera": {}}}}))}) as one:
        await one.enter()
        number = await called(one, "app__show")
        view = await one.json(f"/calls/{number}/page")
        assert view["reach"] == {"connect": ["https://api.example.com"]}
        assert view["permissions"] == ["camera"]
        assert "example" not in (await one.browser.get(view["address"])).headers["content-security-policy"]
        online = await one.json(f"/calls/{number}/page?online=1")
        allowed = (await one.browser.get(online["address"])).headers["content-security-policy"]
        assert "connect-src data: blob: https://api.example.com;" in allowed


async def test_permissions_are_given_only_with_leave_and_only_those_that_are_asked_for(
    scripted: Callable[[dict[str, Any]], dict[str, Any]],
) -> None:
    asked = {"clipboardWrite": {}, "usb": {}}
    async with shown({"app": scripted(app_script(_meta={"ui": {"permissions": asked}}))}) as one:
        await one.enter()
        number = await called(one, "app__show")
        view = await one.json(f"/calls/{number}/page")
        assert (view["permissions"], view["grantable"]) == (["clipboardWrite", "usb"], ["clipboardWrite"])
        refused = (await one.browser.get(view["address"])).headers["permissions-policy"]
        assert "clipboard-write=()" in refused
        view = await one.json(f"/calls/{number}/page?grants=1")
        given = (await one.browser.get(view["address"])).headers["permissions-policy"]
        assert "clipboard-write=*" in given
        assert "camera=()" in given
        headers = {"hx-request": "true"}
        html = (await one.browser.get(f"/console/calls/{number}/page?grants=1", headers=headers)).text
        assert 'allow="clipboard-write *"' in html
        assert "Draw it without" in html
        assert (
            "Pages are given clipboardWrite by GitHub Copilot in VS Code, Goose; of other hosts it is not known" in html
        )
        linked = (await one.get(f"/calls/{number}/page?grants=1")).text  # a link gives no leave
        assert "allow=" not in linked
        assert "Give it that, once" in linked


@pytest.mark.parametrize(
    ("page", "words"),
    [
        ({"mimeType": "text/html"}, "its type is text/html"),
        ({"text": ""}, "it is empty"),
        ({"text": None, "blob": "*"}, "cannot be drawn"),
    ],
)
async def test_a_resource_that_is_no_page_is_not_drawn(
    scripted: Callable[[dict[str, Any]], dict[str, Any]], page: dict[str, Any], words: str
) -> None:
    async with shown({"app": scripted(app_script(**page))}) as one:
        await one.enter()
        number = await called(one, "app__show")
        answer = await one.get(f"/api/calls/{number}/page")
        assert answer.status_code == 404
        assert words in answer.json()["error"]


async def test_calls_without_a_page_have_none_to_draw(scripted: Callable[[dict[str, Any]], dict[str, Any]]) -> None:
    async with shown({"app": scripted(app_script())}) as one:
        await one.enter()
        number = await called(one, "app__plain")
        assert (await one.json(f"/calls/{number}"))["page"] is None
        for path in (f"/api/calls/{number}/page", "/api/calls/99/page", "/api/calls/99/page/given"):
            assert (await one.get(path)).status_code == 404
        assert (await one.browser.get("/console-pages/unknown")).status_code == 404


async def test_only_the_pages_that_were_opened_last_are_kept(
    scripted: Callable[[dict[str, Any]], dict[str, Any]],
) -> None:
    async with shown({"app": scripted(app_script())}) as one:
        await one.enter()
        number = await called(one, "app__show")
        addresses = [(await one.json(f"/calls/{number}/page"))["address"] for _ in range(17)]
        assert len(set(addresses)) == 17
        assert [(await one.browser.get(address)).status_code for address in addresses] == [404] + 16 * [200]


TRIAL = {"command": sys.executable, "args": [str(SERVERS / "trial_stdio.py")]}


async def test_a_page_in_a_result_is_drawn_like_that_of_a_tool() -> None:
    async with shown({"trial": TRIAL}) as one:
        await one.enter()
        number = await called(one, "trial__page")
        assert (await one.json(f"/calls/{number}"))["embedded"] == [{"block": 0, "uri": "ui://trial/trial/ask"}]
        assert "Draw the page in block 0" in (await one.get(f"/calls/{number}")).text
        view = await one.json(f"/calls/{number}/embedded/0")
        drawn = await one.browser.get(view["address"])
        assert "A page of mcp-ui." in drawn.text
        policy = drawn.headers["content-security-policy"]
        assert "sandbox allow-scripts allow-forms;" in policy
        assert "http" not in policy
        fragment = (await one.get(f"/calls/{number}/embedded/0", **{"HX-Request": "true"})).text
        assert f'data-app="/console/api/calls/{number}/embedded/0"' in fragment
        assert (await one.json(f"/calls/{number}/embedded/0/given"))["result"]["content"]
        answer = await one.browser.post(f"/console/api/calls/{number}/embedded/0/call", json={"name": "shapes"})
        assert "result" in answer.json()
        for path in (f"/calls/{number}/embedded/1", f"/calls/{number}/embedded/999999999999", "/calls/99/embedded/0"):
            assert (await one.get(f"/api{path}")).status_code == 404


@pytest.mark.parametrize(
    "resource",
    [
        {"uri": "ui://x", "mimeType": "text/uri-list", "text": "https://example.org"},
        {"uri": "ui://x", "mimeType": "application/vnd.mcp-ui.remote-dom", "text": "root"},
        {"uri": "https://x", "mimeType": "text/html", "text": "<p>"},
        {"uri": ["ui://x"], "mimeType": "text/html", "text": "<p>"},
        {"uri": "ui://x", "mimeType": 7, "text": "<p>"},
        "resource",
    ],
)
def test_only_html_that_is_meant_as_a_page_is_one(resource: Any) -> None:
    assert embedded_pages({"content": [{"type": "resource", "resource": resource}]}) == {}
    assert embedded_pages({"content": [resource, None, {"resource": None}]}) == {}


@pytest.mark.parametrize("contents", [{"text": ""}, {"blob": "*"}, {}])
async def test_an_embedded_page_without_a_text_is_not_drawn(
    scripted: Callable[[dict[str, Any]], dict[str, Any]], contents: dict[str, Any]
) -> None:
    script = app_script()
    page = {"uri": "ui://x", "mimeType": "text/html", **contents}
    script["results"]["plain"] = {"content": [{"type": "resource", "resource": page}]}
    async with shown({"app": scripted(script)}) as one:
        await one.enter()
        number = await called(one, "app__plain")
        answer = await one.get(f"/api/calls/{number}/embedded/0")
        assert (answer.status_code, "cannot be drawn" in answer.text) == (404, True)


async def test_what_a_server_asks_during_the_call_of_a_page_is_asked_in_the_console() -> None:
    async with shown({"trial": TRIAL}) as one:
        await one.enter()
        number = await called(one, "trial__page")
        path = f"/console/api/calls/{number}/embedded/0/call"
        begun = (await one.browser.post(path, json={"name": "ask"})).json()
        assert (begun["result"], begun["is_asking"]) == (None, True)
        run = begun["run"]
        question = (await one.get(f"/try/runs/{run}", **{"HX-Request": "true"})).text
        assert "Who are you?" in question
        results = list[Any]()

        async def wait() -> None:
            results.append((await one.browser.post(path, json={"run": run})).json())

        async with anyio.create_task_group() as group:
            group.start_soon(wait)
            given = {"number": 1, "action": "accept", "content": {"name": "Ada"}}
            answered = await one.browser.post(f"/console/api/try/runs/{run}/answer", json=given)
            assert answered.status_code == 200
        text = results[0]["result"]["content"][0]["text"]
        assert json.loads(text) == {"action": "accept", "content": {"name": "Ada"}}
        # Somebody who is asked may end it instead; then the page is refused.
        run = (await one.browser.post(path, json={"name": "sample"})).json()["run"]
        await one.browser.post(f"/console/api/try/runs/{run}/cancel")
        ended = await one.browser.post(path, json={"run": run})
        assert (ended.status_code, "cancelled" in ended.json()["error"]) == (400, True)
        # A page knows only its own runs.
        mine = (await one.browser.post("/console/api/try/tools/trial__shapes", json={"anyway": True})).json()["run"]
        assert (await one.browser.post(path, json={"run": mine["id"]})).status_code == 400


async def test_pages_that_wait_for_answers_do_not_keep_the_operator_from_trying() -> None:
    async with shown({"trial": TRIAL}) as one:
        await one.enter()
        number = await called(one, "trial__page")
        path = f"/console/api/calls/{number}/embedded/0/call"
        for _ in range(8):
            assert (await one.browser.post(path, json={"name": "ask"})).json()["is_asking"]
        assert (await one.browser.post(path, json={"name": "ask"})).status_code == 400
        tried = await one.browser.post("/console/api/try/tools/trial__ask", json={})
        assert tried.json()["run"]["question"]


@pytest.mark.parametrize(
    "source",
    ["*", "'self'", "'unsafe-eval'", "data:", "https:", "https://*", "https://a b", "https://a;script-src", "http://a"],
)
def test_what_would_open_or_end_a_directive_is_no_domain(source: str) -> None:
    assert usable_domains({"resource": (source,)}) == {}


def test_each_purpose_of_a_domain_has_its_directives() -> None:
    policy = page_policy(usable_domains({"resource": ["https://*.a.example:8443"], "frame": ["https://b.example"]}))
    directives = {name: values for name, _, values in (each.partition(" ") for each in policy.split("; "))}
    for name in ("script-src", "style-src", "img-src", "font-src", "media-src"):
        assert directives[name].endswith(" https://*.a.example:8443")
    assert directives["frame-src"] == "https://b.example"
    assert directives["base-uri"] == directives["form-action"] == directives["default-src"] == "'none'"


def test_code_that_a_page_makes_is_run_only_by_leave() -> None:
    strict, free = page_policy({}), page_policy({}, runs_code=True)
    assert "eval" not in strict
    assert "script-src 'unsafe-inline' blob: 'unsafe-eval' data:;" in free
    assert "default-src 'none'; " in free
