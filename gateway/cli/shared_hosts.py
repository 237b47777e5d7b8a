"""The hosts on stdio that attach to a gateway (`serve --shared`), whatever else it serves."""

import os
from collections.abc import AsyncGenerator, Collection
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

from gateway.cli.controlled_gateway import Start
from gateway.config.schema import Settings
from gateway.config.shared_settings import SharedSettings
from gateway.runtime import Gateway
from gateway.serving.control.status_report import Serving

if TYPE_CHECKING:
    from gateway.serving.shared.attached_hosts import AttachedHosts


class HostsBeside:
    """The hosts that can attach to a gateway, whatever else it serves."""

    def __init__(self, key: str, serving: Serving, settings: Settings) -> None:
        from gateway.serving.shared.attached_hosts import AttachedHosts

        self._settings = settings
        self._gateway: Gateway | None = None
        self.hosts: AttachedHosts = AttachedHosts(key, self._shared_settings, self._profile_names, self._toolset_names)
        serving.shared = self.hosts
        serving.transports.append("stdio, shared")

    @classmethod
    def of(cls, start: Start, serving: Serving) -> "HostsBeside":
        """Return those of a gateway with a configuration file."""
        from gateway.serving.shared.attach import shared_key

        assert start.path is not None
        return cls(shared_key(start.path, os.environ), serving, start.settings)

    @asynccontextmanager
    async def attached(self, gateway: Gateway) -> "AsyncGenerator[AttachedHosts]":
        """Context manager in which hosts of this gateway can be served (`AttachedHosts.open`)."""
        self._gateway = gateway
        try:
            yield self.hosts
        finally:
            await self.hosts.close()

    def _shared_settings(self) -> SharedSettings:
        return (self._settings if self._gateway is None else self._gateway.settings).shared

    def _profile_names(self) -> Collection[str]:
        return () if self._gateway is None else self._gateway.router.profile_names

    def _toolset_names(self) -> Collection[str]:
        return (self._settings if self._gateway is None else self._gateway.settings).toolsets
