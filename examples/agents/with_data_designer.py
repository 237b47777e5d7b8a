"""A row of NeMo Data Designer with a gateway as its MCP provider: `python -m examples.agents.with_data_designer`.

The gateway is at $GATEWAY_URL, the model at $OPENAI_BASE_URL with $OPENAI_API_KEY; the model is $MODEL. Data Designer
puts images on the tool's message: `mcp-gateway proxy` before the model shows them. More is in docs/data-designer.md.
"""

import os
import tempfile

import data_designer.config as dd
from data_designer.interface import DataDesigner

GATEWAY = os.environ.get("GATEWAY_URL", "http://127.0.0.1:8484/mcp/data-designer")
MODEL = os.environ.get("MODEL", "gpt-5.5")
PROMPT = "call charts__draw_chart {}\nThen tell me what you see. Begin with: I see N image"


def main() -> None:
    """Let the model of one row draw a chart, and look at it."""
    model = dd.ModelProvider(name="api", endpoint=os.environ["OPENAI_BASE_URL"], api_key=os.environ["OPENAI_API_KEY"])
    gateway = dd.MCPProvider(name="gateway", provider_type="streamable_http", endpoint=GATEWAY)
    designer = DataDesigner(tempfile.mkdtemp(), model_providers=[model], mcp_providers=[gateway])
    config = dd.DataDesignerConfigBuilder(
        model_configs=[dd.ModelConfig(alias="sees", model=MODEL, provider="api")],
        tool_configs=[dd.ToolConfig(tool_alias="tools", providers=["gateway"])],
    )
    config.add_column(dd.SamplerColumnConfig(name="n", sampler_type="category", params={"values": ["1"]}))
    config.add_column(dd.LLMTextColumnConfig(name="seen", prompt=PROMPT, model_alias="sees", tool_alias="tools"))
    answer = designer.preview(config, num_records=1).dataset["seen"][0]
    print(answer)
    assert "I see 1 image" in answer, "the model saw no image"


if __name__ == "__main__":
    main()
