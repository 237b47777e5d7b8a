"""A graph of LangGraph with a gateway as its MCP server: `python -m examples.agents.with_langgraph`.

The gateway is at $GATEWAY_URL, the model at $OPENAI_BASE_URL with $OPENAI_API_KEY; the model is $MODEL. OpenAI
Responses takes what LangGraph's tools return. With API=openai_chat it is Chat Completions, which takes no images: put
`mcp-gateway proxy` before that.
"""

import asyncio
import os

from langchain_mcp_adapters.client import MultiServerMCPClient
from langchain_openai import ChatOpenAI
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.prebuilt import ToolNode, tools_condition

GATEWAY = os.environ.get("GATEWAY_URL", "http://127.0.0.1:8484/mcp/langchain")
MODEL = os.environ.get("MODEL", "gpt-5.5")
RESPONSES = os.environ.get("API") != "openai_chat"
PROMPT = "call charts__draw_chart {}\nThen tell me what you see. Begin with: I see N image"


async def main() -> None:
    """Let the model draw a chart, and look at it."""
    tools = await MultiServerMCPClient({"gateway": {"transport": "streamable_http", "url": GATEWAY}}).get_tools()
    model = ChatOpenAI(model=MODEL, use_responses_api=RESPONSES).bind_tools(tools)

    async def ask(state: MessagesState) -> dict[str, object]:
        return {"messages": [await model.ainvoke(state["messages"])]}

    graph = StateGraph(MessagesState)
    graph.add_node("model", ask)
    graph.add_node("tools", ToolNode(tools))
    graph.add_edge(START, "model")
    graph.add_conditional_edges("model", tools_condition)
    graph.add_edge("tools", "model")
    ended = await graph.compile().ainvoke({"messages": [("user", PROMPT)]})
    answer = ended["messages"][-1].text
    print(answer)
    assert "I see 1 image" in answer, "the model saw no image"


if __name__ == "__main__":
    asyncio.run(main())
