"""What passes the proxy: everything as it comes, both ways, and nothing goes anywhere but to the model API."""

import gc
import json
import tracemalloc

import anyio
import httpx2
import pytest

pytestmark = pytest.mark.anyio

CHAT = "/v1/chat/completions"


@pytest.fixture
async def client():
    async with httpx2.AsyncClient(timeout=20, trust_env=False) as client:
        yield client


def start(status=200, headers=()):
    return {"type": "http.response.start", "status": status, "headers": list(headers)}


def part(body, more=True):
    return {"type": "http.response.body", "body": body, "more_body": more}


async def test_a_request_without_media_arrives_with_its_very_bytes(recorder, before, client):
    api = recorder()
    body = b'{"model":"m" , "messages": [{"role":"tool","content":"x","n":1.50}]}'
    async with before(api) as proxy:
        answer = await client.post(proxy.url + CHAT, content=body, headers={"authorization": "Bearer k", "x-a": "b"})
    (request,) = api.requests
    assert request["body"] == body
    headers = dict(request["headers"])
    assert (headers["authorization"], headers["x-a"]) == ("Bearer k", "b")
    assert headers["host"] == proxy.behind.removeprefix("http://")
    assert answer.headers["x-mcp-gateway-repairs"] == "0"


async def test_a_repair_is_counted_and_explained(recorder, before, client, picture):
    api = recorder()
    content = json.dumps([{"type": "image", "data": picture("red"), "mimeType": "image/png"}])
    request = {"model": "gpt-5", "messages": [{"role": "tool", "tool_call_id": "c0", "content": content}]}
    async with before(api) as proxy:
        answer = await client.post(proxy.url + CHAT, json=request)
    assert answer.headers["x-mcp-gateway-repairs"] == "1"
    roles = [message["role"] for message in json.loads(api.requests[0]["body"])["messages"]]
    assert roles == ["tool", "user"]
    assert [change.where for change in proxy.explained[0].changes] == ["messages.0.content"]


async def test_names_of_models_are_not_kept_whole(recorder, before, client, picture):
    api = recorder()
    content = json.dumps([{"type": "image", "data": picture("red"), "mimeType": "image/png"}])
    messages = [{"role": "tool", "tool_call_id": "c0", "content": content}]
    async with before(api) as proxy:
        await client.post(proxy.url + CHAT, json={"model": "gpt-5", "messages": messages})
        tracemalloc.start()
        try:
            for number in range(16):
                name = f"{number}{'m' * 2**22}"
                assert (await client.post(proxy.url + CHAT, json={"model": name, "messages": messages})).is_success
                api.requests.clear()
                proxy.explained.clear()
            del name
            gc.collect()
            assert tracemalloc.get_traced_memory()[0] < 2**25  # a few requests that are not quite gone, of 2**26
        finally:
            tracemalloc.stop()


@pytest.mark.parametrize("method", ["GET", "POST", "PUT", "DELETE", "PATCH", "HEAD", "OPTIONS"])
async def test_every_other_path_passes_untouched(recorder, before, client, picture, method):
    api = recorder()
    body = None if method in ("GET", "HEAD", "OPTIONS") else json.dumps({"messages": [picture("red")]}).encode()
    async with before(api) as proxy:
        answer = await client.request(method, f"{proxy.url}/v1/files/a%2Fb?x=%20y&z", content=body)
    (request,) = api.requests
    assert (request["method"], request["path"], request["query"]) == (method, "/v1/files/a%2Fb", "x=%20y&z")
    assert request["body"] == (body or b"")
    assert "x-mcp-gateway-repairs" not in answer.headers


@pytest.mark.parametrize("given", ["/api/v1/chat/completions", "/v1/chat/completions", "/chat/completions"])
async def test_the_path_of_the_base_url_is_not_doubled(recorder, before, client, given):
    api = recorder()
    async with before(api, path="/api/v1") as proxy:
        await client.post(proxy.url + given, json={"messages": []})
    assert api.requests[0]["path"] == "/api/v1/chat/completions"


@pytest.mark.parametrize(
    "path", ["//evil.example/v1/x", "/@evil.example/", "/http://evil.example/", "/%2F%2Fevil.example"]
)
async def test_a_path_cannot_lead_elsewhere(recorder, before, path):
    api = recorder()
    async with before(api) as proxy:
        answer = await raw(proxy, f"GET {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n")
    assert answer.startswith(b"HTTP/1.1 200")
    assert len(api.requests) == 1


async def test_a_whole_url_as_the_target_cannot_lead_elsewhere(recorder, before):
    api = recorder()
    async with before(api) as proxy:
        request = "GET http://evil.example/v1/x HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n"
        answer = await raw(proxy, request)
    assert answer.startswith((b"HTTP/1.1 200", b"HTTP/1.1 400"))
    assert all(dict(one["headers"])["host"] == proxy.behind.removeprefix("http://") for one in api.requests)


async def raw(proxy, request):
    host, port = proxy.url.removeprefix("http://").split(":")
    async with await anyio.connect_tcp(host, int(port)) as stream:
        await stream.send(request.encode())
        answer = b""
        try:
            while True:
                answer += await stream.receive()
        except anyio.EndOfStream:
            return answer


async def test_a_stream_passes_event_by_event(recorder, before, client):
    goes_on = anyio.Event()

    async def stream(receive, send):
        await send(start(headers=[(b"content-type", b"text/event-stream")]))
        await send(part(b"data: one\n\n"))
        await goes_on.wait()
        await send(part(b"data: two\n\n", more=False))

    async with (
        before(recorder(stream)) as proxy,
        client.stream("POST", proxy.url + CHAT, json={"messages": [], "stream": True}) as answer,
    ):
        chunks = answer.aiter_raw()
        assert await anext(chunks) == b"data: one\n\n"
        goes_on.set()  # only now does the second one exist
        assert b"".join([chunk async for chunk in chunks]) == b"data: two\n\n"


async def test_a_client_that_leaves_ends_the_request_behind(recorder, before, client):
    left = anyio.Event()

    async def endless(receive, send):
        await send(start(headers=[(b"content-type", b"text/event-stream")]))
        await send(part(b"data: one\n\n"))
        assert (await receive())["type"] == "http.disconnect"
        left.set()

    async with before(recorder(endless)) as proxy:
        async with client.stream("POST", proxy.url + CHAT, json={"messages": []}) as answer:
            await anext(answer.aiter_raw())
        await left.wait()


async def test_a_client_that_leaves_before_the_answer_ends_the_request_behind(recorder, before, client):
    asked, left = anyio.Event(), anyio.Event()

    async def silent(receive, send):
        asked.set()
        assert (await receive())["type"] == "http.disconnect"
        left.set()

    async with before(recorder(silent)) as proxy, anyio.create_task_group() as tasks:
        tasks.start_soon(lambda: client.post(proxy.url + CHAT, json={"messages": []}))
        await asked.wait()
        tasks.cancel_scope.cancel()
        with anyio.CancelScope(shield=True):
            await left.wait()


async def test_status_headers_and_body_of_errors_are_unchanged(recorder, before, client):
    body = b'{"error": {"message":"slow down" , "type":"rate_limit"}}'

    async def refuse(receive, send):
        headers = [(b"retry-after", b"7"), (b"set-cookie", b"a=1"), (b"set-cookie", b"b=2"), (b"x-request-id", b"r")]
        await send(start(429, [*headers, (b"content-length", str(len(body)).encode()), (b"connection", b"x-hop")]))
        await send(part(body, more=False))

    async with before(recorder(refuse)) as proxy:
        answer = await client.post(proxy.url + CHAT, json={"messages": []})
    assert (answer.status_code, answer.content, answer.headers["retry-after"]) == (429, body, "7")
    assert answer.headers.get_list("set-cookie") == ["a=1", "b=2"]
    assert len(answer.headers.get_list("date")) == 1


async def test_compressed_answers_stay_compressed(recorder, before, client):
    async def compressed(receive, send):
        await send(start(headers=[(b"content-encoding", b"br"), (b"content-length", b"4")]))
        await send(part(b"\x8b\x00\x80x", more=False))

    async with (
        before(recorder(compressed)) as proxy,
        client.stream("POST", proxy.url + CHAT, json={"messages": []}) as answer,
    ):
        assert answer.headers["content-encoding"] == "br"
        assert b"".join([chunk async for chunk in answer.aiter_raw()]) == b"\x8b\x00\x80x"


async def test_redirects_are_the_clients_business(recorder, before, client):
    async def redirect(receive, send):
        await send(start(307, [(b"location", b"http://elsewhere.example/"), (b"content-length", b"0")]))
        await send(part(b"", more=False))

    async with before(recorder(redirect)) as proxy:
        answer = await client.post(proxy.url + CHAT, json={"messages": []}, follow_redirects=False)
    assert (answer.status_code, answer.headers["location"]) == (307, "http://elsewhere.example/")


async def test_a_broken_answer_is_seen_to_be_broken(recorder, before, client):
    async def broken(receive, send):
        await send(start(headers=[(b"content-length", b"100")]))
        await send(part(b"only this", more=False))

    async with before(recorder(broken)) as proxy:
        with pytest.raises(httpx2.RemoteProtocolError):
            await client.post(proxy.url + CHAT, json={"messages": []})


async def test_many_requests_share_connections(recorder, before, client):
    api = recorder()
    async with before(api) as proxy, anyio.create_task_group() as tasks:
        for _ in range(20):
            tasks.start_soon(lambda: client.post(proxy.url + CHAT, json={"messages": []}))
    assert len(api.requests) == 20
