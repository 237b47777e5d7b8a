"""An MCP server over HTTP+SSE that makes sounds."""
