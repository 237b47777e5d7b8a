"""The store that the configuration names, kept in order while it is open."""

import logging
import time
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Protocol

import anyio
from pydantic import ValidationError

from gateway.config.schema import StoreSettings
from gateway.content.store.content import ContentStore
from gateway.content.store.memory import MemoryStore
from gateway.errors import ConfigError, StoreUnavailable
from gateway.system.background_tasks import background_tasks

if TYPE_CHECKING:
    from gateway.content.store.objects import ObjectStore

TIDY_SECONDS = 300.0
"""Between two looks at everything that is kept."""

logger = logging.getLogger(__name__)


class KeptStore(ContentStore, Protocol):
    """A store with bounds, as the gateway runs it."""

    @property
    def where(self) -> str:
        """Its url, as people may see it."""
        ...

    @property
    def usage(self) -> tuple[int, int]:
        """What is kept: bytes, and how many pieces they are."""
        ...

    def resize(self, settings: StoreSettings) -> None:
        """Keep to other bounds from now on; its place stays."""
        ...


def make_store(settings: StoreSettings, *, clock: Callable[[], float] = time.time) -> "MemoryStore | ObjectStore":
    """The store that `settings.url` names. Nothing is opened before its first use."""
    if settings.url.startswith("memory:"):
        return MemoryStore(settings, clock=clock)
    from gateway.content.store.objects import ObjectStore  # here, because most gateways need no more than memory

    return ObjectStore(settings, clock=clock)


@asynccontextmanager
async def open_store(place: StoreSettings | str | None = None) -> AsyncGenerator[KeptStore]:
    """The store at a place, tidied from time to time as long as this is open. One that is down costs a line in the log.

    `place` is a url as in `[store] url` (`memory://`, `file:///folder`, `s3://bucket/prefix?region=...`, `gs://...`,
    `az://...`), or the whole settings; None: memory.

    Raises:
        ConfigError: the url names no store.
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
