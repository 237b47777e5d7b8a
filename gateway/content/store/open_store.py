"""Open the configured store, and tidy it regularly while it is open."""

import logging
import time
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Protocol

import anyio
from pydantic import ValidationError

from gateway.config.store_settings import StoreSettings
from gateway.content.store.content import ContentStore
from gateway.content.store.memory import MemoryStore
from gateway.errors import ConfigError, StoreUnavailable
from gateway.system.background_tasks import background_tasks

if TYPE_CHECKING:
    from gateway.content.store.objects import ObjectStore

TIDY_SECONDS = 300.0
"""The interval between two runs of `tidy`."""

logger = logging.getLogger(__name__)


class KeptStore(ContentStore, Protocol):
    """A content store with limits, as the gateway uses it."""

    @property
    def where(self) -> str:
        """The store's URL without its secrets."""
        ...

    @property
    def usage(self) -> tuple[int, int]:
        """The number of bytes and the number of pieces stored."""
        ...

    async def holds(self, owner: str) -> bool:
        """Return whether anything is kept for this owner. Raises StoreUnavailable."""
        ...

    def resize(self, settings: StoreSettings) -> None:
        """Apply other limits from now on; the store's location stays."""
        ...


def make_store(settings: StoreSettings, *, clock: Callable[[], float] = time.time) -> "MemoryStore | ObjectStore":
    """Return the store that `settings.url` names. It is opened on first use."""
    if settings.url.startswith("memory:"):
        return MemoryStore(settings, clock=clock)
    from gateway.content.store.objects import ObjectStore  # here, because most gateways need no more than memory

    return ObjectStore(settings, clock=clock)


@asynccontextmanager
async def open_store(place: StoreSettings | str | None = None) -> AsyncGenerator[KeptStore]:
    """Open the store at `place`, and tidy it regularly while the context is open. Failures to tidy it are logged.

    `place` is a URL as in `[store] url` (`memory://`, `file:///folder`, `s3://bucket/prefix?region=...`, `gs://...`,
    `az://...`), or the complete settings; None means memory.

    Raises:
        ConfigError: the URL does not name a store.
    """
    store = make_store(place if isinstance(place, StoreSettings) else _settings(place))
    if isinstance(store, MemoryStore):
        yield store
        return
    try:
        async with background_tasks() as tasks:
            tasks.start_soon(_keep_tidy, store)
            yield store
    finally:
        await store.close()


def _settings(url: str | None) -> StoreSettings:
    if url is None:
        return StoreSettings()
    try:
        return StoreSettings(url=url)
    except ValidationError as error:
        why = error.errors(include_url=False, include_input=False)[0]["msg"].removeprefix("Value error, ")
        raise ConfigError(why, where="the store's url", remedy="see docs/stores.md") from None


async def _keep_tidy(store: "ObjectStore") -> None:
    said: str | None = None
    while True:
        try:
            await store.tidy()
            said = None
        except StoreUnavailable as error:
            if str(error) != said:
                logger.warning("%s", error)
            said = str(error)
        await anyio.sleep(TIDY_SECONDS)
