"""The composition root: the one place that builds the edges and wires them together."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

from gateway.config.schema import Settings

if TYPE_CHECKING:
    from gateway.routing import Router


@asynccontextmanager
async def open_gateway(settings: Settings, *, profile: str | None = None) -> "AsyncGenerator[Router]":
    """A running gateway: its upstreams are connecting in the background, and its router answers at once.

    `profile` is the one for every host that does not choose one itself; it wins over `[gateway] profile`. Leaving ends
    every process and connection that was opened.

    Raises:
        ConfigError: [gateway] profile does not exist.
        ProfileError: `profile` does not exist, or a profile does not hold together.
    """
    # Everything heavy is imported here, so that a command that needs no gateway does not pay for it.
    from gateway.builtin import Builtin
    from gateway.config.builtin_profiles import load_profiles
    from gateway.core.matching import find
    from gateway.media import MediaWorkers
    from gateway.routing import Router
    from gateway.shaping import Shaper
    from gateway.store import MemoryStore
    from gateway.upstream import Upstreams

    profiles = load_profiles(settings)
    if profile is not None:
        find(profiles, profile)

    async def read_resource(uri: str) -> dict[str, Any]:
        return await router.read_upstream_resource(uri)

    def changed(upstream: str, kind: str) -> None:
        router.upstream_changed(upstream, kind)

    raised: Exception | None = None
    store = MemoryStore(settings.store)
    upstreams = Upstreams(settings.upstreams, on_change=changed)
    async with MediaWorkers(settings.media) as media:
        shaper = Shaper(store, media, max_blocks=settings.limits.blocks)
        builtin = Builtin(store, media, read_resource)
        router = Router(upstreams, builtin, shaper, profiles, settings, profile)
        async with upstreams:
            try:
                yield router
            except Exception as error:
                # Raised below, once all is closed: the task groups here would wrap it in groups of their own.
                raised = error
    if raised is not None:
        raise raised
