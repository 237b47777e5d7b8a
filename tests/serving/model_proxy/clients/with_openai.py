"""The official openai client, on Chat Completions and Responses."""

import json

from mcp import Client
from naive import FORMS
from openai import AsyncOpenAI
from running import run


async def attempt(case):
    loop = {"chat": chat, "responses": responses}[case["loop"]]
    model = AsyncOpenAI(base_url=f"{case['url']}/v1", api_key="no-key", max_retries=0)
    async with Client(case["mcp"]) as server, model:
        tools = (await server.list_tools()).tools
        return await loop(model, case, server, tools)


async def chat(model, case, server, tools):
    schemas = [{"type": "function", "function": schema(tool)} for tool in tools]
    messages = [{"role": "user", "content": case["prompt"]}]
    while True:
        message = await completed(model, {"model": case["model"], "messages": messages, "tools": schemas}, case)
        if not message.tool_calls:
            return message.content
        calls = [call.model_dump(include={"id", "type", "function"}) for call in message.tool_calls]
        for call in calls:
            call["function"] = {name: call["function"][name] for name in ("name", "arguments")}
        messages.append({"role": "assistant", "content": message.content, "tool_calls": calls})
        for call in message.tool_calls:
            result = await server.call_tool(call.function.name, json.loads(call.function.arguments))
            messages.append({"role": "tool", "tool_call_id": call.id, "content": FORMS[case["form"]](result)})


async def completed(model, request, case):
    if case["streamed"]:
        async with model.chat.completions.stream(**request) as stream:
            completion = await stream.get_final_completion()
    else:
        completion = await model.chat.completions.create(**request)
    return completion.choices[0].message


async def responses(model, case, server, tools):
    schemas = [{"type": "function", **schema(tool), "strict": False} for tool in tools]
    items = [{"role": "user", "content": case["prompt"]}]
    while True:
        response = await responded(model, {"model": case["model"], "input": items, "tools": schemas}, case)
        items += [item.model_dump(exclude_none=True, exclude={"parsed_arguments"}) for item in response.output]
        calls = [item for item in response.output if item.type == "function_call"]
        if not calls:
            return response.output_text
        for call in calls:
            result = await server.call_tool(call.name, json.loads(call.arguments))
            output = FORMS[case["form"]](result)
            items.append({"type": "function_call_output", "call_id": call.call_id, "output": output})


async def responded(model, request, case):
    if case["streamed"]:
        async with model.responses.stream(**request) as stream:
            return await stream.get_final_response()
    return await model.responses.create(**request)


def schema(tool):
    return {"name": tool.name, "description": tool.description or "", "parameters": tool.input_schema}


run(attempt)
