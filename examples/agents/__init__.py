"""Agent loops: one for each model API on `gateway.open`, and agent frameworks as MCP hosts of a gateway."""
