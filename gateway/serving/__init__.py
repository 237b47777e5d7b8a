"""Ports of our own: MCP, content, the model proxy, and the control socket."""
