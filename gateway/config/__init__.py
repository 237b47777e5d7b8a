"""mcp-gateway.toml: its schema, and finding, loading, validating and comparing it."""
