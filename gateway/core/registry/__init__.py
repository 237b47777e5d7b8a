"""Entries of an MCP registry (`server.json`): what they say, how they are run, and the upstreams they become. Pure."""
