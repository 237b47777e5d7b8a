"""Streams of Streamable HTTP that broke are resumed: what is kept for that, for how long, and for whom."""

import asyncio
import json
from contextlib import asynccontextmanager
from functools import partial
from itertools import takewhile

import anyio
import httpx2
import pytest
from mcp.server.lowlevel import Server
from mcp_types import JSONRPCError, JSONRPCNotification, JSONRPCRequest, JSONRPCResponse
from starlette.applications import Starlette
from starlette.routing import Mount

from gateway.config.http_settings import HttpSettings
from gateway.serving.mcp.events import EVENT_BYTES, Bounds, Events, size_of_message
from gateway.serving.mcp.handshake import Identity
from gateway.serving.mcp.http import http_app, serve_http
from gateway.serving.mcp.http_sessions import ResumableSessions
from gateway.serving.mcp.written_json import WrittenArray
from tests.servers.downstream_service import SampleService

pytestmark = pytest.mark.anyio

ACCEPT = {"Accept": "application/json, text/event-stream"}
MODERN = {**ACCEPT, "MCP-Protocol-Version": "2026-07-28", "Mcp-Method": "tools/call", "Mcp-Name": "held"}
HANDSHAKE = ("2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25")


def answer(request_id, text="done"):
    return JSONRPCResponse(jsonrpc="2.0", id=request_id, result={"text": text})


def note(number=0, text=""):
    return JSONRPCNotification(jsonrpc="2.0", method="notifications/progress", params={"progress": number, "m": text})


async def replayed(session, event_id):
    """What a host gets that comes back with this id: the messages, their ids, and the stream that goes on."""
    messages, ids = [], []

    async def take(event):
        messages.append(event.message)
        ids.append(event.event_id)

    stream = await session.replay_events_after(event_id, take)
    return messages, ids, stream


# -- the store ---------------------------------------------------------------------------------------------------------


async def test_what_another_replica_left_behind_is_kept_but_for_what_no_gateway_of_this_version_has_written():
    session = Events(clock=lambda: 0.0).session()
    good = {"jsonrpc": "2.0", "id": "1", "result": {"text": "done"}}
    foreign = (3, "text", [], {}, {"jsonrpc": "9"}, {"jsonrpc": "2.0", "id": {}, "result": 1})
    left = [{"stream": "1", "id": f"other-{place}", "message": message} for place, message in enumerate(foreign)]
    session.restore([*left, {"stream": "1", "id": "first", "message": None}, {}])
    session.restore([{"stream": "2", "id": "first", "message": None}, {"stream": "2", "id": "last", "message": good}])
    assert set(session.kept) == {"first", "last"}
    messages, ids, _ = await replayed(session, "first")
    assert (messages, ids) == ([answer("1")], ["last"])


async def test_what_came_on_the_stream_after_an_event_is_sent_again_in_order():
    session = Events(clock=lambda: 0.0).session()
    primed = await session.store_event("1", None)
    other = await session.store_event("2", note(7))
    first = await session.store_event("1", note(1))
    await session.store_event("_GET_stream", note(8))
    second = await session.store_event("1", note(2))
    assert await replayed(session, primed) == ([note(1), note(2)], [first, second], "1")
    assert await replayed(session, first) == ([note(2)], [second], "1")
    assert await replayed(session, second) == ([], [], "1")
    assert await replayed(session, other) == ([], [], "2")


async def test_a_stream_ends_with_the_answer_and_a_request_id_may_be_used_again():
    session = Events(clock=lambda: 0.0).session()
    primed = await session.store_event("1", None)
    await session.store_event("1", answer(1))
    again = await session.store_event("1", None)
    await session.store_event("1", note(1))
    assert (await replayed(session, primed))[::2] == ([answer(1)], None)
    assert (await replayed(session, again))[::2] == ([note(1)], "1")


async def test_what_comes_while_a_stream_is_sent_again_is_sent_too():
    session = Events(clock=lambda: 0.0).session()
    primed = await session.store_event("1", None)
    await session.store_event("1", note(1))
    sent = []

    async def slowly(event):
        sent.append(event.message)
        if len(sent) == 1:
            await session.store_event("1", answer(1))

    assert await session.replay_events_after(primed, slowly) is None
    assert sent == [note(1), answer(1)]


async def test_the_events_of_one_session_are_unknown_to_another():
    events = Events(clock=lambda: 0.0)
    mine, theirs = events.session(), events.session()
    ids = [await session.store_event("1", None) for session in (mine, theirs)]
    for session in (mine, theirs):
        await session.store_event("1", answer(1, "of mine" if session is mine else "of theirs"))
    assert ids[0] != ids[1]
    assert await replayed(theirs, ids[0]) == ([], [], None)
    assert [message.result["text"] for message in (await replayed(theirs, ids[1]))[0]] == ["of theirs"]
    assert await replayed(mine, "") == ([], [], None)


async def test_a_session_gives_up_its_oldest_events_and_costs_the_others_nothing():
    events = Events(Bounds(session_events=3), clock=lambda: 0.0)
    busy, quiet = events.session(), events.session()
    kept = await quiet.store_event("1", None)
    ids = [await busy.store_event("1", note(number)) for number in range(5)]
    assert await replayed(busy, ids[1]) == ([], [], None)
    assert await replayed(busy, ids[2]) == ([note(3), note(4)], ids[3:], "1")
    assert (await replayed(quiet, kept))[2] == "1"


@pytest.mark.parametrize("bound", ["session_bytes", "all_bytes"])
async def test_bytes_are_bounded_for_a_session_and_for_all(bound):
    size = EVENT_BYTES + size_of_message(note(0, "x" * 10_000))
    events = Events(Bounds(**{bound: 3 * size}), clock=lambda: 0.0)
    session = events.session()
    sessions = [session] * 5 if bound == "session_bytes" else [events.session() for _ in range(5)]
    ids = [await one.store_event("1", note(0, "x" * 10_000)) for one in sessions]
    assert (len(events), events.size) == (3, 3 * size)
    assert [(await replayed(one, event_id))[2] for one, event_id in zip(sessions, ids, strict=True)] == [
        None,
        None,
        "1",
        "1",
        "1",
    ]


async def test_the_number_of_events_is_bounded_for_all_sessions():
    events = Events(Bounds(all_events=2), clock=lambda: 0.0)
    for _ in range(5):
        await events.session().store_event("1", None)
    assert len(events) == 2


async def test_an_answer_that_is_too_large_to_be_kept_is_an_error_for_who_comes_back():
    events = Events(Bounds(session_bytes=5_000), clock=lambda: 0.0)
    session = events.session()
    primed = await session.store_event("9", None)
    await session.store_event("9", note(1, "x" * 10_000))
    await session.store_event("9", answer(9, "x" * 10_000))
    (error,), _, stream = await replayed(session, primed)
    assert isinstance(error, JSONRPCError)
    assert (error.id, "too large" in error.error.message, stream) == (9, True, None)
    assert events.size < 5_000


def test_the_size_of_a_message_is_that_of_everything_in_it():
    small = size_of_message(answer(1, "a"))
    assert size_of_message(answer(1, "a" * 1_001)) == small + 1_000
    assert size_of_message(answer(1, "☃" * 100_000)) > 200_000
    deep = JSONRPCResponse(jsonrpc="2.0", id=1, result={"list": [{"k": ["v" * 5_000] * 2}]})
    assert size_of_message(deep) > 10_000
    asked = JSONRPCRequest(jsonrpc="2.0", id=1, method="m", params={"t": "x" * 5_000})
    assert size_of_message(asked) > 5_000
    listed = JSONRPCResponse(jsonrpc="2.0", id=1, result={"tools": WrittenArray([], b"[" + b" " * 5_000 + b"]")})
    assert size_of_message(listed) > 5_000


async def test_an_answer_expires_and_a_call_that_still_runs_can_be_resumed():
    now = [0.0]
    events = Events(Bounds(seconds=10.0), clock=lambda: now[0])
    session = events.session()
    answered, running = await session.store_event("1", None), await session.store_event("2", None)
    await session.store_event("1", answer(1))
    now[0] = 10.0
    events.expire()
    assert len(await replayed(session, answered)) == 3
    assert len(events) == 3
    now[0] = 10.1
    events.expire()
    assert (len(events), events.size) == (1, EVENT_BYTES + size_of_message(None))
    assert (await replayed(session, answered))[2] is None
    assert (await replayed(session, running))[2] == "2"


async def test_events_expire_while_the_gateway_runs():
    empty = anyio.Event()

    class Watched(Events):
        def expire(self):
            super().expire()
            if not self:
                empty.set()

    events = Watched(Bounds(seconds=0.01))
    await events.session().store_event("1", answer(1))
    with anyio.fail_after(30):
        async with events.expiring():
            await empty.wait()


async def test_nothing_is_kept_of_a_session_that_is_over():
    events = Events(clock=lambda: 0.0)
    session = events.session()
    known = await session.store_event("1", None)
    session.forget()
    late = await session.store_event("1", answer(1))
    assert (len(events), events.size) == (0, 0)
    assert [await replayed(session, event_id) for event_id in (known, late)] == [([], [], None)] * 2


# -- over HTTP ---------------------------------------------------------------------------------------------------------


@asynccontextmanager
async def holding():
    """A gateway whose tool `held` answers when it is let go, at its origin."""

    class Holding(SampleService):
        def __init__(self):
            super().__init__()
            self.go = asyncio.Event()
            self.called = asyncio.Event()

        async def respond(self, method, params, caller, *, on_progress=None, **options):
            if params.get("name") != "held":
                return await super().respond(method, params, caller, on_progress=on_progress, **options)
            if on_progress is not None:
                await on_progress(1.0, None, None)
            self.called.set()
            await self.go.wait()
            if on_progress is not None:
                await on_progress(2.0, None, None)
            return {"content": [{"type": "text", "text": "held"}]}

    service, options = Holding(), HttpSettings(port=0)
    app = http_app(service, options, Identity("sample", "1.0"))
    async with anyio.create_task_group() as tasks:
        bound = asyncio.Queue[int]()
        tasks.start_soon(partial(serve_http, app, options, on_bound=bound.put_nowait))
        yield service, f"http://127.0.0.1:{await bound.get()}/mcp"
        tasks.cancel_scope.cancel()


async def opened(client, url, wire, revision="2025-11-25"):
    """The headers of a new session."""
    response = await client.post(url, json=wire.initialize(revision), headers=ACCEPT)
    headers = {**ACCEPT, "Mcp-Session-Id": response.headers["mcp-session-id"], "MCP-Protocol-Version": revision}
    await client.post(url, json=wire.notification("notifications/initialized"), headers=headers)
    return headers


async def read_event(lines):
    """The next event of a stream, by the names of its fields; None at the end."""
    event = {}
    async for line in lines:
        if not line and event:
            return event
        if line and not line.startswith(":"):
            name, _, value = line.partition(":")
            event[name] = value.removeprefix(" ")
    return None


async def read_events(response):
    lines, events = response.aiter_lines(), []
    while (event := await read_event(lines)) is not None:
        events.append(event)
    return events


def held(wire, request_id=1):
    return wire.request(request_id, "tools/call", {"name": "held", "_meta": {"progressToken": "t"}})


@pytest.mark.parametrize("revision", HANDSHAKE)
async def test_only_hosts_that_know_events_without_data_get_them(wire, revision):
    with anyio.fail_after(30):
        async with holding() as (service, url), httpx2.AsyncClient() as client:
            service.go.set()
            async with client.stream("POST", url, json=wire.initialize(revision), headers=ACCEPT) as response:
                opening = await read_events(response)
            headers = await opened(client, url, wire, revision)
            async with client.stream("POST", url, json=held(wire), headers=headers) as response:
                calling = await read_events(response)
    for events, messages in ((opening, 1), (calling, 3)):
        primed = list(takewhile(lambda event: not event["data"], events))
        assert len(primed) == (revision == "2025-11-25")
        assert all(event["id"] and event["retry"] == "1000" and "event" not in event for event in primed)
        rest = events[len(primed) :]
        assert len(rest) == messages
        assert all(json.loads(event["data"])["jsonrpc"] == "2.0" and event["id"] for event in rest)
        assert len({event["id"] for event in events}) == len(events)


@pytest.mark.parametrize("revision", HANDSHAKE)
@pytest.mark.parametrize("running", [True, False])
async def test_a_call_whose_stream_broke_is_answered_on_another(wire, revision, running):
    with anyio.fail_after(30):
        async with holding() as (service, url), httpx2.AsyncClient() as client:
            headers = await opened(client, url, wire, revision)
            async with client.stream("POST", url, json=held(wire), headers=headers) as response:
                lines = response.aiter_lines()
                while "progress" not in (event := await read_event(lines))["data"]:
                    pass
                await service.called.wait()
            if not running:
                service.go.set()
                await post_until_answered(client, url, wire, headers)
            resumed = {**headers, "Last-Event-ID": event["id"]}
            async with client.stream("GET", url, headers=resumed) as response:
                lines, heard = response.aiter_lines(), []
                service.go.set()
                while not heard or "result" not in heard[-1]:
                    event = await read_event(lines)
                    heard += [json.loads(event["data"])] if event["data"] else []
    assert [message.get("params", {}).get("progress") for message in heard] == [2.0, None]
    assert heard[-1]["result"]["content"][0]["text"] == "held"


async def post_until_answered(client, url, wire, headers):
    """Another call is answered: so is what was let go before it."""
    async with client.stream("POST", url, json=held(wire, 2), headers=headers) as response:
        await read_events(response)


async def test_a_stream_whose_answer_was_sent_again_is_ended(wire):
    with anyio.fail_after(30):
        async with holding() as (service, url), httpx2.AsyncClient() as client:
            service.go.set()
            headers = await opened(client, url, wire)
            async with client.stream("POST", url, json=held(wire), headers=headers) as response:
                first, *rest = await read_events(response)
            async with client.stream("GET", url, headers={**headers, "Last-Event-ID": first["id"]}) as response:
                assert response.headers["content-type"].startswith("text/event-stream")
                assert await read_events(response) == rest


async def test_what_another_session_was_sent_stays_with_it(wire):
    with anyio.fail_after(30):
        async with holding() as (service, url), httpx2.AsyncClient() as client:
            service.go.set()
            mine, theirs = await opened(client, url, wire), await opened(client, url, wire)
            async with client.stream("POST", url, json=held(wire), headers=mine) as response:
                first, *_ = await read_events(response)
            for unknown in (first["id"], "1", "\xe4"):
                resumed = {**theirs, "Last-Event-ID": unknown.encode("latin-1")}
                async with client.stream("GET", url, headers=resumed) as response:
                    assert await read_events(response) == []


async def test_a_large_answer_arrives_whole_and_cannot_be_resumed(wire):
    big = wire.request(3, "tools/call", {"name": "big", "arguments": {"size": 17 * 1024 * 1024}})
    with anyio.fail_after(60):
        async with holding() as (_, url), httpx2.AsyncClient() as client:
            headers = await opened(client, url, wire)
            async with client.stream("POST", url, json=big, headers=headers) as response:
                first, whole = await read_events(response)
            assert len(json.loads(whole["data"])["result"]["content"][0]["data"]) == 17 * 1024 * 1024
            async with client.stream("GET", url, headers={**headers, "Last-Event-ID": first["id"]}) as response:
                (instead,) = await read_events(response)
            assert "too large" in json.loads(instead["data"])["error"]["message"]


async def test_the_stateless_era_has_nothing_to_resume(wire):
    call = wire.request(1, "tools/call", wire.modern({"name": "held"}, progressToken="t"))
    with anyio.fail_after(30):
        async with holding() as (service, url), httpx2.AsyncClient() as client:
            service.go.set()
            async with client.stream("POST", url, json=call, headers=MODERN) as response:
                events = await read_events(response)
    assert all(set(event) == {"event", "data"} for event in events)
    assert json.loads(events[-1]["data"])["result"]["content"][0]["text"] == "held"


async def test_nothing_is_kept_of_a_session_that_its_host_has_ended(wire):
    events = Events()
    manager = ResumableSessions(Server("x"), events)
    app = Starlette(routes=[Mount("/", manager.handle_request)])
    with anyio.fail_after(30):
        async with (
            manager.run(),
            httpx2.AsyncClient(transport=httpx2.ASGITransport(app), base_url="http://localhost") as client,
        ):
            headers = await opened(client, "/", wire)
            assert len(events) > 0
            assert (await client.delete("/", headers=headers)).status_code == 200
            assert len(events) == 0


async def test_a_host_that_left_without_a_word_makes_room_for_a_new_session(wire):
    events = Events()
    manager = ResumableSessions(Server("x"), events, max_sessions=2)
    app = Starlette(routes=[Mount("/", manager.handle_request)])
    with anyio.fail_after(30):
        async with (
            manager.run(),
            httpx2.AsyncClient(transport=httpx2.ASGITransport(app), base_url="http://localhost") as client,
        ):
            sessions = [await opened(client, "/", wire) for _ in range(3)]
            ping = wire.request(7, "ping")
            there = [(await client.post("/", json=ping, headers=headers)).status_code for headers in sessions]
            assert there == [404, 200, 200]
            assert len(manager._server_instances) == 2  # pyright: ignore[reportPrivateUsage]
