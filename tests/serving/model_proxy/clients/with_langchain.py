"""LangChain's chat models, with the tools of langchain-mcp-adapters."""

from langchain_anthropic import ChatAnthropic
from langchain_core.messages import HumanMessage
from langchain_google_genai import ChatGoogleGenerativeAI
from langchain_mcp_adapters.client import MultiServerMCPClient
from langchain_ollama import ChatOllama
from langchain_openai import ChatOpenAI
from running import run


def chat_model(case):
    name, url, key = case["model"], case["url"], "no-key"
    match case["loop"]:
        case "chat":
            return ChatOpenAI(model=name, base_url=f"{url}/v1", api_key=key, max_retries=0, use_responses_api=False)
        case "responses":
            return ChatOpenAI(model=name, base_url=f"{url}/v1", api_key=key, max_retries=0, use_responses_api=True)
        case "messages":
            return ChatAnthropic(model=name, base_url=url, api_key=key, max_retries=0, max_tokens=1_000)
        case "gemini":
            return ChatGoogleGenerativeAI(model=name, base_url=url, api_key=key, max_retries=1)
        case "ollama":
            return ChatOllama(model=name, base_url=url)


async def attempt(case):
    server = MultiServerMCPClient({"gateway": {"transport": "streamable_http", "url": case["mcp"]}})
    tools = {tool.name: tool for tool in await server.get_tools()}
    model = chat_model(case).bind_tools(list(tools.values()))
    messages = [HumanMessage(case["prompt"])]
    while True:
        message = await said(model, messages, case)
        messages.append(message)
        if not message.tool_calls:
            return message.text
        messages += [await tools[call["name"]].ainvoke({**call, "type": "tool_call"}) for call in message.tool_calls]


async def said(model, messages, case):
    if not case["streamed"]:
        return await model.ainvoke(messages)
    message = None
    async for chunk in model.astream(messages):
        message = chunk if message is None else message + chunk
    return message


run(attempt)
