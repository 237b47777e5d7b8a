"""The daylight server: a tool with a page (MCP Apps)."""
