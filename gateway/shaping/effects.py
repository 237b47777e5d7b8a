"""Performing effects: images go to the media workers, content that is to be kept to the store."""

import logging
from collections.abc import Mapping
from typing import Any, Protocol

import anyio
import pybase64

from gateway.core.model.effects import Crop, Effect, Failed, FitImage, Fitted, ImageTarget, Keep, Kept, Outcome
from gateway.errors import ContentError, MediaError

logger = logging.getLogger(__name__)


class ImageFitter(Protocol):
    """What shaping needs of `gateway.media`."""

    async def fit_image(
        self, content: bytes, media_type: str, target: ImageTarget, crop: Crop | None = None
    ) -> Fitted: ...


class Keeper(Protocol):
    """What shaping needs of a store."""

    async def put(self, content: bytes, *, owner: str, media_type: str, name: str | None = None) -> Any:
        """Keep the content; what is returned has its `handle`."""
        ...


async def perform(effects: Mapping[str, Effect], store: Keeper, media: ImageFitter, owner: str) -> dict[str, Outcome]:
    """The outcomes of all effects of one round, performed side by side, under the same keys. Never raises for one."""
    outcomes: dict[str, Outcome] = {}

    async def one(key: str, effect: Effect) -> None:
        outcomes[key] = await _outcome(effect, store, media, owner)

    async with anyio.create_task_group() as tasks:
        for key, effect in effects.items():
            tasks.start_soon(one, key, effect)
    return outcomes


async def _outcome(effect: Effect, store: Keeper, media: ImageFitter, owner: str) -> Outcome:
    try:
        match effect:
            case FitImage():
                return await media.fit_image(pybase64.b64decode(effect.data), effect.media_type, effect.target)
            case Keep():
                data = effect.data
                content = data.encode("utf-8", "replace") if effect.is_text else pybase64.b64decode(data)
                kept = await store.put(content, owner=owner, media_type=effect.media_type, name=effect.name)
                return Kept(kept.handle)
    except (MediaError, ContentError) as error:
        logger.info("effect %s failed: %s", effect.key, error)
        return Failed(error.message)
