"""The official ollama client, on /api/chat."""

from mcp import Client
from naive import FORMS
from ollama import AsyncClient
from running import run


async def attempt(case):
    model = AsyncClient(host=case["url"])
    async with Client(case["mcp"]) as server:
        tools = [
            {"type": "function", "function": {"name": tool.name, "parameters": tool.input_schema}}
            for tool in (await server.list_tools()).tools
        ]
        messages = [{"role": "user", "content": case["prompt"]}]
        while True:
            words, calls = await said(model, {"model": case["model"], "messages": messages, "tools": tools}, case)
            if not calls:
                return words
            messages.append({"role": "assistant", "content": words, "tool_calls": calls})
            for call in calls:
                result = await server.call_tool(call["function"]["name"], call["function"]["arguments"])
                content = FORMS[case["form"]](result)
                messages.append({"role": "tool", "tool_name": call["function"]["name"], "content": content})


async def said(model, request, case):
    """The words of a reply, and its calls."""
    if case["streamed"]:
        chunks = [chunk async for chunk in await model.chat(**request, stream=True)]
    else:
        chunks = [await model.chat(**request)]
    calls = [call.model_dump() for chunk in chunks for call in chunk.message.tool_calls or ()]
    return "".join(chunk.message.content or "" for chunk in chunks), calls


run(attempt)
