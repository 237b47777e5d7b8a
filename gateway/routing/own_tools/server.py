"""The gateway as an upstream of its own: its tools, and stored content as resources."""

import logging
from collections.abc import Mapping
from typing import Any, cast

import pybase64

from gateway.content.store import ContentStore, Stored, fetch_bytes
from gateway.core.fact_words import plain
from gateway.core.model import media_types
from gateway.core.model.effects import MediaWork
from gateway.core.model.wire import text_result
from gateway.core.own_names import PUT_TOOL, VIEW_TOOL
from gateway.core.profiles.profile import Profile
from gateway.core.tools.catalogue import OWN
from gateway.core.wording import failure_text
from gateway.errors import (
    ExpiredHandle,
    GatewayError,
    InvalidRequest,
    StoreUnavailable,
    UnknownHandle,
    UnknownMethod,
    UnknownResource,
    UnknownTool,
)
from gateway.routing.own_tools.arguments import refuse_unknown
from gateway.routing.own_tools.declarations import TOOLS
from gateway.routing.own_tools.directory import DIRECTORY_URI, PROMPTS, RESOURCE, directory_prompt, read_directory
from gateway.routing.own_tools.gateway_put import PutTool
from gateway.routing.own_tools.gateway_read import MOST_BYTES, Sources, is_text, read
from gateway.routing.own_tools.gateway_view import view
from gateway.routing.ports import ReadResource

logger = logging.getLogger(__name__)

_LONGEST_MESSAGE = 1_000
_SHOWS_ALL = Profile(name="passthrough")


class OwnToolsServer:
    """An in-process upstream, asked like any other, but also given the owner of the content and the host's profile."""

    name = OWN

    def __init__(
        self,
        store: ContentStore,
        media: MediaWork,
        put_tool: PutTool | None = None,
    ) -> None:
        self._put_tool = put_tool
        self._tools = TOOLS if put_tool is None else (*TOOLS, put_tool.declaration())
        self._store = store
        self._media = media

    def tools(self) -> tuple[dict[str, Any], ...]:
        """The tools `gateway_view`, `gateway_read` and `gateway_put`, as raw wire JSON."""
        return self._tools

    async def resources(self, *, owner: str) -> tuple[dict[str, Any], ...]:
        """The owner's stored content as resources, a directory of it first, as raw wire JSON."""
        try:
            kept = await self._store.list(owner=owner)
        except StoreUnavailable as error:  # the other upstreams' resources must still be listed
            logger.warning("stored content is not listed: %s", error)
            return ()
        return (RESOURCE, *map(_resource, kept)) if kept else ()

    def prompts(self) -> tuple[dict[str, Any], ...]:
        """The prompt `gateway_content`, as raw wire JSON."""
        return PROMPTS

    async def request(
        self,
        method: str,
        params: Mapping[str, Any],
        *,
        owner: str,
        profile: Profile = _SHOWS_ALL,
        read: ReadResource | None = None,
    ) -> dict[str, Any]:
        """Return the raw result of `tools/call`, `resources/read` or `prompts/get`.

        `read` reads resources of upstreams for the caller. A tool that fails returns a result with `isError`, in words
        that a model can act on.

        Raises:
            UnknownMethod, UnknownTool: the method or tool does not exist.
            UnknownResource: no content of this owner has the uri.
        """
        match method:
            case "tools/call":
                return await self._call(params, owner, profile, read or _nobodys)
            case "prompts/get":
                return await directory_prompt(params.get("name"), self._store, owner=owner)
            case "resources/read" if params.get("uri") == DIRECTORY_URI:
                return await read_directory(self._store, owner=owner)
            case "resources/read":
                return await self._read(str(params.get("uri", "")), owner)
            case _:
                raise UnknownMethod(f"the gateway's own tools do not serve {plain(method, 100)}")

    async def _call(
        self, params: Mapping[str, Any], owner: str, profile: Profile, read_resource: ReadResource
    ) -> dict[str, Any]:
        name, given = params.get("name"), params.get("arguments")
        tool = next((tool for tool in self._tools if tool["name"] == name), None)
        if tool is None:
            raise UnknownTool(f"the gateway has no tool named {plain(str(name), 100)!r}")
        try:
            if given is not None and not isinstance(given, Mapping):
                raise InvalidRequest("arguments must be an object")
            arguments = cast("Mapping[str, Any]", given or {})
            if name == PUT_TOOL and self._put_tool is not None:
                viewable = profile.image.show == "native" and profile.tools.helpers
                return await self._put_tool.put(arguments, owner=owner, viewable=viewable)
            refuse_unknown(arguments, tool)
            if name == VIEW_TOOL:
                return {"content": await view(arguments, self._store, self._media, profile, owner=owner)}
            sources = Sources(self._store, self._media, read_resource)
            return {"content": await read(arguments, sources, profile, owner=owner)}
        except GatewayError as error:
            words = failure_text(plain(error.message, _LONGEST_MESSAGE), error.remedy)
            return text_result(words, is_error=True)

    async def _read(self, uri: str, owner: str) -> dict[str, Any]:
        try:
            stored = await self._store.metadata(uri, owner=owner)
            content = await fetch_bytes(self._store, uri, owner=owner, limit=MOST_BYTES)
        except (UnknownHandle, ExpiredHandle) as error:
            raise UnknownResource(f"{plain(uri)}: {error.message}", uri=uri, remedy=error.remedy) from error
        return {"contents": [{"uri": uri, "mimeType": stored.media_type, **_value(stored, content)}]}


async def _nobodys(uri: str) -> Mapping[str, Any]:
    raise UnknownResource(f"no upstream can be asked for {plain(uri)}", uri=uri)


def _value(stored: Stored, content: bytes) -> dict[str, str]:
    if is_text(stored.media_type):
        try:
            return {"text": content.decode()}
        except UnicodeDecodeError:
            pass  # Content that is not UTF-8 is sent as bytes, so that none are lost.
    return {"blob": pybase64.b64encode_as_string(content)}


def _resource(stored: Stored) -> dict[str, Any]:
    name = stored.name or f"{stored.handle}.{media_types.extension(stored.media_type)}"
    return {"uri": stored.uri, "name": name, "mimeType": stored.media_type, "size": stored.size}
