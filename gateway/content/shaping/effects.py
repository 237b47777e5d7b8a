"""Perform effects with the media workers, the content store, describers, host files and links."""

import logging
from collections.abc import Awaitable, Callable, Collection, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

import anyio

from gateway.content.links.content_linker import ContentLinker
from gateway.content.media.share import media_share
from gateway.core.model.base64_text import decoded
from gateway.core.model.effects import (
    Describe,
    Described,
    Effect,
    Failed,
    Keep,
    Kept,
    LinkRead,
    MediaEffect,
    MediaWork,
    Outcome,
    ReadLink,
    WriteFile,
    Written,
)
from gateway.core.model.json_values import is_dict, is_list
from gateway.errors import ContentError, GatewayError, MediaError

logger = logging.getLogger(__name__)

_LINK_SECONDS = 20.0
"""Maximum seconds to read one link."""


class ContentSink(Protocol):
    """The part of a content store that shaping needs."""

    async def put(
        self, content: bytes, *, owner: str, media_type: str, name: str | None = None, origin: str | None = None
    ) -> Any:
        """Store the content, and return an object with its `handle`."""
        ...


class MediaDescriber(Protocol):
    """Describes images and sound in words."""

    @property
    def kinds(self) -> Collection[str]:
        """The kinds of media that can be described: `image`, `audio`."""
        ...

    async def describe(self, content: bytes, media_type: str) -> Described:
        """Return the description. Raises MediaError."""
        ...


@dataclass(frozen=True)
class CallersTools:
    """Calls tools of upstreams in the sessions of one caller.

    `owner` is the same for all requests of one caller. `call` takes the upstream's name, the tool's own name and
    arguments, and returns the raw result; it raises GatewayError.
    """

    owner: str
    call: Callable[[str, str, Mapping[str, Any]], Awaitable[Mapping[str, Any]]]


class ToolDescriber(MediaDescriber, Protocol):
    """A `MediaDescriber` that may call tools, in the sessions of the caller that gets the result."""

    async def describe(self, content: bytes, media_type: str, tools: CallersTools | None = None) -> Described:
        """Return the description. Raises MediaError."""
        ...


@dataclass(frozen=True)
class DescriberFor:
    """A `MediaDescriber` for the results of one caller."""

    describer: ToolDescriber
    tools: CallersTools | None

    @property
    def kinds(self) -> Collection[str]:
        """The kinds of media that can be described."""
        return self.describer.kinds

    async def describe(self, content: bytes, media_type: str) -> Described:
        """Return the description. Raises MediaError."""
        if self.tools is None:
            return await self.describer.describe(content, media_type)
        return await self.describer.describe(content, media_type, self.tools)


class FileWriter(Protocol):
    """Writes content to files that a host may open."""

    async def write(
        self, content: bytes, media_type: str, name: str | None, folders: Callable[[], Awaitable[Collection[str]]]
    ) -> str:
        """Write a file and return its absolute path. `folders` returns the host's folders, and is called only if
        they are needed. Raises ContentError.
        """
        ...


ReadLinked = Callable[[str], Awaitable[Mapping[str, Any]]]
"""Reads a resource of the upstream that returned the result, and returns the raw result. Raises GatewayError."""


async def _no_folders() -> tuple[str, ...]:
    return ()


@dataclass(frozen=True)
class Reach:
    """Access to things outside the result being shaped: its links, its host's folders, and its caller's tools."""

    read: ReadLinked | None = None
    folders: Callable[[], Awaitable[Collection[str]]] = _no_folders
    tools: CallersTools | None = None


@dataclass(frozen=True)
class EffectRunner:
    """Performs effects for `owner`, to whom stored content belongs.

    Without `describer` or `files`, their effects fail, and shaping falls back. `links` makes links to stored content;
    `origin` is the upstream recorded as its source.
    """

    store: ContentSink
    media: MediaWork
    describer: MediaDescriber | None = None
    files: FileWriter | None = None
    links: ContentLinker | None = None
    reach: Reach = field(default_factory=Reach)
    origin: str | None = None
    owner: str = ""

    @property
    def describes(self) -> frozenset[str]:
        """The kinds of media that can be described."""
        return frozenset(self.describer.kinds) if self.describer is not None else frozenset()

    async def run(self, effect: Effect) -> Outcome:
        """Return the outcome of one effect; a `Failed` if it fails."""
        try:
            match effect:
                case MediaEffect():
                    return await self.media.run(effect)
                case Keep():
                    return await self._keep(effect)
                case ReadLink():
                    return await _read(effect, self.reach.read)
                case Describe():
                    return await self._describe(effect)
                case WriteFile():
                    return await self._write(effect)
        except (MediaError, ContentError) as error:
            logger.info("effect %s failed: %s", effect.key, error)
            return Failed(error.message)

    async def _keep(self, effect: Keep) -> Kept:
        data = effect.data
        content = data.encode("utf-8", "replace") if effect.is_text else decoded(data)
        kept = await self.store.put(
            content, owner=self.owner, media_type=effect.media_type, name=effect.name, origin=self.origin
        )
        return Kept(kept.handle, self.links.link(kept, self.owner) if self.links is not None else None)

    async def _describe(self, effect: Describe) -> Described | Failed:
        if self.describer is None:
            return Failed("nothing describes it")
        return await self.describer.describe(decoded(effect.data), effect.media_type)

    async def _write(self, effect: WriteFile) -> Written | Failed:
        if self.files is None:
            return Failed("no folder is allowed for files")
        content = decoded(effect.data)
        return Written(await self.files.write(content, effect.media_type, effect.name, self.reach.folders))


async def perform(effects: Mapping[str, Effect], runner: EffectRunner) -> dict[str, Outcome]:
    """Perform all effects of one round concurrently, and return their outcomes by key. Never raises for one."""
    outcomes: dict[str, Outcome] = {}

    async def one(key: str, effect: Effect) -> None:
        outcomes[key] = await runner.run(effect)

    with media_share(runner.owner):
        async with anyio.create_task_group() as tasks:
            for key, effect in effects.items():
                tasks.start_soon(one, key, effect)
    return outcomes


async def _read(effect: ReadLink, read: ReadLinked | None) -> LinkRead | Failed:
    if read is None:
        return Failed("links cannot be read here")
    result: Mapping[str, Any] | None = None
    with anyio.move_on_after(_LINK_SECONDS):
        try:
            result = await read(effect.uri)
        except GatewayError as error:
            logger.info("effect %s failed: %s", effect.key, error)
            return Failed(error.message)
    if result is None:
        return Failed(f"it was not read within {_LINK_SECONDS:g} s")
    contents: Any = result.get("contents")
    parts = tuple(contents) if is_list(contents) else ()
    size = sum(_blob_bytes(part) for part in parts)
    if size > effect.max_bytes:
        return Failed(f"it has {size:,} bytes, more than the {effect.max_bytes:,} allowed for a link")
    return LinkRead(parts)


def _blob_bytes(part: Any) -> int:
    blob: Any = part.get("blob") if is_dict(part) else None
    return len(blob) * 3 // 4 if isinstance(blob, str) else 0
