"""A tool's result: lifted into an envelope, decided on, and written as MCP again."""
