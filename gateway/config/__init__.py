"""mcp-gateway.toml: its schema, found, loaded, checked and compared."""
