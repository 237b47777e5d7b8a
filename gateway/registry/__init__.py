"""The registry of MCP servers: asking it, with a cache on disk, and planning what its entries change here."""
