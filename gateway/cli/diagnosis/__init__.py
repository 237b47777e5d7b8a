"""Diagnosis of an installation (`doctor`), and of an MCP server during its development (`check`).

Judgements are separate from the examination: `toolsets`, `schemas`, `examples`, `selection` and the advice are pure;
`upstreams`, `registration`, `ports`, `media_and_store` and `server_check` start programs and read the system.
"""
