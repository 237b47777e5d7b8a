"""Transports to upstreams: stdio, Streamable HTTP and SSE."""
