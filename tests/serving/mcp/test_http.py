"""Hosts over HTTP: a real port, the SDK's clients in each mode, and raw requests."""

import json
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any
from urllib.parse import urlsplit

import anyio
import httpx2
import mcp_types as types
import pytest
from mcp import Client
from mcp.client.sse import sse_client

from gateway.config.http_settings import HttpSettings
from gateway.errors import ConfigError
from gateway.serving.mcp.handshake import Identity
from gateway.serving.mcp.http import http_app, serve_http
from tests.servers.downstream_service import STRANGE, TOOLS, SampleService

pytestmark = pytest.mark.anyio

ACCEPT = {"Accept": "application/json, text/event-stream"}
MODERN = {**ACCEPT, "MCP-Protocol-Version": "2026-07-28"}
MODES = ("auto", "legacy", "2026-07-28", "sse")


def connected(served, mode, path="", **options):
    if mode == "sse":
        return Client(sse_client(f"{served.url}/sse{path}"), mode="legacy", cache=None, **options)
    return Client(f"{served.url}/mcp{path}", mode=mode, cache=None, **options)


async def post(client, url, message, headers=MODERN):
    """A raw request; the answer's JSON, out of the event stream if it is one."""
    named = {"Mcp-Method": message["method"]} if headers is MODERN else {}
    if headers is MODERN and "name" in message.get("params", {}):
        named["Mcp-Name"] = message["params"]["name"]
    response = await client.post(url, json=message, headers={**headers, **named})
    if response.headers["content-type"].startswith("text/event-stream"):
        data = [line.removeprefix("data: ") for line in response.text.split("\r\n") if line.startswith("data: ")]
        return response, json.loads(data[-1])
    return response, response.json()


@asynccontextmanager
async def session(client, url, wire, revision="2025-06-18"):
    """A raw session of the handshake era: gives the headers for what follows."""
    response, answer = await post(client, url, wire.initialize(revision), ACCEPT)
    assert answer["result"]["protocolVersion"] == revision
    headers = {**ACCEPT, "Mcp-Session-Id": response.headers["mcp-session-id"], "MCP-Protocol-Version": revision}
    accepted = await client.post(url, json=wire.notification("notifications/initialized"), headers=headers)
    assert accepted.status_code == 202
    yield headers


@pytest.mark.parametrize("mode", MODES)
async def test_the_sdk_client_lists_calls_and_reads(served, mode):
    with anyio.fail_after(30):
        async with served() as gateway, connected(gateway, mode) as client:
            tools = await client.list_tools()
            assert [tool.name for tool in tools.tools][:2] == ["echo", "wait"]
            called = await client.call_tool("echo", {"a": 1})
            assert called.structured_content["params"]["arguments"] == {"a": 1}
            read = await client.read_resource("note://one")
            assert read.contents[0].model_dump()["text"] == "one"


@pytest.mark.parametrize("revision", ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"])
async def test_every_handshake_revision_gets_results_untouched(served, wire, revision):
    with anyio.fail_after(30):
        async with served() as gateway, httpx2.AsyncClient() as client:
            url = f"{gateway.url}/mcp"
            async with session(client, url, wire, revision) as headers:
                _, listed = await post(client, url, wire.request(1, "tools/list"), headers)
                assert listed["result"] == {"tools": TOOLS}
                _, called = await post(client, url, wire.request(2, "tools/call", {"name": "strange"}), headers)
                assert called["result"] == STRANGE


async def test_a_modern_host_gets_results_untouched_but_for_its_stamps(served, wire):
    with anyio.fail_after(30):
        async with served() as gateway, httpx2.AsyncClient() as client:
            message = wire.request(1, "tools/call", wire.modern({"name": "strange"}))
            response, answer = await post(client, f"{gateway.url}/mcp", message)
            assert response.status_code == 200
            stamp = {"io.modelcontextprotocol/serverInfo": {"name": "sample", "version": "1.0", "title": "Sample"}}
            meta = {**STRANGE["_meta"], **stamp}
            assert answer["result"] == {**STRANGE, "resultType": "complete", "_meta": meta}


@pytest.mark.parametrize("mode", ["auto", "legacy", "sse"])
async def test_the_opening_offers_what_is_true(served, mode):
    with anyio.fail_after(30):
        async with served() as gateway, connected(gateway, mode) as client:
            offered = client.server_capabilities
            assert offered.tools.list_changed is True
            assert offered.resources.list_changed is True
            assert offered.resources.subscribe is True
            assert offered.prompts.list_changed is True
            assert offered.completions is not None
            assert client.instructions == "Be kind."


@pytest.mark.parametrize("mode", ["legacy", "sse"])
async def test_changes_of_the_lists_are_told_to_every_live_connection(served, mode):
    heard = []
    both = anyio.Event()

    async def listen(message):
        if isinstance(message, types.ServerNotification | types.ToolListChangedNotification):
            heard.append(message)
            both.set()

    with anyio.fail_after(30):
        async with served() as gateway, connected(gateway, mode, message_handler=listen) as client:
            await client.list_tools()
            # Over Streamable HTTP the client opens its stream of events in the background.
            while not both.is_set():
                gateway.service.change("tools")
                with anyio.move_on_after(0.1):
                    await both.wait()
    assert {message.method for message in heard} == {"notifications/tools/list_changed"}


async def test_one_host_has_so_many_subscriptions_and_leaves_some_to_the_others(served, wire):
    def wanted(name):
        params = wire.modern({"notifications": {"toolsListChanged": True}})
        params["_meta"]["io.modelcontextprotocol/clientInfo"] = {"name": name, "version": "1"}
        return wire.request("sub", "subscriptions/listen", params)

    headers = {**MODERN, "Mcp-Method": "subscriptions/listen"}
    reading = []  # an iterator that is gone would close its stream
    with anyio.fail_after(60):
        async with served() as gateway, httpx2.AsyncClient() as client, AsyncExitStack() as streams:

            async def first(name):
                stream = client.stream("POST", f"{gateway.url}/mcp", json=wanted(name), headers=headers)
                lines = (await streams.enter_async_context(stream)).aiter_lines()
                reading.append(lines)
                while "{" not in (line := await anext(lines)):
                    pass
                return json.loads(line[line.index("{") :])

            for _ in range(64):
                assert (await first("busy"))["method"] == "notifications/subscriptions/acknowledged"
            assert "64 subscriptions open" in (await first("busy"))["error"]["message"]
            assert (await first("another"))["method"] == "notifications/subscriptions/acknowledged"


async def test_changes_of_the_lists_reach_a_modern_subscription(served, wire):
    with anyio.fail_after(30):
        async with served() as gateway, httpx2.AsyncClient() as client:
            uris = ["note://one", "note://nobody-has-it"]
            wanted = wire.modern({"notifications": {"toolsListChanged": True, "resourceSubscriptions": uris}})
            message = wire.request("sub", "subscriptions/listen", wanted)
            headers = {**MODERN, "Mcp-Method": "subscriptions/listen"}
            async with client.stream("POST", f"{gateway.url}/mcp", json=message, headers=headers) as response:
                events = (json.loads(line[6:]) async for line in response.aiter_lines() if line.startswith("data: "))
                acknowledged = await anext(events)
                promised = {"toolsListChanged": True, "resourceSubscriptions": ["note://one"]}
                assert acknowledged["params"]["notifications"] == promised
                gateway.service.change("resources")
                gateway.service.change("tools")
                assert (await anext(events))["method"] == "notifications/tools/list_changed"
                gateway.service.change("updated:note://another")
                gateway.service.change("updated:note://one")
                updated = await anext(events)
                assert (updated["method"], updated["params"]["uri"]) == ("notifications/resources/updated", uris[0])


@pytest.mark.parametrize("mode", MODES)
async def test_progress_reaches_the_host(served, mode):
    steps = []

    async def hear(progress, total, message):
        steps.append((progress, total, message))

    with anyio.fail_after(30):
        async with served() as gateway, connected(gateway, mode) as client:
            await client.call_tool("count", {}, progress_callback=hear)
    assert steps == [(1.0, 3.0, "step 1"), (2.0, 3.0, "step 2"), (3.0, 3.0, "step 3")]


@pytest.mark.parametrize("mode", MODES)
async def test_a_host_that_cancels_cancels_the_call_in_the_service(served, mode):
    with anyio.fail_after(30):
        async with served() as gateway, connected(gateway, mode) as client:
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(client.call_tool, "wait", {})
                await gateway.service.saw("waiting")
                tasks.cancel_scope.cancel()
            await gateway.service.saw("cancelled")
            assert (await client.list_tools()).tools


@pytest.mark.parametrize("way", ["handshake", "modern", "sse"])
async def test_three_megabytes_pass_both_ways(served, wire, way):
    text = "x" * 4_000_000
    with anyio.fail_after(60):
        async with served() as gateway, httpx2.AsyncClient(timeout=30) as client:
            arguments = {"name": "echo", "arguments": {"text": text}}
            if way == "modern":
                _, answer = await post(
                    client, f"{gateway.url}/mcp", wire.request(1, "tools/call", wire.modern(arguments))
                )
            elif way == "handshake":
                async with session(client, f"{gateway.url}/mcp", wire) as headers:
                    _, answer = await post(
                        client, f"{gateway.url}/mcp", wire.request(1, "tools/call", arguments), headers
                    )
            else:
                async with raw_sse(client, gateway) as host:
                    await host.ask(wire.initialize())
                    answer = await host.ask(wire.request(1, "tools/call", arguments))
            assert answer["result"]["structuredContent"]["params"]["arguments"]["text"] == text


async def test_initialize_after_a_lone_discover_is_accepted_over_sse(served, wire):
    with anyio.fail_after(30):
        async with served() as gateway, httpx2.AsyncClient() as client, raw_sse(client, gateway) as host:
            found = await host.ask(wire.request(1, "server/discover", wire.modern()))
            assert found["result"]["supportedVersions"] == ["2026-07-28"]
            assert (await host.ask(wire.initialize("2024-11-05", 2)))["result"]["protocolVersion"] == "2024-11-05"
            assert (await host.ask(wire.request(3, "tools/list")))["result"]["tools"]
            assert (await host.ask(wire.request(4, "tools/list", wire.modern())))["error"]["code"] == -32600


async def test_a_modern_host_is_served_over_sse_too(served, wire):
    with anyio.fail_after(30):
        async with served() as gateway, httpx2.AsyncClient() as client, raw_sse(client, gateway) as host:
            answer = await host.ask(wire.request(1, "tools/list", wire.modern()))
            assert answer["result"]["resultType"] == "complete"
            assert (await host.ask(wire.initialize(request_id=2)))["error"]["code"] == -32022


async def test_the_service_hears_who_calls_and_from_which_program(served, wire):
    agent = {"User-Agent": "claude-code/2.1.0 (cli)"}
    message = wire.request(1, "tools/call", wire.modern({"name": "who"}))
    with anyio.fail_after(30):
        async with served() as gateway, httpx2.AsyncClient(headers=agent) as client:
            _, modern = await post(client, f"{gateway.url}/mcp", message)
            async with session(client, f"{gateway.url}/mcp", wire) as headers:
                _, legacy = await post(
                    client, f"{gateway.url}/mcp", wire.request(1, "tools/call", {"name": "who"}), headers
                )
            async with raw_sse(client, gateway) as host:
                await host.ask(wire.initialize("2024-11-05"))
                old = await host.ask(wire.request(1, "tools/call", {"name": "who"}))
    callers = [answer["result"]["structuredContent"] for answer in (modern, legacy, old)]
    assert [caller["revision"] for caller in callers] == ["2026-07-28", "2025-06-18", "2024-11-05"]
    for caller in callers:
        assert (caller["client_name"], caller["client_version"]) == ("Tester", "9")
        assert caller["user_agent"] == "claude-code/2.1.0 (cli)"
        assert (caller["profile"], caller["principal"]) == (None, "local")
        assert "roots" in caller["capabilities"]


@pytest.mark.parametrize("odd", [None, 1.5, True, [1], {}])
@pytest.mark.parametrize("revision", ["2025-03-26", "2025-11-25"])
async def test_a_request_with_an_id_that_none_may_have_is_refused_and_not_taken_for_a_notification(
    served, wire, revision, odd
):
    async with served() as gateway, httpx2.AsyncClient() as client:
        url = f"{gateway.url}/mcp"
        async with session(client, url, wire, revision) as headers:
            response, answer = await post(client, url, {**wire.request(1, "ping", {}), "id": odd}, headers)
            assert response.status_code == 400
            assert (answer["id"], answer["error"]["code"]) == (None, -32600)
            _, answer = await post(client, url, wire.request(2, "ping", {}), headers)
            assert answer == {"jsonrpc": "2.0", "id": 2, "result": {}}


async def test_what_no_encoder_takes_costs_a_character_and_not_the_answer(served, wire):
    expected = ("half \ufffd of a pair", None)
    with anyio.fail_after(30):
        async with served() as gateway, httpx2.AsyncClient() as client:
            url = f"{gateway.url}/mcp"
            call = wire.request(1, "tools/call", wire.modern({"name": "broken"}))
            answers = [(await post(client, url, call))[1]]
            async with session(client, url, wire) as headers:
                call = wire.request(1, "tools/call", {"name": "broken"})
                answers.append((await post(client, url, call, headers))[1])
            async with raw_sse(client, gateway) as host:
                await host.ask(wire.initialize())
                answers.append(await host.ask(call))
    for answer in answers:
        assert (answer["result"]["content"][0]["text"], answer["result"]["number"]) == expected


async def test_a_profile_is_chosen_by_the_path_or_else_by_a_header(served, wire):
    who = wire.request(1, "tools/call", wire.modern({"name": "who"}))

    async def chosen(client, url, **headers):
        named = {**MODERN, "Mcp-Method": "tools/call", "Mcp-Name": "who", **headers}
        response = await client.post(url, json=who, headers=named)
        return response.json()["result"]["structuredContent"]["profile"]

    with anyio.fail_after(30):
        async with served() as gateway, httpx2.AsyncClient() as client:
            url = f"{gateway.url}/mcp"
            assert await chosen(client, url) is None
            assert await chosen(client, f"{url}/") is None
            assert await chosen(client, f"{url}/codex") == "codex"
            assert await chosen(client, url, **{"X-MCP-Profile": "codex"}) == "codex"
            assert await chosen(client, f"{url}/claude-code", **{"X-MCP-Profile": "codex"}) == "claude-code"
            assert await chosen(client, f"{url}/Claude-CODE") == "claude-code"
            assert await chosen(client, url, **{"X-MCP-Profile": "Codex"}) == "codex"


@pytest.mark.parametrize(
    ("path", "headers", "profile"),
    [
        ("/codex", {}, "codex"),
        ("", {"X-MCP-Profile": "codex"}, "codex"),
        ("/codex", {"X-MCP-Profile": "claude-code"}, "codex"),
        ("", {}, None),
    ],
)
async def test_a_profile_chosen_for_the_stream_of_events_holds_for_its_messages(served, wire, path, headers, profile):
    with anyio.fail_after(30):
        async with (
            served() as gateway,
            httpx2.AsyncClient() as client,
            raw_sse(client, gateway, path, headers) as host,
        ):
            host.headers = {"X-MCP-Profile": "claude-code"}
            await host.ask(wire.initialize())
            answer = await host.ask(wire.request(1, "tools/call", {"name": "who"}))
            assert answer["result"]["structuredContent"]["profile"] == profile


async def test_a_profile_that_does_not_exist_is_refused_with_the_nearest_name(served, wire):
    with anyio.fail_after(30):
        async with served() as gateway, httpx2.AsyncClient() as client:
            for url, headers, status in (
                ("/mcp/claud-code", {}, 404),
                ("/sse/claud-code", {}, 404),
                ("/messages/claud-code", {}, 404),
                ("/mcp", {"X-MCP-Profile": "claud-code"}, 400),
                ("/sse", {"X-MCP-Profile": "claud-code"}, 400),
            ):
                response = await client.get(gateway.url + url, headers=headers)
                assert response.status_code == status
                assert "'claud-code'; did you mean 'claude-code'?" in response.json()["error"]
            part = await client.get(f"{gateway.url}/mcp/code")
            assert "'code'; did you mean 'claude-code' or 'codex'?" in part.json()["error"]


async def test_a_body_over_the_limit_is_refused_on_both_transports(served, wire):
    message = wire.request(1, "tools/call", {"name": "echo", "arguments": {"text": "x" * 2_000}})
    with anyio.fail_after(30):
        async with served(max_request_bytes=1_000) as gateway, httpx2.AsyncClient() as client:
            for headers in (ACCEPT, MODERN):
                response = await client.post(f"{gateway.url}/mcp", json=message, headers=headers)
                assert response.status_code == 413
            async with raw_sse(client, gateway) as host:
                assert (await host.post(message)).status_code == 413


async def test_the_front_page_names_the_endpoints_and_nothing_else_is_there(served):
    with anyio.fail_after(30):
        async with served() as gateway, httpx2.AsyncClient() as client:
            page = await client.get(gateway.url)
            assert page.headers["content-type"].startswith("text/plain")
            assert "/mcp" in page.text
            assert "/sse" in page.text
            missing = await client.get(f"{gateway.url}/mpc")
            assert (missing.status_code, "/mcp" in missing.json()["error"]) == (404, True)
            wrong = await client.post(f"{gateway.url}/sse")
            assert (wrong.status_code, wrong.headers["allow"]) == (405, "GET")


async def test_failures_reach_the_host_without_internals(served, wire, caplog):
    with anyio.fail_after(30):
        async with served() as gateway, httpx2.AsyncClient() as client:
            url = f"{gateway.url}/mcp"

            async def fail(how):
                params = wire.modern({"name": "fail", "arguments": {"how": how}})
                return (await post(client, url, wire.request(1, "tools/call", params)))[1]

            assert (await fail("timeout"))["result"]["isError"] is True
            assert (await fail("refused"))["error"]["data"] == {"requiredCapabilities": {"sampling": {}}}
            assert "secret" not in json.dumps(await fail("bug"))
            assert "secret detail" in caplog.text
            gone = wire.request(1, "tools/call", wire.modern({"name": "gone"}))
            assert (await post(client, url, gone))[1]["error"]["code"] == -32602


async def test_stopping_ends_open_streams_and_waiting_calls_within_seconds(served, wire):
    with anyio.fail_after(30):
        async with AsyncExitStack() as hosts:
            client = await hosts.enter_async_context(httpx2.AsyncClient())
            async with served() as gateway:
                headers = await hosts.enter_async_context(session(client, f"{gateway.url}/mcp", wire))
                events = await hosts.enter_async_context(client.stream("GET", f"{gateway.url}/mcp", headers=headers))
                assert events.status_code == 200
                await hosts.enter_async_context(raw_sse(client, gateway))
                listen = wire.request("sub", "subscriptions/listen", wire.modern({"notifications": {}}))
                named = {**MODERN, "Mcp-Method": "subscriptions/listen"}
                subscription = client.stream("POST", f"{gateway.url}/mcp", headers=named, json=listen)
                told = (await hosts.enter_async_context(subscription)).aiter_lines()
                call = wire.request(1, "tools/call", {"name": "wait"})
                waiting = client.stream("POST", f"{gateway.url}/mcp", headers=headers, json=call)
                assert (await hosts.enter_async_context(waiting)).status_code == 200
                await gateway.service.saw("waiting")
                stopping = anyio.current_time()
            assert anyio.current_time() - stopping < 8
            assert [line async for line in events.aiter_lines()] == []
            last = [json.loads(line.removeprefix("data: ")) async for line in told if line.startswith("data: ")][-1]
            assert (last["id"], last["result"]["resultType"]) == ("sub", "complete")


async def test_a_port_that_is_taken_is_a_configuration_error(served):
    with anyio.fail_after(30):
        async with served() as gateway:
            settings = HttpSettings(port=gateway.port)
            app = http_app(SampleService(), settings, Identity("x", "1"))
            with pytest.raises(ConfigError) as caught:
                await serve_http(app, settings)
            assert str(gateway.port) in str(caught.value)


class RawSse:
    """A host of 2024-11-05: it holds a stream open, and posts where that tells it to."""

    def __init__(self, client, response, gateway):
        self._client = client
        self._lines = response.aiter_lines()
        self._gateway = gateway
        self.headers = {}
        self.messages: Any = None

    async def event(self):
        data = ""
        async for line in self._lines:
            if line.startswith("data: "):
                data = line.removeprefix("data: ")
            elif not line and data:
                return data
        raise AssertionError("the stream has ended")

    async def post(self, message):
        return await self._client.post(
            f"{self._gateway.url}{self.messages.geturl()}", json=message, headers=self.headers
        )

    async def ask(self, message):
        assert (await self.post(message)).status_code == 202
        while (answer := json.loads(await self.event())).get("id") != message["id"]:
            pass
        return answer


@asynccontextmanager
async def raw_sse(client, gateway, path="", headers=None):
    async with client.stream("GET", f"{gateway.url}/sse{path}", headers=headers, timeout=30) as response:
        assert response.status_code == 200
        host = RawSse(client, response, gateway)
        host.messages = urlsplit(await host.event())
        yield host
