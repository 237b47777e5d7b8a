"""Upstream servers: connecting to them, supervising them, and exchanging messages with them."""

from gateway.upstream.catalogues import Catalogues
from gateway.upstream.connection.deadlines import ProgressCallback
from gateway.upstream.connection.host_requests import Host
from gateway.upstream.connection.request_context import RequestContext
from gateway.upstream.connection.states import UpstreamState
from gateway.upstream.pool import Upstreams
from gateway.upstream.upstream import Upstream, nobody

__all__ = [
    "Catalogues",
    "Host",
    "ProgressCallback",
    "RequestContext",
    "Upstream",
    "UpstreamState",
    "Upstreams",
    "nobody",
]
