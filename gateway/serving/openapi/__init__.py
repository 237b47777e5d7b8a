"""The tools as an HTTP API with an OpenAPI document, for programs without MCP."""
