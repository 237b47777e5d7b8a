"""One MCP server in front of many, whose results arrive in the shape that each host really shows its model."""

__version__ = "0.1.0"
