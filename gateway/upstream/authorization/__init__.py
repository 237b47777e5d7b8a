"""Logins to upstreams (OAuth): the gateway as the client, for each principal by itself."""
