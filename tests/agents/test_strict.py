"""Tools in strict mode, which OpenAI's own helpers ask for: with the real SDK, before a strict stand-in of its APIs."""

from typing import Any

import anyio
import httpx2
import pytest
from openai import AsyncOpenAI

from gateway.errors import ConfigError
from gateway.testing.model_apis.scripts import LookingModel
from gateway.testing.model_apis.server import ModelServer, model_server

pytestmark = pytest.mark.anyio

# Both arguments of the test's server may be left out.
ORDER = 'call one__echo {"name": "a.png", "other": null}\ncall one__picture {"name": null, "other": null}'


def openai_at(server: ModelServer) -> AsyncOpenAI:
    http = httpx2.AsyncClient(transport=httpx2.ASGITransport(app=server))
    return AsyncOpenAI(api_key="none", base_url="http://model/v1", http_client=http)


async def chat_streamed(client: AsyncOpenAI, messages: list[Any], tools: list[Any]) -> Any:
    async with client.chat.completions.stream(model="gpt-5.5", messages=messages, tools=tools) as stream:
        async for _ in stream:
            pass
        return await stream.get_final_completion()


async def chat_parsed(client: AsyncOpenAI, messages: list[Any], tools: list[Any]) -> Any:
    return await client.chat.completions.parse(model="gpt-5.5", messages=messages, tools=tools)


async def responses_streamed(client: AsyncOpenAI, messages: list[Any], tools: list[Any]) -> Any:
    async with client.responses.stream(model="gpt-5.5", input=messages, tools=tools) as stream:
        async for _ in stream:
            pass
        return await stream.get_final_response()


async def responses_parsed(client: AsyncOpenAI, messages: list[Any], tools: list[Any]) -> Any:
    return await client.responses.parse(model="gpt-5.5", input=messages, tools=tools)


HELPERS = {
    "chat.completions.stream": ("openai_chat", chat_streamed),
    "chat.completions.parse": ("openai_chat", chat_parsed),
    "responses.stream": ("openai_responses", responses_streamed),
    "responses.parse": ("openai_responses", responses_parsed),
}


@pytest.mark.parametrize("helper", HELPERS)
async def test_the_sdks_helpers_take_the_tools_and_the_model_sees_the_picture(in_process: Any, helper: str) -> None:
    api, ask = HELPERS[helper]
    server = model_server(LookingModel())
    messages: list[Any] = [{"role": "user", "content": ORDER}]
    async with in_process() as gw, openai_at(server) as client:
        tools = gw.toolset(api=api, strict=True)
        with anyio.fail_after(60):
            completion = await ask(client, messages, await tools.schemas())
            responded = await tools.respond(completion)
            messages += responded
            last = await ask(client, messages, await tools.schemas())
    assert not tools.has_tool_calls(last)
    assert "I see 1 image: image/png" in str(last)
    echoed, _ = responded.results
    assert echoed.envelope.blocks[0].text == '{"name": "a.png"}', "null stands for what is left out"
    assert echoed.call.arguments == {"name": "a.png", "other": None}, "the call is kept as the model wrote it"


async def test_the_sdks_helpers_refuse_tools_that_are_not_strict(in_process: Any) -> None:
    async with in_process() as gw, openai_at(model_server()) as client:
        schemas = await gw.toolset(api="openai_chat").schemas()
        with pytest.raises(ValueError, match="is not strict"):
            await chat_parsed(client, [{"role": "user", "content": ORDER}], schemas)


@pytest.mark.parametrize("api", ["openai_chat", "openai_responses"])
async def test_every_tool_says_that_it_is_strict(in_process: Any, api: str) -> None:
    async with in_process("one", "two") as gw:
        tools = gw.toolset(api=api, strict=True)
        described = [tool.get("function", tool) for tool in await tools.fresh().schemas()]
    assert {tool["strict"] for tool in described} == {True}
    assert tools.fresh().strict


async def test_nulls_stay_where_tools_are_not_strict(in_process: Any, chat: Any) -> None:
    async with in_process() as gw:
        responded = await gw.toolset(api="openai_chat").respond(chat(("one__echo", {"name": None})))
    assert responded.results[0].envelope.blocks[0].text == '{"name": null}'


@pytest.mark.parametrize("api", ["anthropic_messages", "gemini", "ollama"])
async def test_an_api_without_a_strict_mode_says_so(in_process: Any, api: str) -> None:
    async with in_process() as gw:
        with pytest.raises(ConfigError, match=f"{api} has no strict mode"):
            gw.toolset(api=api, strict=True)
