"""Streamable HTTP over an HTTP/1.1 client of our own: no task, no stream and one parse for a common answer."""
