"""A tool's result: lifted into an envelope, decided on, planned, and written as MCP again."""
