"""What clients send, before strict stand-ins of the model APIs: refused or unseen without the proxy, seen with it."""

import base64
import copy
import json
from contextlib import asynccontextmanager

import anyio
import httpx2
import pytest

from gateway.testing.model_apis import refusals, seen
from gateway.testing.model_apis.server import model_server

pytestmark = pytest.mark.anyio

NAME = "snap"
SCHEMA = {"type": "object", "properties": {}}


def chat(content):
    call = {"id": "call00001", "type": "function", "function": {"name": NAME, "arguments": "{}"}}
    return {
        "model": "some-model",
        "messages": [
            {"role": "user", "content": "draw"},
            {"role": "assistant", "content": None, "tool_calls": [call]},
            {"role": "tool", "tool_call_id": "call00001", "content": content},
        ],
    }


def responses(output):
    return {
        "model": "gpt-5",
        "input": [
            {"role": "user", "content": "draw"},
            {"type": "function_call", "call_id": "c0", "name": NAME, "arguments": "{}"},
            {"type": "function_call_output", "call_id": "c0", "output": output},
        ],
    }


def messages(content, **more):
    result = {"type": "tool_result", "tool_use_id": "toolu_1", "content": content, **more}
    return {
        "model": "claude-sonnet-5",
        "max_tokens": 1_000,
        "tools": [{"name": NAME, "description": "x", "input_schema": SCHEMA}],
        "messages": [
            {"role": "user", "content": "draw"},
            {"role": "assistant", "content": [{"type": "tool_use", "id": "toolu_1", "name": NAME, "input": {}}]},
            {"role": "user", "content": [result]},
        ],
    }


def contents(response):
    called = {"id": "f0", "name": NAME, "args": {}}
    return {
        "contents": [
            {"role": "user", "parts": [{"text": "draw"}]},
            {"role": "model", "parts": [{"functionCall": called, "thoughtSignature": "c2lnbmVk"}]},
            {"role": "user", "parts": [{"functionResponse": {"id": "f0", "name": NAME, "response": response}}]},
        ]
    }


def ollama(content):
    call = {"function": {"name": NAME, "arguments": {}}}
    return {
        "model": "llava",
        "stream": False,
        "messages": [
            {"role": "user", "content": "draw"},
            {"role": "assistant", "content": "", "tool_calls": [call]},
            {"role": "tool", "tool_name": NAME, "content": content},
        ],
    }


CHAT, GEMINI = "/v1/chat/completions", "/v1beta/models/{}:generateContent"
APIS = {
    # target of the stand-in: the path, what makes a request, the proxy's profile
    "openai_chat": (CHAT, chat, None),
    "openai_compat_strict": (CHAT, chat, "openai_compat_strict"),
    "vllm": (CHAT, chat, "vllm"),
    "llama_cpp": (CHAT, chat, "llama_cpp"),
    "deepseek": (CHAT, chat, "deepseek"),
    "mistral": (CHAT, chat, "mistral"),
    "groq": (CHAT, chat, "groq"),
    "openai_responses": ("/v1/responses", responses, None),
    "anthropic_messages": ("/v1/messages", messages, None),
    "gemini": (GEMINI.format("gemini-3-pro"), lambda content: contents({"output": content}), None),
    "gemini_2_5": (GEMINI.format("gemini-2.5-pro"), lambda content: contents({"output": content}), None),
    "ollama": ("/api/chat", ollama, None),
}


def texts(red):
    image = {"type": "image", "data": red, "mimeType": "image/png"}
    words = {"type": "text", "text": "a chart"}
    resource = {"type": "resource", "resource": {"uri": "a://b.png", "blob": red, "mimeType": "image/png"}}
    return {
        "ai_sdk": [words, {"type": "file", "mediaType": "image/png", "data": {"type": "data", "data": red}}],
        "cline": {"content": [image], "isError": False},
        "call_tool_result": {"content": [words, image], "structuredContent": {"result": "a chart"}, "isError": True},
        "resource": resource,
        "data_uri": f"see data:image/png;base64,{red}",
        "mislabelled": [{**image, "mimeType": "application/octet-stream"}],
    }


@asynccontextmanager
async def through_the_proxy(before, target, path, profile):
    """What checks that a request is accepted through the proxy, and that its model sees the picture."""
    server = model_server(chat=target if path == CHAT else "openai_chat")
    options = {"profile": profile} if profile else {}
    async with (
        before(server, **options) as proxy,
        httpx2.AsyncClient(timeout=20, trust_env=False) as client,
    ):

        async def accepted(request, red):
            answer = await client.post(proxy.url + path, json=request)
            assert answer.status_code == 200, answer.text
            assert answer.headers["x-mcp-gateway-repairs"] == "1"
            arrived = named(server.requests[-1].json, path)
            assert refusals(target, arrived) == ()
            assert [one.content for one in seen(target, arrived)] == [base64.b64decode(red)]

        yield accepted


def named(request, path):
    """With the model, where the address names it."""
    return {**request, "model": path.rpartition("/")[2].partition(":")[0]} if ":" in path else request


@pytest.mark.parametrize("target", APIS)
async def test_media_in_a_string_is_unseen_before_and_seen_after(before, picture, target):
    path, make, profile = APIS[target]
    async with through_the_proxy(before, target, path, profile) as accepted:
        for value in texts(picture("red")).values():
            request = make(value if isinstance(value, str) else json.dumps(value))
            asked = named(request, path)
            assert refusals(target, asked) or not seen(target, asked)
            await accepted(request, picture("red"))


def parts(red):
    url = f"data:image/png;base64,{red}"
    return {
        "mcp": {"type": "image", "data": red, "mimeType": "image/png"},
        "image_url": {"type": "image_url", "image_url": {"url": url}},
        "anthropic": {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": red}},
        "langchain": {"type": "image", "base64": red, "mime_type": "image/png"},
        "resource": {"type": "resource", "resource": {"uri": "a://b", "blob": red, "mimeType": "image/png"}},
    }


RIGHT = {("groq", "image_url"), ("mistral", "image_url"), ("anthropic_messages", "anthropic")}
TAKEN = {("vllm", "image_url"), ("llama_cpp", "image_url")}
"""The server takes them, and the model's template may still drop them: so they are moved all the same."""
TAKES_LISTS = [target for target in APIS if not target.startswith(("gemini", "ollama"))]


@pytest.mark.parametrize("target", TAKES_LISTS)
async def test_media_in_a_part_is_refused_or_unseen_before_and_seen_after(before, picture, target):
    path, make, profile = APIS[target]
    async with through_the_proxy(before, target, path, profile) as accepted:
        for form, part in parts(picture("red")).items():
            request = make([part])
            if (target, form) in RIGHT:
                assert refusals(target, request) == ()
            else:
                assert (target, form) in TAKEN or refusals(target, request) or not seen(target, request)
                await accepted(request, picture("red"))


@pytest.mark.parametrize("model", ["gemini-3-pro", "gemini-2.5-pro"])
async def test_google_adks_results_are_seen(before, picture, model):
    result = {"content": [parts(picture("red"))["mcp"]], "isError": False}
    target = "gemini" if "3" in model else "gemini_2_5"
    async with through_the_proxy(before, target, GEMINI.format(model), None) as accepted:
        for response in (result, {"result": result}, {"error": json.dumps(result)}):
            assert not seen(target, named(contents(response), GEMINI.format(model)))
            await accepted(contents(response), picture("red"))


async def test_an_error_with_an_image_is_refused_by_anthropic_before_and_seen_after(before, picture):
    request = messages([parts(picture("red"))["anthropic"]], is_error=True)
    assert refusals("anthropic_messages", request)
    async with through_the_proxy(before, "anthropic_messages", "/v1/messages", None) as accepted:
        await accepted(request, picture("red"))


async def test_streams_of_a_model_api_arrive_event_by_event(before, picture):
    steps = [anyio.Event() for _ in range(200)]
    waited = iter(steps)

    async def pause():
        await next(waited).wait()

    server = model_server(pause=pause)
    request = {**chat(json.dumps([parts(picture("red"))["mcp"]])), "stream": True}
    async with (
        before(server) as proxy,
        httpx2.AsyncClient(timeout=20, trust_env=False) as client,
        client.stream("POST", proxy.url + CHAT, json=copy.deepcopy(request)) as answer,
    ):
        release = iter(steps)
        events = 0
        async for chunk in answer.aiter_raw():
            events += chunk.count(b"data: ")
            next(release).set()  # the next event is not written before this one has arrived
    assert events > 2
