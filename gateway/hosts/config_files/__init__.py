"""Hosts' own configuration files: reading their servers, registering the gateway there, and taking it out again."""
