"""An agent of smolagents with a gateway as its MCP server: `python -m examples.agents.with_smolagents`.

The gateway is at $GATEWAY_URL, the model at $OPENAI_BASE_URL with $OPENAI_API_KEY; the model is $MODEL. smolagents
reads the first block of a result and shows its model no image: the profile `smolagents` gives it a handle to read, and
`mcp-gateway proxy` before the model puts the image there. Needs requirements/smolagents.in.
"""

import os

from smolagents import MCPClient, OpenAIModel, ToolCallingAgent

GATEWAY = os.environ.get("GATEWAY_URL", "http://127.0.0.1:8484/mcp/smolagents")
MODEL = os.environ.get("MODEL", "gpt-5.5")
# smolagents wants every argument of a tool, also those that may be left out.
ARGUMENTS = '{"kind": "line", "title": "", "labels": [], "values": [], "unit": "", "cities": ["Lisbon"]}'
PROMPT = f"call charts__draw_chart {ARGUMENTS}\nThen tell me what you see. Begin with: I see N image"


def main() -> None:
    """Let the agent draw a chart, and look at it."""
    with MCPClient({"url": GATEWAY, "transport": "streamable-http"}, structured_output=False) as tools:
        model = OpenAIModel(MODEL, api_base=os.environ["OPENAI_BASE_URL"], api_key=os.environ["OPENAI_API_KEY"])
        answer = str(ToolCallingAgent(tools=tools, model=model, max_steps=4, verbosity_level=0).run(PROMPT))
    print(answer)
    assert "I see 1 image" in answer, "the model saw no image"


if __name__ == "__main__":
    main()
