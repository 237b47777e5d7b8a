"""An MCP server whose tool takes a photo by its handle, and a check that passes it one through the gateway."""
