"""Make descriptions once for equal content, with limits on concurrency, time and length."""

import hashlib
from collections import OrderedDict
from collections.abc import Awaitable, Callable

import anyio

from gateway.config.describe_settings import DescribeSettings
from gateway.content.describe.tools import ToolCaller
from gateway.core.model.effects import Described
from gateway.core.model.texts import cut
from gateway.errors import MediaError

Describe = Callable[[bytes, str, ToolCaller | None], Awaitable[str]]
"""Describes content of a media type, with the tools of the caller that wants it. Raises MediaError."""

_Key = tuple[bytes, str, str | None]


class Describer:
    """Describes content with the function `describe`; models are told that the description is by `by`.

    With `by_caller`, descriptions may depend on the caller's session, so callers do not share them.
    """

    def __init__(self, describe: Describe, by: str, settings: DescribeSettings, *, by_caller: bool = False) -> None:
        self._describe = describe
        self._by = by
        self._by_caller = by_caller
        self._settings = settings
        self._known: OrderedDict[_Key, Described] = OrderedDict()
        self._in_work: dict[_Key, anyio.Event] = {}
        self._places = anyio.CapacityLimiter(settings.at_once)

    @property
    def kinds(self) -> tuple[str, ...]:
        """The kinds of media that are described: `image`, `audio`."""
        return self._settings.kinds

    async def describe(self, content: bytes, media_type: str, tools: ToolCaller | None = None) -> Described:
        """Describe content for the caller of `tools`. Descriptions are remembered; failures are tried again next time.

        Raises:
            MediaError: there was no description, or not in time.
        """
        whose = tools.owner if self._by_caller and tools is not None else None
        key = (hashlib.sha256(content).digest(), media_type, whose)
        while (at_work := self._in_work.get(key)) is not None:
            await at_work.wait()
        if known := self._known.get(key):
            self._known.move_to_end(key)
            return known
        self._in_work[key] = anyio.Event()
        try:
            described = Described(await self._words(content, media_type, tools), self._by)
        finally:
            self._in_work.pop(key).set()
        self._known[key] = described
        while len(self._known) > self._settings.remembered:
            self._known.popitem(last=False)
        return described

    async def _words(self, content: bytes, media_type: str, tools: ToolCaller | None) -> str:
        said: str | None = None
        async with self._places:
            with anyio.move_on_after(self._settings.timeout):
                said = await self._describe(content, media_type, tools)
        if said is None:
            raise MediaError(f"{self._by} took longer than {self._settings.timeout:g} s", remedy="see describe.timeout")
        if not said.strip():
            raise MediaError(f"{self._by} returned no description")
        return cut(said.strip(), self._settings.max_chars)
