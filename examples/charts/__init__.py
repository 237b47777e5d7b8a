"""An MCP server over stdio that draws charts and pictures."""
