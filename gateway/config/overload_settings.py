"""The settings for more work than can be done at once: `[overload]`."""

from typing import Annotated

from pydantic import Field

from gateway.config.section import Section
from gateway.core.model.quantities import Duration, Size


class OverloadSettings(Section):
    """What happens when more is asked of the gateway than it can do at once (docs/overload.md)."""

    calls_at_once: Annotated[int, Field(ge=1)] | None = None
    """Requests that are worked on at once, for all hosts; omitted: by the memory and the cores there are."""
    queue: Annotated[int, Field(ge=0)] | None = None
    """Requests that may wait for their turn, callers taking turns; omitted: half of `calls_at_once`."""
    queue_time: Annotated[Duration, Field(gt=0, le=86_400)] = 10.0
    """Seconds that a request may wait for its turn; then it is refused, with `Retry-After`."""
    media_queue: Annotated[int, Field(ge=1)] | None = None
    """Media jobs that may wait for a worker; never more than half of `calls_at_once`, so that other calls go on."""
    max_delay: Annotated[Duration, Field(gt=0, le=60)] = 1.0
    """Seconds that the event loop may be late; while it is later, fewer requests are worked on at once."""
    memory: Annotated[Size, Field(gt=0)] | None = None
    """Memory that the gateway's process may use; omitted: only the limit of its container or service counts."""
