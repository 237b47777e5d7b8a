"""Upstream servers: connecting to them, supervising them, speaking to them."""

from gateway.upstream.calls import ProgressCallback
from gateway.upstream.catalogues import Catalogues
from gateway.upstream.pool import Upstreams
from gateway.upstream.states import UpstreamState
from gateway.upstream.upstream import Upstream

__all__ = ["Catalogues", "ProgressCallback", "Upstream", "UpstreamState", "Upstreams"]
