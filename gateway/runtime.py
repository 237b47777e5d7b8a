"""The composition root: the one place that builds the edges and wires them together."""

import os
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from gateway.config.comparing import Difference, compare, live_part
from gateway.config.finding import cache_folder
from gateway.config.schema import Settings

if TYPE_CHECKING:
    from gateway.core.model.caller import Caller
    from gateway.routing import Router
    from gateway.shaping.repairing import Repairer
    from gateway.store import MemoryStore
    from gateway.telemetry.media import CountedMedia
    from gateway.upstream import Upstreams


@dataclass
class Gateway:
    """A running gateway, which takes over other settings while it runs."""

    router: "Router"
    upstreams: "Upstreams"
    settings: Settings
    """Those in force."""
    _store: "MemoryStore"
    _media: "CountedMedia"

    def repairer(self) -> "Repairer":
        """What repairs requests to model APIs, over the same store: handles that hosts were given are known to it."""
        from gateway.shaping.repairing import RememberingFitter, Repairer

        return Repairer(self._store, RememberingFitter(self._media), self.settings.model_proxy.history)

    def apply(self, settings: Settings) -> Difference:
        """Take over what can be taken over of other settings, at once and as a whole; says what they change.

        Raises, with everything as it was:
            ConfigError: [gateway] profile does not exist, or a user's profile has the name of a built-in one.
            ProfileError: a profile does not hold together.
        """
        from gateway.config.builtin_profiles import load_profiles
        from gateway.shaping import Shaper

        profiles = load_profiles(settings)
        difference = compare(self.settings, settings)
        self.settings = live_part(self.settings, settings)
        self._store.resize(self.settings.store)
        shaper = Shaper(self._store, self._media, max_blocks=self.settings.limits.blocks)
        self.upstreams.apply(self.settings.upstreams)
        self.router.reconfigure(self.settings, profiles, shaper)
        return difference


@asynccontextmanager
async def open_gateway(settings: Settings, *, profile: str | None = None) -> "AsyncGenerator[Router]":
    """The router of a running gateway, for whoever only asks it; see `run_gateway`."""
    async with run_gateway(settings, profile=profile) as gateway:
        yield gateway.router


@asynccontextmanager
async def run_gateway(
    settings: Settings, *, profile: str | None = None, expected: "Callable[[], Caller | None] | None" = None
) -> AsyncGenerator[Gateway]:
    """A running gateway: its upstreams are connecting in the background, and its router answers at once.

    `profile` is the one for every host that does not choose one itself; it wins over `[gateway] profile`.
    `expected` says which host will be the only one, as soon as that is known: upstreams are opened for it. Leaving ends
    every process and connection that was opened.

    Raises:
        ConfigError: [gateway] profile does not exist.
        ProfileError: `profile` does not exist, or a profile does not hold together.
    """
    # Everything heavy is imported here, so that a command that needs no gateway does not pay for it.
    from gateway.bridging.bridge import open_bridge
    from gateway.builtin import Builtin
    from gateway.config.builtin_profiles import load_profiles
    from gateway.core.matching import find
    from gateway.media import MediaWorkers
    from gateway.routing import Router
    from gateway.shaping import Shaper
    from gateway.store import MemoryStore
    from gateway.telemetry import Telemetry
    from gateway.telemetry.media import CountedMedia
    from gateway.upstream import Catalogues, Upstreams, nobody

    profiles = load_profiles(settings)
    if profile is not None:
        find(profiles, profile)

    async def read_resource(uri: str) -> dict[str, Any]:
        return await router.read_upstream_resource(uri)

    def changed(upstream: str, kind: str) -> None:
        router.upstream_changed(upstream, kind)

    raised: Exception | None = None
    store = MemoryStore(settings.store)
    cache = cache_folder(os.environ)
    catalogues = Catalogues(cache / "catalogues") if cache is not None else None
    upstreams = Upstreams(settings.upstreams, on_change=changed, catalogues=catalogues, expected=expected or nobody)
    telemetry = Telemetry(content=settings.logging.content)
    telemetry.metrics.upstreams = upstreams
    telemetry.metrics.store = lambda: store.usage
    async with MediaWorkers(settings.media) as media, open_bridge() as bridge:
        counted = CountedMedia(media, telemetry.metrics)
        shaper = Shaper(store, counted, max_blocks=settings.limits.blocks)
        builtin = Builtin(store, counted, read_resource)
        router = Router(upstreams, builtin, shaper, profiles, settings, profile, telemetry, bridge)
        async with upstreams:
            try:
                yield Gateway(router, upstreams, settings, store, counted)
            except Exception as error:
                # Raised below, once all is closed: the task groups here would wrap it in groups of their own.
                raised = error
    if raised is not None:
        raise raised
