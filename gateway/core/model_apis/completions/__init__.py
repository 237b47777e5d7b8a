"""Completions: a model's answer read, one module per API dialect. Pure.

Each module has `schemas` (tools as this API takes them), `tool_calls` (what the model asks for), `assistant_messages`
(what of the answer goes back into the history), `joined` (the answer that the chunks of a stream come to), and `NAMES`,
the names that the API takes for tools.
"""
