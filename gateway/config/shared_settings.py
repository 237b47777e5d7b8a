"""The settings of a gateway that several hosts on stdio share: `[shared]`."""

from typing import Annotated

from pydantic import Field

from gateway.config.section import Section
from gateway.core.model.quantities import Duration


class SharedSettings(Section):
    """One gateway for all hosts of a user: `serve --shared`. Its hosts attach to it through small processes."""

    linger: Annotated[Duration, Field(gt=0, le=86_400)] = 60.0
    """Seconds after which it ends when the last host has left; a gateway with `--http` stays."""
    max_hosts: Annotated[int, Field(ge=1, le=10_000)] = 64
    """Maximum number of hosts that are attached at once."""
