"""The stand-ins over HTTP: the official clients read them, streamed or not, and their refusals have the API's form."""

import asyncio
import base64
import io
import json
import re
import socket
import subprocess
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import httpx2
import pytest
import uvicorn
from PIL import Image

from gateway.testing.model_apis import conversation, refusals
from gateway.testing.model_apis.histories import history
from gateway.testing.model_apis.scripts import LookingModel, Reply, Scripted, ToolCall
from gateway.testing.model_apis.server import ModelServer, model_server

pytestmark = pytest.mark.anyio

ARGUMENTS = {"rows": 3, "title": "a longer title, in several pieces"}
TALKING = Reply(text="It is a red picture, I am sure.", reasoning="Let me look at it closely.")
CALLING = Reply(
    text="Two calls.", reasoning="I need both.", calls=(ToolCall("charts__bar", ARGUMENTS), ToolCall("look", {}))
)
REPLIES = {"talking": TALKING, "calling": CALLING}


def png() -> str:
    buffer = io.BytesIO()
    Image.new("RGB", (40, 30), "red").save(buffer, "PNG")
    return base64.b64encode(buffer.getvalue()).decode()


PNG = png()


@asynccontextmanager
async def serving(application: ModelServer) -> AsyncIterator[str]:
    """A real uvicorn on loopback; gives its address."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        server = uvicorn.Server(uvicorn.Config(application, log_config=None, access_log=False, lifespan="off"))
        with anyio.fail_after(60):
            task = asyncio.create_task(server.serve(sockets=[listener]))
            try:
                yield f"http://127.0.0.1:{listener.getsockname()[1]}"
            finally:
                server.should_exit = True
                await task


def spoken(reply: Reply) -> tuple[str, list[tuple[str, dict[str, Any]]]]:
    return reply.text, [(call.name, dict(call.arguments)) for call in reply.calls]


# -- the official clients: each gives (text, reasoning, calls) ---------------------------------------

TOOLS = [{"type": "function", "function": {"name": "look", "parameters": {"type": "object", "properties": {}}}}]
Heard = tuple[str, list[tuple[Any, Any]]]


async def openai_chat(url: str, stream: bool) -> Heard:
    from openai import AsyncOpenAI

    async with AsyncOpenAI(api_key="k", base_url=f"{url}/v1", max_retries=0) as client:
        asked: Any = {"model": "m", "messages": [{"role": "user", "content": "look"}], "tools": TOOLS}
        if stream:
            async with client.chat.completions.stream(**asked) as events:
                completion: Any = await events.get_final_completion()
        else:
            completion = await client.chat.completions.create(**asked)
        message = completion.choices[0].message
        assert completion.choices[0].finish_reason == ("tool_calls" if message.tool_calls else "stop")
        calls = [(call.function.name, json.loads(call.function.arguments)) for call in message.tool_calls or ()]
        return message.content, calls


async def openai_responses(url: str, stream: bool) -> Heard:
    from openai import AsyncOpenAI

    async with AsyncOpenAI(api_key="k", base_url=f"{url}/v1", max_retries=0) as client:
        asked: Any = {"model": "m", "input": "look", "tools": [{"type": "function", **TOOLS[0]["function"]}]}
        if stream:
            async with client.responses.stream(**asked) as events:
                arguments: dict[int, str] = {}
                async for event in events:
                    if event.type == "response.function_call_arguments.delta":
                        arguments[event.output_index] = arguments.get(event.output_index, "") + event.delta
                response: Any = await events.get_final_response()
            whole = {n: item.arguments for n, item in enumerate(response.output) if item.type == "function_call"}
            assert arguments == whole
        else:
            response = await client.responses.create(**asked)
        assert response.output[0].type == "reasoning"
        made = [item for item in response.output if item.type == "function_call"]
        return response.output_text, [(item.name, json.loads(item.arguments)) for item in made]


async def anthropic_messages(url: str, stream: bool) -> Heard:
    from anthropic import AsyncAnthropic

    async with AsyncAnthropic(api_key="k", base_url=url, max_retries=0) as client:
        tools = [{"name": "look", "input_schema": {"type": "object"}}]
        asked: Any = {"model": "m", "max_tokens": 99, "messages": [{"role": "user", "content": "look"}], "tools": tools}
        if stream:
            async with client.messages.stream(**asked) as events:
                message: Any = await events.get_final_message()
        else:
            message = await client.messages.create(**asked)
        assert message.content[0].type == "thinking"
        assert message.content[0].signature
        text = "".join(block.text for block in message.content if block.type == "text")
        return text, [(block.name, block.input) for block in message.content if block.type == "tool_use"]


async def gemini(url: str, stream: bool) -> Heard:
    from google import genai

    client = genai.Client(api_key="k", http_options=genai.types.HttpOptions(base_url=url))
    declared = genai.types.FunctionDeclaration(name="look")
    config = genai.types.GenerateContentConfig(
        tools=[genai.types.Tool(function_declarations=[declared])],
        automatic_function_calling=genai.types.AutomaticFunctionCallingConfig(disable=True),
    )
    asked: Any = {"model": "gemini-3-pro", "contents": "look", "config": config}
    if stream:
        chunks = [chunk async for chunk in await client.aio.models.generate_content_stream(**asked)]
        assert len(chunks) > 3
    else:
        chunks = [await client.aio.models.generate_content(**asked)]
    parts = [part for chunk in chunks for part in chunk.candidates[0].content.parts]
    await client.aio.aclose()
    calls = [(part.function_call.name, part.function_call.args) for part in parts if part.function_call]
    signed = [part for part in parts if part.thought_signature]
    assert len(signed) == bool(calls)
    return "".join(part.text for part in parts if part.text and not part.thought), calls


async def gemini_interactions(url: str, stream: bool) -> Heard:
    from google import genai

    client = genai.Client(api_key="k", http_options=genai.types.HttpOptions(base_url=url))
    asked: Any = {"model": "gemini-3-pro", "input": "look"}
    text, calls = "", []
    if stream:
        written: dict[int, str] = {}
        names: dict[int, str] = {}
        events: Any = await client.aio.interactions.create(**asked, stream=True)
        async for event in events:
            if event.event_type == "step.start" and event.step.type == "function_call":
                names[event.index] = event.step.name
            if event.event_type == "step.delta" and event.delta.type == "text":
                text += event.delta.text
            if event.event_type == "step.delta" and event.delta.type == "arguments_delta":
                written[event.index] = written.get(event.index, "") + event.delta.arguments
        calls = [(names[index], json.loads(arguments)) for index, arguments in written.items()]
    else:
        interaction: Any = await client.aio.interactions.create(**asked)
        for step in interaction.steps:
            if step.type == "model_output":
                text += "".join(content.text for content in step.content)
            if step.type == "function_call":
                calls.append((step.name, dict(step.arguments)))
    await client.aio.aclose()
    return text, calls


async def groq(url: str, stream: bool) -> Heard:
    from groq import AsyncGroq

    async with AsyncGroq(api_key="k", base_url=url, max_retries=0) as client:
        asked: Any = {"model": "m", "messages": [{"role": "user", "content": "look"}]}
        # Its client puts /openai before every path; the stand-in has that address too.
        if not stream:
            message: Any = (await client.chat.completions.create(**asked)).choices[0].message
            made = message.tool_calls or ()
            return message.content, [(call.function.name, json.loads(call.function.arguments)) for call in made]
        text, names, written = "", {}, {}
        async for chunk in await client.chat.completions.create(**asked, stream=True):
            delta = chunk.choices[0].delta
            text += str(delta.content or "")
            for call in delta.tool_calls or ():
                names[call.index] = names.get(call.index) or call.function.name
                written[call.index] = written.get(call.index, "") + (call.function.arguments or "")
        return text, [(names[index], json.loads(arguments)) for index, arguments in written.items()]


async def mistral(url: str, stream: bool) -> Heard:
    from mistralai.client import Mistral

    async with Mistral(api_key="k", server_url=url) as client:
        asked: Any = {"model": "m", "messages": [{"role": "user", "content": "look"}]}
        if not stream:
            message: Any = (await client.chat.complete_async(**asked)).choices[0].message
            made = message.tool_calls or ()
            return message.content, [(call.function.name, json.loads(call.function.arguments)) for call in made]
        text, names, written = "", {}, {}
        async for event in await client.chat.stream_async(**asked):
            delta = event.data.choices[0].delta
            text += str(delta.content or "")
            for call in delta.tool_calls or ():
                names[call.index] = names.get(call.index) or call.function.name
                written[call.index] = written.get(call.index, "") + call.function.arguments
        return text, [(names[index], json.loads(arguments)) for index, arguments in written.items()]


async def cohere(url: str, stream: bool) -> Heard:
    import cohere as sdk

    async with sdk.AsyncClientV2(api_key="k", base_url=url) as client:
        return await cohere_heard(client, stream)


async def cohere_heard(client: Any, stream: bool) -> Heard:
    asked: Any = {"model": "m", "messages": [{"role": "user", "content": "look"}]}
    if not stream:
        message: Any = (await client.chat(**asked)).message
        text = message.tool_plan or "".join(part.text for part in message.content if part.type == "text")
        made = message.tool_calls or ()
        return text, [(call.function.name, json.loads(call.function.arguments)) for call in made]
    text, names, written = "", {}, {}
    async for event in client.chat_stream(**asked):
        match event.type:
            case "tool-plan-delta":
                text += event.delta.message.tool_plan
            case "content-delta":
                text += event.delta.message.content.text or ""
            case "tool-call-start":
                names[event.index] = event.delta.message.tool_calls.function.name
            case "tool-call-delta":
                piece = event.delta.message.tool_calls.function.arguments
                written[event.index] = written.get(event.index, "") + piece
    return text, [(names[index], json.loads(arguments)) for index, arguments in written.items()]


async def ollama(url: str, stream: bool) -> Heard:
    from ollama import AsyncClient

    client = AsyncClient(host=url)
    asked: Any = {"model": "m", "messages": [{"role": "user", "content": "look"}]}
    if stream:
        chunks: list[Any] = [chunk async for chunk in await client.chat(**asked, stream=True)]
        assert chunks[-1].done
    else:
        chunks = [await client.chat(**asked)]
    await client.close()
    made = [call.function for chunk in chunks for call in chunk.message.tool_calls or ()]
    return "".join(chunk.message.content for chunk in chunks), [(one.name, dict(one.arguments)) for one in made]


CLIENTS: dict[str, Callable[[str, bool], Any]] = {
    client.__name__: client
    for client in (
        openai_chat,
        openai_responses,
        anthropic_messages,
        gemini,
        gemini_interactions,
        groq,
        mistral,
        cohere,
        ollama,
    )
}


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
@pytest.mark.parametrize("reply", REPLIES)
@pytest.mark.parametrize("name", CLIENTS)
async def test_the_official_clients_read_what_it_says(name: str, reply: str, stream: bool) -> None:
    chat = name if name in ("mistral", "groq") else "openai_chat"
    async with serving(model_server(Scripted([REPLIES[reply]]), chat=chat)) as url:
        text, calls = await CLIENTS[name](url, stream)
    # Cohere has one text beside calls, its plan; the others have both.
    plan = REPLIES[reply].reasoning if name == "cohere" and reply == "calling" else REPLIES[reply].text
    assert (text, calls) == (plan, spoken(REPLIES[reply])[1])


def anthropic_turn() -> dict[str, Any]:
    image = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": PNG}}
    result = {"type": "tool_result", "tool_use_id": "c1", "content": [image], "is_error": True}
    return history("anthropic_messages", [{"id": "c1", "name": "look"}], [{"role": "user", "content": [result]}])


REFUSED: dict[str, tuple[str, Any]] = {
    "/v1/chat/completions": ("error.message", {"messages": []}),
    "/v1/responses": ("error.message", {"input": []}),
    "/v1/messages": ("error.message", {"messages": []}),
    "/v1beta/models/gemini-3-pro:generateContent": ("error.message", {"contents": []}),
    "/v1/models/gemini-3-pro:streamGenerateContent": ("error.message", {"contents": []}),
    "/v1beta/interactions": ("error.message", {"input": []}),
    "/model/anthropic.claude/converse": ("message", {"messages": []}),
    "/v2/chat": ("message", {"messages": []}),
    "/api/chat": ("error", {"messages": []}),
}


@pytest.fixture
async def client() -> AsyncIterator[httpx2.AsyncClient]:
    transport = httpx2.ASGITransport(app=model_server())
    async with httpx2.AsyncClient(transport=transport, base_url="http://model") as opened:
        yield opened


@pytest.mark.parametrize("path", REFUSED)
@pytest.mark.parametrize("body", ["[]", "{", None])
async def test_a_refusal_is_a_400_in_the_form_of_the_api(
    path: str, body: str | None, client: httpx2.AsyncClient
) -> None:
    where, faulty = REFUSED[path]
    answer = await client.post(path, content=body or json.dumps(faulty))
    assert answer.status_code == 400
    said: Any = answer.json()
    for name in where.split("."):
        said = said[name]
    expected = {"[]": "the body is not a JSON object", "{": "the body is not JSON: ", None: "array that is not empty"}
    assert expected[body] in said


async def test_what_a_chat_template_refuses_in_llama_server_is_a_500() -> None:
    messages = [{"role": "user", "content": "x"}, {"role": "user", "content": "y"}]
    transport = httpx2.ASGITransport(app=model_server(chat="llama_cpp"))
    async with httpx2.AsyncClient(transport=transport, base_url="http://model") as client:
        body = {"model": "devstral-small-2-24b-instruct-2512", "messages": messages}
        answer = await client.post("/v1/chat/completions", json=body)
    assert answer.status_code == 500
    assert "conversation roles must alternate" in answer.json()["error"]["message"]


async def test_the_official_clients_raise_what_is_refused() -> None:
    import anthropic
    import openai
    from google import genai

    async with serving(model_server()) as url:
        async with anthropic.AsyncAnthropic(api_key="k", base_url=url, max_retries=0) as client:
            with pytest.raises(anthropic.BadRequestError, match="all content must be type `text`"):
                await client.messages.create(**anthropic_turn())
        async with openai.AsyncOpenAI(api_key="k", base_url=f"{url}/v1", max_retries=0) as chat:
            with pytest.raises(openai.BadRequestError, match="must be a response to"):
                await chat.chat.completions.create(
                    model="m", messages=[{"role": "tool", "tool_call_id": "a", "content": "b"}]
                )
        google = genai.Client(api_key="k", http_options=genai.types.HttpOptions(base_url=url))
        part = genai.types.Part.from_bytes(data=b"<svg/>", mime_type="image/svg+xml")
        with pytest.raises(genai.errors.ClientError, match="Unsupported MIME type"):
            await google.aio.models.generate_content(model="gemini-3-pro", contents=[part])
        await google.aio.aclose()


# -- what the model says -----------------------------------------------------------------------------


async def said(client: httpx2.AsyncClient, request: dict[str, Any]) -> dict[str, Any]:
    answer = await client.post("/v1/chat/completions", json=request)
    assert answer.status_code == 200, answer.text
    return answer.json()["choices"][0]["message"]


async def test_it_calls_the_first_tool_and_then_says_what_it_sees(client: httpx2.AsyncClient) -> None:
    asked = {"model": "m", "messages": [{"role": "user", "content": "Please look."}], "tools": TOOLS}
    (call,) = (await said(client, asked))["tool_calls"]
    assert call["function"] == {"name": "look", "arguments": "{}"}
    image = {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{PNG}"}}
    tool = {"role": "tool", "tool_call_id": "c1", "content": "[image 1: after the tool results]"}
    request = history(
        "openai_chat", [{"id": "c1", "name": "look"}], [tool, {"role": "user", "content": [image, image]}]
    )
    message = await said(client, request)
    assert message["content"].startswith("I see 2 images: image/png 40x30 sha256 ")
    blind = history("openai_chat", [{"id": "c1", "name": "look"}], [tool])
    assert (await said(client, blind))["content"] == "I see no media."


async def test_it_makes_the_calls_that_a_user_names(client: httpx2.AsyncClient) -> None:
    order = {"role": "user", "content": 'now:\ncall charts__bar {"rows": 3}\ncall look'}
    earlier = history(
        "openai_chat", [{"id": "c1", "name": "look"}], [{"role": "tool", "tool_call_id": "c1", "content": ""}]
    )
    message = await said(client, {**earlier, "messages": [*earlier["messages"], order]})
    made = [(call["function"]["name"], call["function"]["arguments"]) for call in message["tool_calls"]]
    assert made == [("charts__bar", '{"rows":3}'), ("look", "{}")]
    assert len({call["id"] for call in message["tool_calls"]}) == 2


async def test_an_agent_that_writes_its_calls_as_text_is_answered_once_and_by_its_final_tool(
    client: httpx2.AsyncClient,
) -> None:
    # As smolagents has it: no message answers a call, and a text alone is no answer.
    names = ("look", "final_answer")
    tools = [{"type": "function", "function": {"name": name, "parameters": {"type": "object"}}} for name in names]
    order = {"role": "user", "content": "New task:\ncall look {}"}
    (call,) = (await said(client, {"messages": [order], "tools": tools}))["tool_calls"]
    image = {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{PNG}"}}
    written = [
        {"role": "assistant", "content": "Calling tools: look"},
        {"role": "user", "content": [{"type": "text", "text": "Observation:"}, image]},
    ]
    (last,) = (await said(client, {"messages": [order, *written], "tools": tools}))["tool_calls"]
    assert [call["function"]["name"], last["function"]["name"]] == [*names]
    assert json.loads(last["function"]["arguments"])["answer"].startswith("I see 1 image: image/png")


def test_a_script_ends_with_its_last_reply() -> None:
    script = Scripted([TALKING, CALLING])
    assert [script(None) for _ in range(3)] == [TALKING, CALLING, CALLING]  # pyright: ignore[reportArgumentType]


async def test_a_search_for_tools_and_a_call_in_a_namespace_are_written_as_codex_reads_them() -> None:
    calls = (ToolCall("tool_search", {"query": "look"}), ToolCall("mcp__cases/look", {"at": 1}))
    server = model_server(Scripted([Reply(calls=calls)]))
    search = {"type": "tool_search", "execution": "client", "parameters": {}}
    asked = {"model": "gpt-5.5", "input": "Please look.", "tools": [search], "stream": True}
    async with httpx2.AsyncClient(transport=httpx2.ASGITransport(app=server), base_url="http://model") as client:
        answer = await client.post("/v1/responses", json=asked)
    events = [json.loads(line[6:]) for line in answer.text.splitlines() if line.startswith("data: ")]
    searched, called = (event["item"] for event in events if event["type"] == "response.output_item.done")
    assert (searched["type"], searched["execution"], searched["arguments"]) == (
        "tool_search_call",
        "client",
        {"query": "look"},
    )
    assert (called["type"], called["namespace"], called["name"]) == ("function_call", "mcp__cases", "look")
    found = {"type": "namespace", "name": "mcp__cases", "tools": [{"type": "function", "name": "look"}]}
    output = {"type": "tool_search_output", "call_id": searched["call_id"], "execution": "client", "tools": [found]}
    spoken = {"role": "user", "content": "Please look."}
    read = conversation("openai_responses", {**asked, "input": [spoken, searched, output]})
    assert read is not None
    assert read.tools == ["tool_search", "mcp__cases/look"]
    assert refusals("openai_responses", {**asked, "input": [spoken, searched, output]}) == ()


def test_the_system_may_speak_between_messages_of_claude_code() -> None:
    messages = [{"role": "user", "content": "Look."}, {"role": "system", "content": "The date is known."}]
    assert refusals("anthropic_messages", {"model": "m", "max_tokens": 9, "messages": messages}) == ()
    messages[1]["role"] = "developer"
    assert (
        "'developer' is not one of"
        in refusals("anthropic_messages", {"model": "m", "max_tokens": 9, "messages": messages})[0]
    )


async def test_every_request_is_recorded_as_it_came() -> None:
    server = model_server(LookingModel())
    transport = httpx2.ASGITransport(app=server)
    async with httpx2.AsyncClient(transport=transport, base_url="http://model") as client:
        await client.post("/v1/messages", content='{"a" : 1}', headers={"X-Thing": "yes"})
    (request,) = server.requests
    assert (request.method, request.path, request.body) == ("POST", "/v1/messages", b'{"a" : 1}')
    assert request.headers["x-thing"] == "yes"
    assert request.json == {"a": 1}


async def test_events_leave_one_by_one() -> None:
    """Each event has arrived before the next one is made."""
    arrived = asyncio.Semaphore(0)
    body = {"messages": [{"role": "user", "content": "look"}], "stream": True}
    async with (
        serving(model_server(Scripted([TALKING]), pause=arrived.acquire)) as url,
        httpx2.AsyncClient(base_url=url) as client,
        client.stream("POST", "/v1/chat/completions", json=body) as answer,
    ):
        events = [line async for line in answer.aiter_lines() if line and not arrived.release()]
    assert answer.headers["content-type"].startswith("text/event-stream")
    assert events[-1] == "data: [DONE]"
    assert len(events) > 5


async def test_a_stream_of_gemini_without_sse_is_an_array(client: httpx2.AsyncClient) -> None:
    body = {"contents": [{"parts": [{"text": "look"}]}]}
    answer = await client.post("/v1beta/models/gemini-3-pro:streamGenerateContent", json=body)
    (chunk,) = answer.json()
    assert chunk["candidates"][0]["content"]["parts"] == [{"text": "I see no media."}]
    assert (await client.post("/v1beta/models/gemini-3-pro:countTokens", json=body)).status_code == 404


async def test_bedrock_answers_and_does_not_stream(client: httpx2.AsyncClient) -> None:
    import botocore.session
    from botocore.parsers import RestJSONParser

    body = {"messages": [{"role": "user", "content": [{"text": "look"}]}]}
    answer = await client.post("/model/anthropic.claude-3:0/converse", json=body)
    service = botocore.session.get_session().get_service_model("bedrock-runtime")
    parsed = RestJSONParser().parse(
        {"body": answer.content, "headers": dict(answer.headers), "status_code": answer.status_code},
        service.operation_model("Converse").output_shape,
    )
    assert parsed["output"]["message"]["content"] == [{"text": "I see no media."}]
    assert parsed["stopReason"] == "end_turn"
    refused = await client.post("/model/m/converse", json={**body, "stream": True})
    assert refused.json() == {"message": "this stand-in does not stream"}


def asking(*messages: dict[str, Any], tools: tuple[str, ...]) -> Any:
    declared = [{"name": name, "input_schema": {"type": "object"}} for name in tools]
    order = {"role": "user", "content": 'call gateway__draw {"rows": 3}'}
    read = conversation(
        "anthropic_messages", {"model": "m", "max_tokens": 9, "tools": declared, "messages": [order, *messages]}
    )
    assert read is not None
    return LookingModel()(read)


def test_a_model_waits_for_a_tool_that_is_not_connected_yet() -> None:
    draw = (ToolCall("gateway__draw", {"rows": 3}),)
    waited = (
        {"role": "assistant", "content": [{"type": "tool_use", "id": "w1", "name": "WaitForMcpServers", "input": {}}]},
        {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "w1", "content": "still connecting"}]},
    )
    waiting = ("Bash", "WaitForMcpServers")
    assert asking(tools=waiting).calls == (ToolCall("WaitForMcpServers"),)
    assert asking(*waited, tools=waiting).calls == (ToolCall("WaitForMcpServers"),)
    assert asking(*waited, tools=(*waiting, "gateway__draw")).calls == draw
    assert asking(tools=(*waiting, "gateway__draw")).calls == draw
    assert asking(tools=("Bash",)).calls == draw  # nothing to wait with
    drawn = (
        {"role": "assistant", "content": [{"type": "tool_use", "id": "d1", "name": "gateway__draw", "input": {}}]},
        {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "d1", "content": "drawn"}]},
    )
    assert asking(*waited, *drawn, tools=(*waiting, "gateway__draw")) == Reply(text="I see no media.")


async def test_it_runs_by_hand_and_says_where(tmp_path: Path) -> None:
    log = tmp_path / "requests.jsonl"
    command = [sys.executable, "-m", "gateway.testing.model_apis", "--chat", "vllm", "--log", str(log)]
    with anyio.fail_after(60):
        process = await anyio.open_process(command, stderr=None)
        try:
            assert process.stdout is not None
            first = (await process.stdout.receive()).decode()
            url = first.split("on ", 1)[1].split()[0]
            body = {"messages": [{"role": "user", "content": "look"}]}
            async with httpx2.AsyncClient() as client:
                answer = await client.post(
                    f"{url}/v1/chat/completions", json=body, headers={"Authorization": "Bearer secret"}
                )
            assert answer.json()["choices"][0]["message"]["content"] == "I see no media."
            assert "vllm" in first
            line = await anyio.Path(log).read_text("utf-8")
            kept = json.loads(line)
            assert (kept["method"], kept["path"], kept["body"]) == ("POST", "/v1/chat/completions", body)
            assert "secret" not in line
        finally:
            process.terminate()
            await process.aclose()


def test_the_examples_on_the_page_about_testing_run() -> None:
    page = Path(__file__).parents[3] / "docs" / "testing.md"
    examples = re.findall(r"```python\n(.*?)```", page.read_text("utf-8"), re.DOTALL)
    assert examples
    for code in examples:
        subprocess.run([sys.executable, "-c", code], check=True, timeout=60)
