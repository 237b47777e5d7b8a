"""The official google-genai client, on generateContent and streamGenerateContent."""

import base64

from google import genai
from google.genai import types
from mcp import Client, ClientSession
from mcp.client.streamable_http import streamable_http_client
from naive import FORMS, images, text
from running import run

AUTOMATIC = "an MCP session as a tool"


def response(form, call, result):
    """A function's response, in a form; bytes among it travel in the URL-safe alphabet."""
    said, parts = {"output": text(result)}, None
    content = [(block.mime_type, base64.b64decode(block.data)) for block in images(result)]
    match form:
        case "CallToolResult in response":
            said = {"result": result.model_dump(mode="json")}
        case "bytes in response":
            said["images"] = [{"mime_type": kind, "data": data} for kind, data in content]
        case "parts of the response":
            parts = [types.FunctionResponsePart.from_bytes(data=data, mime_type=kind) for kind, data in content]
        case "error as JSON":
            said = {"error": FORMS["CallToolResult as JSON"](result)}
        case _:
            said = {"output": FORMS[form](result)}
    given = types.FunctionResponse(id=call.id, name=call.name, response=said, parts=parts)
    return types.Part(function_response=given)


async def attempt(case):
    options = types.HttpOptions(base_url=case["url"], retry_options=types.HttpRetryOptions(attempts=1))
    async with genai.Client(api_key="no-key", http_options=options).aio as model:
        if case["form"] == AUTOMATIC:
            async with streamable_http_client(case["mcp"]) as (read, write), ClientSession(read, write) as session:
                await session.initialize()
                _, words = await said(model, case, case["prompt"], {"tools": [session]})
                return words
        async with Client(case["mcp"]) as server:
            return await loop(model, case, server)


async def loop(model, case, server):
    declared = [
        types.FunctionDeclaration(
            name=tool.name, description=tool.description or "", parameters_json_schema=tool.input_schema
        )
        for tool in (await server.list_tools()).tools
    ]
    contents = [types.Content(role="user", parts=[types.Part(text=case["prompt"])])]
    while True:
        parts, words = await said(model, case, contents, {"tools": [types.Tool(function_declarations=declared)]})
        calls = [part.function_call for part in parts if part.function_call]
        if not calls:
            return words
        results = [response(case["form"], call, await server.call_tool(call.name, call.args or {})) for call in calls]
        contents += [types.Content(role="model", parts=parts), types.Content(role="user", parts=results)]


async def said(model, case, contents, config):
    """The parts of a reply, and the text in them."""
    request = {"model": case["model"], "contents": contents, "config": config}
    if case["streamed"]:
        chunks = [chunk async for chunk in await model.models.generate_content_stream(**request)]
    else:
        chunks = [await model.models.generate_content(**request)]
    parts = [part for chunk in chunks for part in chunk.candidates[0].content.parts or ()]
    return [part for part in parts if part.text != ""], "".join(part.text or "" for part in parts)


run(attempt)
