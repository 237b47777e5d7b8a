"""The console's settings: `[console]`."""

from pathlib import Path
from typing import Annotated

from pydantic import Field

from gateway.config.section import Section
from gateway.core.model.quantities import Duration, Size


class ConsoleSettings(Section):
    """The console: pages that show what every model sees. `mcp-gateway console` opens it on any running gateway."""

    enabled: bool = False
    """Serve it at `/console` of `serve --http`, as `--console` does, and keep calls from the start."""
    max_calls: Annotated[int, Field(ge=1, le=1_000_000)] = 10_000
    """Maximum number of past calls that are kept."""
    max_bytes: Size = 64 * 1024 * 1024
    """Maximum size of the arguments and results kept with them; the oldest calls lose theirs first."""
    calls: Path | None = None
    """An SQLite file that also keeps past calls, with the secrets in their arguments masked, so that they are there
    after a restart. A relative path is based on the folder of the configuration file. Default: none."""
    max_age: Annotated[Duration, Field(ge=1)] = 30 * 86_400.0
    """Seconds after which a call is removed from that file."""
