"""Serve hosts of every revision over stdio (`stdio`), Streamable HTTP and HTTP+SSE (`http`).

This module imports nothing, because `gateway.serving.mcp.early_stdio` answers a host's first message before anything
heavy is loaded.
"""
