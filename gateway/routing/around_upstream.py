"""Upstreams that do something around each request: the base of those that ask first, log in, or give content."""

from gateway.config.upstream_settings import UpstreamSettings
from gateway.upstream.bridging.bridge import BridgedUpstream


class AroundUpstream:
    """Has the name and the settings of the upstream that it wraps; a subclass has `request`."""

    def __init__(self, upstream: BridgedUpstream) -> None:
        self._upstream = upstream

    @property
    def name(self) -> str:
        """Its name in the configuration."""
        return self._upstream.name

    @property
    def settings(self) -> UpstreamSettings:
        """Its part of the configuration."""
        return self._upstream.settings
