"""Messages to and from an upstream: over stdio, Streamable HTTP and SSE."""
