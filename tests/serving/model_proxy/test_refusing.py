"""What the proxy answers itself, in the form of each API; and that no key is ever kept or told."""

import json
import logging
from time import process_time
from typing import Any
from urllib.parse import urlsplit

import anyio
import httpx2
import pytest

from gateway.config.model_proxy_settings import ModelProxySettings
from gateway.errors import ConfigError, Overloaded, ProfileError
from gateway.serving.model_proxy import base_urls, check_proxy_bind, proxy_app
from gateway.serving.model_proxy.explain_repair import explanation, texts_with_base64
from gateway.serving.model_proxy.routes import climbs, path_behind, route_of, target_of

pytestmark = pytest.mark.anyio

NOBODY: Any = None
"""For a proxy that never gets as far as repairing."""

PATHS = {
    "openai_chat": "/v1/chat/completions",
    "openai_responses": "/v1/responses",
    "anthropic_messages": "/v1/messages",
    "gemini": "/v1beta/models/gemini-3-pro:generateContent",
    "ollama": "/api/chat",
}


@pytest.fixture
async def client():
    async with httpx2.AsyncClient(timeout=20, trust_env=False) as client:
        yield client


def message_of(dialect, answer):
    """The words of an error, taken from where the API's own client looks for them."""
    body = answer.json()
    match dialect:
        case "anthropic_messages":
            assert body["type"] == "error"
            assert body["error"].keys() == {"type", "message"}
            return body["error"]["message"]
        case "gemini":
            assert body["error"]["code"] == answer.status_code
            assert body["error"]["status"].isupper()
            return body["error"]["message"]
        case "ollama":
            return body["error"]
        case _:
            assert body["error"].keys() == {"message", "type", "param", "code"}
            return body["error"]["message"]


@pytest.mark.parametrize("dialect", PATHS)
async def test_a_request_that_is_too_large_is_refused_and_never_forwarded(recorder, before, client, dialect):
    api = recorder()
    async with before(api, max_request_bytes=1_000) as proxy:
        answer = await client.post(proxy.url + PATHS[dialect], content=b"x" * 1_001)
    assert answer.status_code == 413
    assert "1,000 bytes" in message_of(dialect, answer)
    assert api.requests == []


async def test_a_request_of_unknown_length_is_refused_as_soon_as_it_is_too_large(recorder, before, client):
    async def chunks():
        for _ in range(50):
            yield b"x" * 100

    api = recorder()
    async with before(api, max_request_bytes=1_000) as proxy:
        answer = await client.post(proxy.url + PATHS["openai_chat"], content=chunks())
    assert answer.status_code == 413
    assert api.requests == []


@pytest.mark.parametrize("dialect", PATHS)
async def test_a_model_api_that_is_not_there_is_said_in_the_apis_form(recorder, before, client, unused, dialect):
    async with before(recorder(), to=f"http://127.0.0.1:{unused}") as proxy:
        answer = await client.post(proxy.url + PATHS[dialect], json={})
    assert answer.status_code == 502
    assert "cannot be reached" in message_of(dialect, answer)


async def test_a_model_api_that_does_not_answer_in_time_is_a_timeout(recorder, before, client):
    async def silent(receive, send):
        await receive()

    async with before(recorder(silent), timeout=0.2) as proxy:
        answer = await client.post(proxy.url + PATHS["openai_chat"], json={"messages": []})
    assert answer.status_code == 504


@pytest.fixture
def unused():
    import socket

    with socket.create_server(("127.0.0.1", 0)) as taken:
        return taken.getsockname()[1]


async def through(app, method, path, **options):
    """A request straight to an application, its Host a loopback one."""
    transport = httpx2.ASGITransport(app)
    async with httpx2.AsyncClient(transport=transport, base_url="http://127.0.0.1") as client:
        return await client.request(method, path, **options)


@pytest.mark.parametrize(
    ("to", "dialect"),
    [
        ("https://api.openai.com/v1", "anthropic_messages"),
        ("https://api.openai.com/v1", "gemini"),
        ("https://api.anthropic.com", "openai_responses"),
        ("https://generativelanguage.googleapis.com", "ollama"),
    ],
)
async def test_a_dialect_that_the_model_api_does_not_speak_is_a_clear_404(to, dialect):
    app = proxy_app(ModelProxySettings(to=to), NOBODY)
    answer = await through(app, "POST", PATHS[dialect], json={})
    assert answer.status_code == 404
    words = message_of(dialect, answer)
    assert "have to speak the same dialect" in words
    assert "POST /v1" in words


@pytest.mark.parametrize("dialect", PATHS)
async def test_a_large_request_is_refused_in_the_apis_form_while_memory_is_short(dialect):
    seen = []

    def check_size(size):
        seen.append(size)
        if size is None or size > 1_000:
            raise Overloaded("the gateway is short of memory", retry_after=3)

    app = proxy_app(ModelProxySettings(to="https://api.example.com"), NOBODY, check_size=check_size)
    answer = await through(app, "POST", PATHS[dialect], json={"x": "y" * 2_000})
    assert (answer.status_code, answer.headers["retry-after"]) == (503, "3")
    assert "short of memory" in message_of(dialect, answer)
    assert seen[0] > 2_000


@pytest.mark.parametrize("dialect", PATHS)
async def test_the_token_of_the_proxy_is_asked_for_and_never_forwarded(recorder, before, client, dialect):
    api = recorder()
    async with before(api, token="secret-of-the-proxy") as proxy:
        for headers in ({}, {"x-mcp-gateway-token": "wrong"}, {"authorization": "Bearer secret-of-the-proxy"}):
            answer = await client.post(proxy.url + PATHS[dialect], json={}, headers=headers)
            assert answer.status_code == 401
            assert "X-MCP-Gateway-Token" in message_of(dialect, answer)
        assert api.requests == []
        headers = {"x-mcp-gateway-token": "secret-of-the-proxy", "authorization": "Bearer k"}
        assert (await client.post(proxy.url + PATHS[dialect], json={}, headers=headers)).status_code == 200
    (request,) = api.requests
    assert "secret-of-the-proxy" not in str(request)
    assert ("authorization", "Bearer k") in request["headers"]


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"host": "evil.example"}, 421),
        ({"origin": "https://evil.example"}, 403),
        ({"origin": "http://localhost:3000"}, 200),
        ({"host": "mine.example"}, 200),
        ({"origin": "https://app.example"}, 200),
    ],
)
async def test_only_allowed_hosts_and_origins_may_call(recorder, before, client, headers, status):
    api = recorder()
    options = {"allowed_hosts": ("mine.example",), "allowed_origins": ("https://app.example",)}
    async with before(api, **options) as proxy:
        answer = await client.post(proxy.url + PATHS["openai_chat"], json={}, headers=headers)
    assert answer.status_code == status
    assert len(api.requests) == (status == 200)


async def test_no_key_and_no_content_is_logged(recorder, before, client, picture, caplog):
    caplog.set_level(logging.DEBUG, "gateway")
    content = f"top secret words data:image/png;base64,{picture('red')}"
    contents = [{"role": "user", "parts": [{"functionResponse": {"name": "x", "response": {"output": content}}}]}]
    headers = {"authorization": "Bearer sk-key", "x-api-key": "sk-key", "x-goog-api-key": "sk-key"}
    async with before(recorder()) as proxy:
        url = proxy.url + PATHS["gemini"] + "?key=sk-key"
        answer = await client.post(url, json={"contents": contents}, headers=headers)
    assert answer.headers["x-mcp-gateway-repairs"] == "1"
    lines = "\n".join(record.getMessage() for record in caplog.records)
    assert "repaired contents.0.parts.0.functionResponse" in lines
    assert "sk-key" not in lines
    assert "top secret" not in lines
    assert picture("red")[:30] not in lines


async def test_an_explanation_shows_before_and_after_without_base64(recorder, before, client, picture):
    content = f"words data:image/png;base64,{picture('red')}"
    request = {"messages": [{"role": "tool", "tool_call_id": "c", "content": content}]}
    async with before(recorder()) as proxy:
        await client.post(proxy.url + PATHS["openai_chat"], json=request)
    words = explanation(proxy.explained[0])
    assert "--- messages.0.content\nwords data:image/png;base64,iVBORw0KGgo" in words
    assert "+++\nwords" in words
    assert len(words) < 600


async def test_an_explanation_says_what_needed_no_repair(recorder, before, client, picture):
    request = {"model": "m", "messages": [{"role": "tool", "tool_call_id": "c", "content": "words"}]}
    async with before(recorder()) as proxy:
        await client.post(proxy.url + PATHS["openai_chat"], json=request)
        await client.get(proxy.url + "/v1/models")
    (one,) = proxy.explained
    assert explanation(one) == "=== a request without media in tool results: nothing to repair"


@pytest.mark.parametrize(
    ("content", "is_told"),
    [
        ("the picture follows " + "QUJD" * 1_200, True),
        ("QUJD" * 100 + " is short", False),
        ("words without any end " * 1_000, False),
    ],
)
async def test_an_explanation_points_out_base64_that_went_on_as_text(recorder, before, client, content, is_told):
    picture = {"type": "image_url", "image_url": {"url": "data:image/png;base64," + "QUJD" * 2_000}}
    said = [{"role": "user", "content": [picture]}, {"role": "tool", "tool_call_id": "c", "content": content}]
    api = recorder()
    async with before(api) as proxy:
        await client.post(proxy.url + PATHS["openai_chat"], json={"messages": said})
    assert json.loads(api.requests[0]["body"])["messages"] == said
    words = explanation(proxy.explained[0])
    assert words.startswith("=== a request without media in tool results: nothing to repair")
    assert ("note: 1 text of it has long base64 among other words, and it is sent on unchanged" in words) is is_told


@pytest.mark.parametrize(
    ("text", "count"),
    [
        ("QUJD" * 2_000 + "\n" * 2_000_000 + "two words", 1),
        (("A" * 3_999 + " ") * 1_000, 0),  # each run is a little too short to count
        (("A" * 3_999 + " ") * 1_000 + "A" * 4_000, 1),
    ],
)
def test_texts_are_looked_through_for_base64_in_linear_time(text, count):
    body = json.dumps({"a": [text]}).encode()
    began = process_time()
    assert texts_with_base64(body) == count
    assert process_time() - began < 5


@pytest.mark.parametrize(
    ("dialect", "request_of", "said"),
    [
        (
            "openai_chat",
            lambda text: {"messages": [{"role": "tool", "tool_call_id": "c", "content": text}]},
            "=== openai_chat, model m: images are image_url parts in a user message after the tool messages",
        ),
        (
            "openai_responses",
            lambda text: {"input": [{"type": "function_call_output", "call_id": "c", "output": text}]},
            "=== openai_responses, model m: images are input_image items in the function_call_output",
        ),
        (
            "anthropic_messages",
            lambda text: {
                "messages": [
                    {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "c", "content": text}]}
                ]
            },
            "=== anthropic_messages, model m: images are image blocks in the tool_result block",
        ),
        (
            "ollama",
            lambda text: {"messages": [{"role": "tool", "tool_name": "t", "content": text}]},
            "=== ollama, model m: images are members of `images` in the tool message",
        ),
    ],
)
async def test_an_explanation_speaks_of_the_api_of_the_request(
    recorder, before, client, picture, dialect, request_of, said
):
    request = {"model": "m", **request_of(f"words data:image/png;base64,{picture('red')}")}
    async with before(recorder()) as proxy:
        await client.post(proxy.url + PATHS[dialect], json=request)
    assert explanation(proxy.explained[0]).startswith(said)


@pytest.mark.parametrize("bind", ["0.0.0.0", "::", "192.0.2.7", "host.example"])
def test_beyond_loopback_a_token_is_needed(bind):
    with pytest.raises(ConfigError, match="token"):
        check_proxy_bind(ModelProxySettings(to="http://x", bind=bind))
    check_proxy_bind(ModelProxySettings(to="http://x", bind=bind, token="t"))


def test_the_profile_has_to_exist_and_to_be_of_a_dialect_that_is_proxied():
    with pytest.raises(ProfileError):
        proxy_app(ModelProxySettings(to="http://x", profile="vlm"), NOBODY)
    with pytest.raises(ConfigError, match="not proxied"):
        proxy_app(ModelProxySettings(to="http://x", profile="bedrock_converse"), NOBODY)
    with pytest.raises(ConfigError, match="no model API"):
        proxy_app(ModelProxySettings(), NOBODY)


@pytest.mark.parametrize(
    "to", ["api.example", "ftp://x", "http://", "http://user:pw@x/v1", "http://x/?q=1", "http://x/#f"]
)
def test_an_address_of_another_form_is_refused(to):
    with pytest.raises(ValueError, match="base url"):
        ModelProxySettings(to=to)


def test_base_urls_name_what_each_client_is_given():
    urls = base_urls(ModelProxySettings(to="https://openrouter.example/api/v1", bind="::1"), 8485)
    assert urls["OpenAI (Chat Completions, Responses)"] == "http://[::1]:8485/api/v1"
    assert urls["Anthropic"] == "http://[::1]:8485"


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("/openai/deployments/d/chat/completions", ("openai_chat", None)),
        ("/v1/responses", ("openai_responses", None)),
        ("/v1/responses/resp_1/input_items", None),
        ("/v1/messages", ("anthropic_messages", None)),
        ("/v1/messages/count_tokens", None),
        ("/v1beta/models/gemini-2.5-pro:streamGenerateContent", ("gemini", "gemini-2.5-pro")),
        ("/v1/projects/p/publishers/google/models/gemini-3-pro:generateContent", ("gemini", "gemini-3-pro")),
        ("/v1beta/models/gemini-3-pro:countTokens", None),
        ("/api/chat", ("ollama", None)),
        ("/api/generate", None),
        ("/", None),
    ],
)
def test_paths_say_the_dialect(path, expected):
    assert route_of(path) == expected


def test_a_path_goes_below_the_base_urls_own():
    assert path_behind("https://x/api/v1", b"/v1/models") == b"/api/v1/models"
    assert path_behind("https://x", b"/v1/models") == b"/v1/models"
    assert path_behind("https://x/v1/", b"/") == b"/v1/"
    assert path_behind("https://x/v1", b"//evil.example/a") == b"/v1/evil.example/a"


CLIMBING = [
    b"/v1/../../tenant-b/secret",
    b"/v1/%2e%2e/%2E./tenant-b/secret",
    b"/v1/..%2f..%2ftenant-b/secret",
    b"/v1/..%5c..%5ctenant-b/secret",
    b"/v1/..\\..\\tenant-b/secret",
    b"/v1/%252e%252e/%252e%252e/tenant-b/secret",
    b"/v1/%25252e%25252e%25252f/tenant-b/secret",
    b"/v1/%c0%ae%c0%ae/%c0%ae%c0%ae/tenant-b/secret",
    b"/v1/..%c0%af..%c0%aftenant-b/secret",
    b"/v1/..;/..;x=1/tenant-b/secret",
    b"/v1/..%3b/..%3b/tenant-b/secret",
    b"/v1/%u002e%u002e/%u002e%u002e/tenant-b/secret",
    b"/v1/..%00/..%00/tenant-b/secret",
    b"/v1/..%20/..%09/tenant-b/secret",
    b"/../tenant-b/secret",
    b"/v1/%" + b"25" * 40 + b"2e/secret",
]


@pytest.mark.parametrize("path", CLIMBING)
async def test_no_spelling_of_a_path_leads_out_of_the_base_url(recorder, before, path):
    api = recorder()
    async with before(api, path="/tenant-a/v1") as proxy:
        port = urlsplit(proxy.url).port
        async with await anyio.connect_tcp("127.0.0.1", port) as stream:  # no client would send it as it is
            await stream.send(b"GET " + path + b" HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n")
            answer = b"".join([chunk async for chunk in stream])
    assert b" 400 " in answer.partition(b"\r\n")[0], answer
    assert api.requests == []


@pytest.mark.parametrize(
    "path",
    [
        b"/v1/models",
        b"/v1/files/report..v2.pdf/content",
        b"/v1/models/publishers%2Fgoogle%2Fmodels%2Fgemini-3.5",
        b"/v1/.well-known/x",
        b"/v1/100%25/a%20b;c=1",
        b"/",
    ],
)
def test_ordinary_paths_pass(path):
    assert not climbs(path)


async def test_json_of_errors_is_utf_8():
    answer = await through(proxy_app(ModelProxySettings(to="https://api.openai.com"), NOBODY), "POST", "/v1/messages")
    assert json.loads(answer.content)["type"] == "error"


def test_mistrals_messages_are_written_in_mistrals_own_form():
    assert target_of("openai_chat", "https://api.mistral.ai/v1") == "mistral"
    assert target_of("openai_chat", "https://api.example/v1") == "openai_chat"


def test_a_blank_token_is_no_token():
    with pytest.raises(ValueError, match="empty"):
        ModelProxySettings(to="http://x", token=" ")
