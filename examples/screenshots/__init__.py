"""An MCP server that takes screenshots and compares them, and a check that does both from a script."""
