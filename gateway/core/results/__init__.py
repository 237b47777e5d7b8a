"""A tool's result: lifted into an envelope, decided on, and lowered to MCP again."""
