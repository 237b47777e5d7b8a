"""Replace handles, data URIs and URLs in the arguments of a call by their content."""

from collections.abc import AsyncGenerator, AsyncIterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager, suppress
from typing import Any, Protocol

from gateway.config.content_settings import LimitSettings
from gateway.config.upstream_settings import UpstreamSettings
from gateway.content.arguments.content_lookup import ContentLookup
from gateway.content.arguments.files import TemporaryFiles
from gateway.content.links.content_linker import ContentLinker
from gateway.content.store import ContentStore
from gateway.core.fact_words import plain
from gateway.core.tools.arguments import (
    Content,
    Parameter,
    Place,
    PossibleForms,
    path_words,
    place_content,
    unmarked_handles,
    wanted_contents,
)
from gateway.core.tools.arguments.values import MOST_VALUES
from gateway.errors import ArgumentError, ContentError, FetchError

_MOST_LOOKED_UP = 5


class AFetched(Protocol):
    """Content while it is fetched."""

    @property
    def media_type(self) -> str: ...
    @property
    def name(self) -> str | None: ...
    @property
    def chunks(self) -> AsyncIterator[bytes]: ...


class Fetch(Protocol):
    """Fetches a URL, up to a number of bytes. Raises FetchError."""

    def __call__(self, url: str, *, max_bytes: int) -> AbstractAsyncContextManager[AFetched]: ...


def ways_of_giving(settings: UpstreamSettings, *, fetched: bool, links: bool) -> PossibleForms:
    """Return the forms in which an upstream may get content; `fetched` and `links` say what the gateway can do."""
    has_files = settings.command is not None
    return PossibleForms(handles=settings.accept != "none", fetched=fetched, links=links, files=has_files)


class Arguments:
    """Puts content into the arguments of calls.

    If `fetch` is None, URLs are left to the tools. If `links` is None, tools cannot be given URLs.
    """

    def __init__(
        self,
        store: ContentStore,
        limits: LimitSettings,
        files: TemporaryFiles,
        *,
        fetch: Fetch | None = None,
        links: ContentLinker | None = None,
    ) -> None:
        self._store = store
        self._limits = limits
        self._files = files
        self._fetch = fetch
        self._links = links

    def reconfigure(self, limits: LimitSettings) -> None:
        """Apply other limits from the next call on."""
        self._limits = limits

    def giving(self, settings: UpstreamSettings) -> PossibleForms:
        """Return the forms in which an upstream may get content."""
        links = self._links is not None and self._links.is_served
        return ways_of_giving(settings, fetched=self._fetch is not None, links=links)

    async def unmarked(
        self, arguments: object, parameters: Sequence[Parameter], *, owner: str
    ) -> tuple[tuple[str, str], ...]:
        """Return the places of an owner's handles that were passed on as text, where no parameter takes content.

        Each place is in words, with the handle. At most a few are looked up.
        """
        found: list[tuple[str, str]] = []
        for place, handle in unmarked_handles(arguments, parameters)[:_MOST_LOOKED_UP]:
            with suppress(ContentError):
                await self._store.metadata(handle, owner=owner)
                found.append((path_words(place), handle))
        return tuple(found)

    @asynccontextmanager
    async def resolved(
        self,
        arguments: Mapping[str, Any],
        parameters: Sequence[Parameter],
        *,
        owner: str,
        upstream: str,
        settings: UpstreamSettings,
    ) -> AsyncGenerator[Mapping[str, Any]]:
        """Provide the arguments as an upstream's tool wants them; see `given`."""
        accept = settings.accept
        async with self.given(arguments, parameters, owner=owner, upstream=upstream, accept=accept) as resolved:
            yield resolved

    @asynccontextmanager
    async def given(
        self,
        arguments: Mapping[str, Any],
        parameters: Sequence[Parameter],
        *,
        owner: str,
        upstream: str,
        accept: str,
    ) -> AsyncGenerator[Mapping[str, Any]]:
        """Provide the arguments as the tool wants them; the same object if nothing in them stands for content.

        Files that they name exist until the context exits. Content is never logged. With `accept` set to `own`,
        `upstream` gets no content that other upstreams returned.

        Raises, on entering:
            ArgumentError: content is missing, of the wrong kind, too large, or not permitted for this upstream. The
                message names the argument.
        """
        found = wanted_contents(arguments, parameters, fetched=self._fetch is not None)
        if not found:
            yield arguments
            return
        if len(found) > MOST_VALUES:
            raise ArgumentError(f"{len(found):,} values name content, and a call may have {MOST_VALUES:,}")
        async with AsyncExitStack() as stack:
            call = ContentLookup(
                self._store,
                self._limits,
                self._files,
                self._fetch,
                self._links,
                stack,
                owner,
                upstream,
                accept,
            )
            values: dict[Place, tuple[Parameter, Content]] = {}
            for each in found:
                try:
                    content = await call.content(each.reference, each.parameter)
                except (ContentError, FetchError, ArgumentError) as error:
                    where = plain(path_words(each.place), 200)
                    raise ArgumentError(f"{where}: {error.message}", remedy=error.remedy) from error
                if content is not None:
                    values[each.place] = (each.parameter, content)
            yield place_content(arguments, values)
