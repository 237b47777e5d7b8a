"""The settings of gateways that serve together, as replicas behind a load balancer: `[cluster]`."""

from typing import Annotated

from pydantic import Field

from gateway.config.section import Section
from gateway.core.model.quantities import Duration

REDIS_URL = r"^(?:rediss?(?:\+cluster)?|unix)://"
ADDRESS = r"^https?://[^\s/?#@]+$"


class ClusterSettings(Section):
    """Several gateways with one configuration behind a load balancer: `serve --http` with a Redis that they share."""

    url: Annotated[str | None, Field(pattern=REDIS_URL)] = None
    """URL of a Redis or Valkey (extra `redis`), which makes this gateway one of several."""
    address: Annotated[str | None, Field(pattern=ADDRESS)] = None
    """The origin at which the other replicas reach this one; omitted: its own address, and the port it listens on."""
    lost_after: Annotated[Duration, Field(ge=1, le=300)] = 10.0
    """Seconds without a sign of life after which a replica counts as gone, and the others take over its sessions."""
