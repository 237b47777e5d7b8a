"""The command `mcp-gateway`, one module per command. This module imports nothing, so that `serve` starts fast."""
