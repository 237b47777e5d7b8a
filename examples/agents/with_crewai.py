"""An agent of CrewAI with a gateway as its MCP server: `python -m examples.agents.with_crewai`.

The gateway is at $GATEWAY_URL, the model at $OPENAI_BASE_URL with $OPENAI_API_KEY; the model is $MODEL. CrewAI hands
its model text alone: the picture is a line with its handle, and the model proxy of the gateway puts the picture in
its place. So $OPENAI_BASE_URL is the address of the proxy (docs/framework-notes.md).
"""

import os

from crewai import LLM, Agent
from crewai_tools import MCPServerAdapter

GATEWAY = os.environ.get("GATEWAY_URL", "http://127.0.0.1:8484/mcp/crewai")
MODEL = os.environ.get("MODEL", "gpt-5.5")
PROMPT = "Draw a chart.\ncall charts_draw_chart {}\nThen tell me what you see. Begin with: I see N image"


def main() -> None:
    """Let the agent draw a chart, and look at it."""
    model = LLM(model=f"openai/{MODEL}", base_url=os.environ.get("OPENAI_BASE_URL"))
    with MCPServerAdapter({"url": GATEWAY, "transport": "streamable-http"}) as tools:
        agent = Agent(
            role="looker", goal="look at charts", backstory="You look at charts.", llm=model, tools=list(tools)
        )
        answer = agent.kickoff(PROMPT).raw
    print(answer)
    assert "I see 1 image" in answer, "the model saw no image"


if __name__ == "__main__":
    main()
