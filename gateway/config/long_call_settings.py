"""The table `[long_calls]`: calls that take longer than their host waits."""

from typing import Annotated

from pydantic import Field

from gateway.config.section import Section
from gateway.core.model.quantities import Duration, Size


class LongCallSettings(Section):
    """Calls that take longer than their host waits are answered before it gives up, and go on: docs/long-calls.md."""

    enabled: bool = True
    """Whether calls are answered early, for hosts that are known to give up whatever progress they get."""
    lasts: Annotated[Duration, Field(ge=10, le=86_400)] = 3_600.0
    """Seconds for which such a call, or its result, is kept after the host has last asked for it."""
    at_most: Annotated[int, Field(ge=1, le=10_000)] = 128
    """Maximum number of such calls and results; above it, calls are not answered early."""
    at_most_of_one: Annotated[int, Field(ge=1, le=10_000)] = 16
    """The same for one principal."""
    max_bytes: Annotated[Size, Field(gt=0)] = 64 * 1024 * 1024
    """Maximum size of all results that are kept; above it, the oldest are forgotten."""
