"""An MCP server over Streamable HTTP that serves a small library."""
