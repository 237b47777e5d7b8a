"""Upstream servers: connecting to them, supervising them, speaking to them."""

from gateway.upstream.asking import Host
from gateway.upstream.calls import ProgressCallback
from gateway.upstream.catalogues import Catalogues
from gateway.upstream.pool import Upstreams
from gateway.upstream.states import UpstreamState
from gateway.upstream.upstream import Upstream, nobody

__all__ = ["Catalogues", "Host", "ProgressCallback", "Upstream", "UpstreamState", "Upstreams", "nobody"]
