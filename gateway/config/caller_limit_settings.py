"""The limits for those who use the gateway: `[access.limits]`, and `[access.tokens.NAME.limits]`."""

from typing import Annotated

from pydantic import Field

from gateway.config.section import Section
from gateway.core.model.grant import Quota
from gateway.core.model.quantities import Size

_Number = Annotated[int | None, Field(ge=1)]


class CallerLimitSettings(Section):
    """Limits on what one principal, or one token, may ask for. Omitted: no limit. A day is one of UTC.

    They are counted in memory: a restart of the gateway forgets what has been used, and each gateway counts for itself.
    """

    requests_per_minute: _Number = None
    """Requests over HTTP within a minute, whatever they are for; above it, the answer is 429 with `Retry-After`."""
    calls_at_once: _Number = None
    """Tool calls that run at once."""
    calls_per_minute: _Number = None
    """Tool calls within a minute."""
    calls_per_day: _Number = None
    """Tool calls in a day."""
    bytes_per_day: Annotated[Size, Field(gt=0)] | None = None
    """Size of the results of tools, resources and prompts in a day; the result that exceeds it is still given."""

    picture_tokens_per_day: _Number = None
    """Tokens of the images in results in a day, by the formula of the host's model; what exceeds it is given."""

    @property
    def quota(self) -> Quota:
        """The limits as a value."""
        return Quota(**dict(self))
