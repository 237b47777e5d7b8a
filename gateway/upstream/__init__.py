"""Upstream servers: connecting to them, supervising them, speaking to them."""

from gateway.upstream.calls import ProgressCallback
from gateway.upstream.pool import Upstreams
from gateway.upstream.upstream import Upstream, UpstreamState

__all__ = ["ProgressCallback", "Upstream", "UpstreamState", "Upstreams"]
