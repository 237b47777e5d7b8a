"""Images of tools that a model's chat template refuses where they stand: tried elsewhere once, remembered by model."""

import base64
import gzip
import json
import logging
from typing import Literal

import httpx2
import pytest

from gateway.config.builtin_profiles import model_profiles
from gateway.core.profiles.model_profiles import with_tool_images
from gateway.serving.model_proxy.explain_repair import explanation
from gateway.serving.model_proxy.tool_images import MOST_BYTES, KnownPlaces, is_refused
from gateway.testing.model_apis import seen
from gateway.testing.model_apis.server import model_server
from tests.core.model_apis.test_chat_templates import MINISTRAL, Refused, by_llama_server, by_vllm

pytestmark = pytest.mark.anyio

CHAT = "/v1/chat/completions"
ALTERNATE = (
    "After the optional system message, conversation roles must alternate user and assistant roles except for tool "
    "calls and results."
)


@pytest.fixture
async def client():
    async with httpx2.AsyncClient(timeout=20, trust_env=False) as client:
        yield client


def asked(content, model="ministral-3-8b-instruct-2512", **more):
    call = {"id": "call00001", "type": "function", "function": {"name": "snap", "arguments": "{}"}}
    messages = [
        {"role": "user", "content": "draw"},
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "call00001", "content": content},
    ]
    return {"model": model, "messages": messages, **more}


def mcp(picture):
    return json.dumps([{"type": "text", "text": "a"}, {"type": "image", "data": picture, "mimeType": "image/png"}])


def part(picture):
    return [{"type": "image_url", "image_url": {"url": f"data:image/png;base64,{picture}"}}]


def roles(request):
    return [message["role"] for message in request.json["messages"][2:]]


# the API, the profile of the proxy, what the client sends -> the roles of each request that comes
WAYS = {
    "llama-server, not named": ("llama_cpp", None, mcp, [["tool", "user"], ["tool"]]),
    "vLLM, not named": ("vllm", None, mcp, [["tool", "user"], ["tool"], ["tool", "assistant", "user"]]),
    "vLLM, said to be lax": ("vllm", "openai_compat", mcp, [["tool"], ["tool", "user"], ["tool", "assistant", "user"]]),
    "OpenAI, said to be lax": ("openai_chat", "openai_compat", mcp, [["tool"], ["tool", "user"]]),
    "the client's own part": ("openai_chat", "openai_compat", part, [["tool"], ["tool", "user"]]),
    "llama-server, named": ("llama_cpp", "llama_cpp", mcp, [["tool"]]),
    "vLLM, named": ("vllm", "vllm", mcp, [["tool", "assistant", "user"]]),
}


@pytest.mark.parametrize("streamed", [False, True])
@pytest.mark.parametrize("way", WAYS)
async def test_refused_images_are_tried_elsewhere_and_then_go_there_at_once(before, client, picture, way, streamed):
    api, profile, make, wanted = WAYS[way]
    server = model_server(chat=api)
    async with before(server, **({"profile": profile} if profile else {})) as proxy:
        for expected in (wanted, wanted[-1:]):
            server.requests.clear()
            answer = await client.post(proxy.url + CHAT, json=asked(make(picture("red")), stream=streamed))
            assert answer.status_code == 200, answer.text
            assert [roles(one) for one in server.requests] == expected
            assert [one.content for one in seen(api, server.requests[-1].json)] == [base64.b64decode(picture("red"))]
            assert answer.headers["x-mcp-gateway-repairs"] == ("1" if expected[-1] != ["tool"] or make is mcp else "0")


@pytest.mark.parametrize(
    ("render", "status", "wanted"),
    [
        (by_llama_server, 500, [["tool", "user"], ["tool"]]),
        (by_vllm, 400, [["tool", "user"], ["tool"], ["tool", "assistant", "user"]]),
    ],
)
async def test_a_server_that_renders_the_template_itself(recorder, before, client, picture, render, status, wanted):
    async def answer(receive, send) -> None:
        try:
            said, code = render(MINISTRAL, json.loads(api.requests[-1]["body"])["messages"]), 200
        except Refused as refused:
            said, code = str(refused), status
        await answering(code, json.dumps({"error": {"message": said}}).encode())(receive, send)

    api = recorder(answer)
    async with before(api) as proxy:
        answered = await client.post(proxy.url + CHAT, json=asked(mcp(picture("red")), "some-fine-tune"))
    assert answered.status_code == 200
    assert answered.text.count("[IMG]") == 1
    sent = [json.loads(one["body"])["messages"][2:] for one in api.requests]
    assert [[message["role"] for message in messages] for messages in sent] == wanted


async def test_what_is_found_out_of_one_model_says_nothing_of_another(before, client, picture):
    server = model_server(chat="llama_cpp")
    async with before(server) as proxy:
        for model, expected in (
            ("ministral-3-8b-a", 2),
            ("ministral-3-8b-b", 2),
            ("gemma-3", 1),
            ("ministral-3-8b-a", 1),
        ):
            server.requests.clear()
            await client.post(proxy.url + CHAT, json=asked(mcp(picture("red")), model))
            assert len(server.requests) == expected


async def test_it_is_logged_and_explained(before, client, picture, caplog):
    async with before(model_server(chat="llama_cpp")) as proxy:
        with caplog.at_level(logging.INFO, "gateway.serving.model_proxy"):
            for _ in range(2):
                await client.post(proxy.url + CHAT, json=asked(mcp(picture("red"))))
    lines = [one.getMessage() for one in caplog.records if "refused" in one.getMessage()]
    assert lines == [
        "the model API refused images after the tool messages; for ministral-3-8b-instruct-2512 they go into the "
        "tool messages from now on"
    ]
    said = [explanation(one) for one in proxy.explained]
    assert "tried again: the model API refused images after the tool messages" in said[1]
    assert not any("tried again" in one for one in (said[0], said[2]))


def answering(status, body, headers=()):
    async def answer(receive, send):
        await send({"type": "http.response.start", "status": status, "headers": list(headers)})
        await send({"type": "http.response.body", "body": body})

    return answer


async def test_refused_everywhere_is_answered_as_it_was_at_first(recorder, before, client, picture):
    bodies = iter(f'{{"error":{{"message":"{ALTERNATE} {number}"}}}}' for number in range(6))

    async def refuse(receive, send):
        await answering(500, gzip.compress(next(bodies).encode()), [(b"content-encoding", b"gzip")])(receive, send)

    api = recorder(refuse)
    async with before(api) as proxy:
        for first in (0, 3):  # nothing is remembered of it
            answer = await client.post(proxy.url + CHAT, json=asked(mcp(picture("red"))))
            assert (answer.status_code, answer.headers["content-encoding"]) == (500, "gzip")
            assert answer.json()["error"]["message"] == f"{ALTERNATE} {first}"
    assert len(api.requests) == 6


OTHERS = {
    "another fault": (400, b'{"error":{"message":"context length exceeded"}}'),
    "too many requests": (429, ALTERNATE.encode()),
    "a server that is down": (503, ALTERNATE.encode()),
    "no permission": (401, ALTERNATE.encode()),
    "an answer": (200, json.dumps({"text": ALTERNATE}).encode()),
    "more than a message": (400, ALTERNATE.encode() + b" " * 300_000),
    "no text": (400, b"\xff\xfe\x00"),
}


@pytest.mark.parametrize("case", OTHERS)
async def test_nothing_else_is_tried_again(recorder, before, client, picture, case):
    status, body = OTHERS[case]
    api = recorder(answering(status, body))
    async with before(api) as proxy:
        answer = await client.post(proxy.url + CHAT, json=asked(mcp(picture("red"))))
    assert (answer.status_code, answer.content) == (status, body)
    assert len(api.requests) == 1


async def test_a_body_that_is_not_what_its_header_says_passes(recorder, before, client, picture):
    api = recorder(answering(400, b"no gzip", [(b"content-encoding", b"gzip")]))
    async with (
        before(api) as proxy,
        client.stream("POST", proxy.url + CHAT, json=asked(mcp(picture("red")))) as answer,
    ):
        assert b"".join([chunk async for chunk in answer.aiter_raw()]) == b"no gzip"
    assert len(api.requests) == 1


async def test_a_refusal_that_breaks_off_is_seen_to_be_broken(recorder, before, client, picture):
    api = recorder(answering(500, ALTERNATE.encode(), [(b"content-length", b"1000")]))
    async with before(api) as proxy:
        with pytest.raises(httpx2.RemoteProtocolError):
            await client.post(proxy.url + CHAT, json=asked(mcp(picture("red"))))
    assert len(api.requests) == 1


async def test_a_small_answer_that_is_large_inside_is_not_unpacked(recorder, before, client, picture):
    bomb = gzip.compress(b" " * 50_000_000 + ALTERNATE.encode())
    assert len(bomb) < MOST_BYTES
    api = recorder(answering(400, bomb, [(b"content-encoding", b"gzip")]))
    async with (
        before(api) as proxy,
        client.stream("POST", proxy.url + CHAT, json=asked(mcp(picture("red")))) as answer,
    ):
        assert b"".join([chunk async for chunk in answer.aiter_raw()]) == bomb
    assert len(api.requests) == 1


@pytest.mark.parametrize("content", ["no image", [{"type": "text", "text": "x"}]])
async def test_a_request_without_images_of_tools_is_not_tried_again(recorder, before, client, content):
    api = recorder(answering(400, ALTERNATE.encode()))
    async with before(api) as proxy:
        await client.post(proxy.url + CHAT, json=asked(content))
        await client.post(proxy.url + CHAT, content=b"no json")
    assert len(api.requests) == 2


async def test_another_error_on_the_second_try_is_the_answer(recorder, before, client, picture):
    answers = iter([answering(500, ALTERNATE.encode()), answering(429, b"slow down", [(b"retry-after", b"7")])])

    async def answer(receive, send):
        await next(answers)(receive, send)

    api = recorder(answer)
    async with before(api) as proxy:
        answer = await client.post(proxy.url + CHAT, json=asked(mcp(picture("red"))))
    assert (answer.status_code, answer.headers["retry-after"]) == (429, "7")


async def test_an_unexplained_error_on_the_second_try_leaves_the_first_answer(recorder, before, client, picture):
    answers = iter([answering(500, ALTERNATE.encode())])

    async def answer(receive, send):
        if one := next(answers, None):
            await one(receive, send)
        else:
            raise RuntimeError("the server broke")

    async with before(recorder(answer)) as proxy:
        answer = await client.post(proxy.url + CHAT, json=asked(mcp(picture("red"))))
    assert (answer.status_code, answer.text) == (500, ALTERNATE)


async def test_a_model_whose_server_changed_is_found_out_anew(before, client, picture, recorder):
    servers = {"now": model_server(chat="llama_cpp")}

    async def changing(scope, receive, send):
        await (servers["now"] if scope["type"] == "http" else recorder())(scope, receive, send)

    async with before(changing) as proxy:
        for chat in ("llama_cpp", "openai_compat_strict", "llama_cpp"):
            servers["now"] = model_server(chat=chat)
            answer = await client.post(proxy.url + CHAT, json=asked(mcp(picture("red"))))
            assert answer.status_code == 200
            assert len(servers["now"].requests) == 2


def test_only_so_many_models_are_remembered():
    known, profile = KnownPlaces(most=2), model_profiles()["openai_chat"]
    for model in ("a", "b", "c"):
        known.remember("openai_chat", model, "in_tool")
    places = {model: known.applied("openai_chat", model, profile).image.place for model in ("a", "b", "c", None)}
    assert places == {"a": "follow_up", "b": "in_tool", "c": "in_tool", None: "follow_up"}
    assert known.applied("ollama", "c", profile).image.place == "follow_up"


def test_an_api_that_leaves_no_choice_keeps_its_place():
    known, profile = KnownPlaces(), model_profiles()["mistral"]
    known.remember("openai_chat", "m", "follow_up")
    assert known.applied("openai_chat", "m", profile) == profile


# What servers say, as users were told it; each is about one place, and not about the others.
SAID: dict[str, Literal["in_tool", "follow_up"]] = {
    # https://github.com/anomalyco/opencode/issues/5034 (llama-server)
    f"{ALTERNATE} at row 189, column 164:": "follow_up",
    # https://github.com/vllm-project/vllm/issues/6862
    "After the optional system message, conversation roles must alternate user/assistant/user/...": "follow_up",
    # https://github.com/vllm-project/vllm/issues/12742
    "jinja2.exceptions.TemplateError: Conversation roles must alternate user/assistant/user/assistant/...": "follow_up",
    # https://github.com/mistralai/mistral-common/issues/169, https://github.com/anomalyco/opencode/issues/7488
    "Unexpected role 'user' after role 'tool'": "follow_up",
    # mistral-common 1.13.1; 1.11.0
    "Unexpected content chunk types in tool message: ['ImageURLChunk']": "in_tool",
    "4 validation errors for ToolMessage\ncontent.str\n  Input should be a valid string": "in_tool",
    # https://github.com/All-Hands-AI/OpenHands/issues/7700
    "Image URLs are only allowed for messages with role 'user', but this message with role 'tool' has one.": "in_tool",
    # https://github.com/vllm-project/vllm/issues/30963
    "Failed to apply prompt replacement for mm_items['image'][0]": "in_tool",
    # https://github.com/ggml-org/llama.cpp/issues/22490
    "Failed to tokenize prompt": "in_tool",
}


@pytest.mark.parametrize("words", SAID)
def test_words_of_real_servers_are_about_one_place(words):
    for status in (400, 422, 500):
        assert is_refused(status, json.dumps({"error": {"message": words}}), SAID[words])
        assert not is_refused(status, words, "in_tool" if SAID[words] == "follow_up" else "follow_up")
        assert is_refused(status, words, "after_reply") == (SAID[words] == "follow_up")
    assert not is_refused(429, words, SAID[words])
    assert not is_refused(400, words, "none")


def test_every_place_can_be_chosen():
    profile = model_profiles()["openai_chat"]
    assert {with_tool_images(profile, place).image.place for place in ("in_tool", "follow_up", "after_reply")} == {
        "in_tool",
        "follow_up",
        "after_reply",
    }
