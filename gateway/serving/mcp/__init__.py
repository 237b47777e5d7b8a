"""Serving hosts of every revision: stdio (`stdio`), Streamable HTTP and HTTP+SSE (`http`).

Nothing is imported here: `gateway.serving.mcp.early_stdio` answers a host's first message before anything heavy is
loaded.
"""
