"""Hosts' own configuration files: reading their servers, and registering or unregistering the gateway there."""
