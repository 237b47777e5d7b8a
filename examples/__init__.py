"""Three small MCP servers, one for each transport: charts (stdio), documents (Streamable HTTP), sounds (HTTP+SSE)."""
