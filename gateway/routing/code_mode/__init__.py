"""Code mode: scripts that call tools as functions, in a sandbox, and choose what the model is shown."""

from gateway.routing.code_mode.code_mode import CodeMode, open_code_mode

__all__ = ["CodeMode", "open_code_mode"]
