"""The console's settings: `[console]`."""

from typing import Annotated

from pydantic import Field

from gateway.config.section import Section
from gateway.core.model.quantities import Size


class ConsoleSettings(Section):
    """The console: pages that show what every model sees. `mcp-gateway console` opens it on any running gateway."""

    enabled: bool = False
    """Serve it at `/console` of `serve --http`, as `--console` does, and keep calls from the start."""
    max_calls: Annotated[int, Field(ge=1, le=1_000_000)] = 10_000
    """Maximum number of past calls that are kept in memory."""
    max_bytes: Size = 64 * 1024 * 1024
    """Maximum size of the arguments and results kept with them; the oldest calls lose theirs first."""
