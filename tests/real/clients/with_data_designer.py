"""NeMo Data Designer, on version 1 of the Python SDK: `with_data_designer.py JOBS`.

The jobs, as JSON, by name; each makes a dataset of one row for each document, one after the other:

    {"<name>": {"mcp": {"provider_type": "sse" | "streamable_http", "endpoint": "..."}
                     | {"provider_type": "stdio", "command": "...", "args": [...], "env": {...}},
                "model": {"provider_type": "openai" | "anthropic", "endpoint": "..."},
                "documents": ["..."], "prompt": "... {{ document }} ..."}}

Printed is, by name, what the model said of each document, `{"rows": {"<document>": "..."}}`, or why no row was made,
`{"error": "..."}`. Requests to the model carry the job's name in the header X-Job.
"""

import json
import sys

import data_designer.config as dd
import pandas
from data_designer.interface import DataDesigner
from data_designer.interface.errors import DataDesignerGenerationError


def provider(provider_type, **place):
    made = dd.LocalStdioMCPProvider if provider_type == "stdio" else dd.MCPProvider
    return made(name="gateway", provider_type=provider_type, **place)


def done(name, job):
    headers = {"X-Job": name}
    designer = DataDesigner(
        "artifacts",
        model_providers=[dd.ModelProvider(name="proxy", api_key="no-key", extra_headers=headers, **job["model"])],
        mcp_providers=[provider(**job["mcp"])],
    )
    config = dd.DataDesignerConfigBuilder(
        model_configs=[dd.ModelConfig(alias="sees", model="stand-in", provider="proxy")],
        tool_configs=[dd.ToolConfig(tool_alias="tools", providers=["gateway"])],
    )
    config.with_seed_dataset(dd.DataFrameSeedSource(df=pandas.DataFrame({"document": job["documents"]})))
    config.add_column(dd.LLMTextColumnConfig(name="seen", prompt=job["prompt"], model_alias="sees", tool_alias="tools"))
    try:
        rows = designer.preview(config, num_records=len(job["documents"])).dataset
    except DataDesignerGenerationError as error:
        return {"error": str(error)}
    return {"rows": dict(zip(rows["document"], rows["seen"], strict=True))}


print(json.dumps({name: done(name, job) for name, job in json.loads(sys.argv[1]).items()}))
