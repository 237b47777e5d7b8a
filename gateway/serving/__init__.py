"""Servers of the gateway: MCP for hosts, content, the model proxy, and the control socket."""
