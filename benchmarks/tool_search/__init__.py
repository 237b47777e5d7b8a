"""How well tool search finds, and what it saves: `python -m benchmarks.tool_search`."""
