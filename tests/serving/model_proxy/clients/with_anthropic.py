"""The official anthropic client, on Messages."""

from anthropic import AsyncAnthropic
from anthropic.lib.tools.mcp import mcp_content
from mcp import Client
from naive import FORMS
from running import run

OWN = "the SDK's own blocks"


async def attempt(case):
    model = AsyncAnthropic(base_url=case["url"], api_key="no-key", max_retries=0)
    async with Client(case["mcp"]) as server, model:
        tools = [
            {"name": tool.name, "description": tool.description or "", "input_schema": tool.input_schema}
            for tool in (await server.list_tools()).tools
        ]
        messages = [{"role": "user", "content": case["prompt"]}]
        while True:
            request = {"model": case["model"], "max_tokens": 1_000, "messages": messages, "tools": tools}
            message = await said(model, request, case)
            messages.append({"role": "assistant", "content": message.content})
            calls = [block for block in message.content if block.type == "tool_use"]
            if not calls:
                return message.content[0].text
            messages.append({"role": "user", "content": [await result(server, call, case) for call in calls]})


async def said(model, request, case):
    if case["streamed"]:
        async with model.messages.stream(**request) as stream:
            return await stream.get_final_message()
    return await model.messages.create(**request)


async def result(server, call, case):
    given = await server.call_tool(call.name, call.input)
    own = case["form"].startswith(OWN)
    content = [mcp_content(block) for block in given.content] if own else FORMS[case["form"]](given)
    return {"type": "tool_result", "tool_use_id": call.id, "content": content, "is_error": bool(given.is_error)}


run(attempt)
