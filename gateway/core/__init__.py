"""Pure rules on wire JSON and frozen values: no I/O, no clock, no randomness, no MCP SDK."""
