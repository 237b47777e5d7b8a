"""The command `mcp-gateway`, one module per command. Nothing is imported here: `serve` has to start fast."""
