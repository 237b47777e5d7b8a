"""Agent loops: one for each model API on `gateway.open`, and three frameworks as MCP hosts of a gateway."""
