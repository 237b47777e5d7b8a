"""A tool's result as an HTTP answer: JSON with links in place of bytes, or several parts with the bytes themselves."""

import logging
import secrets
from collections.abc import Mapping
from typing import Any
from urllib.parse import quote

from starlette.requests import Request
from starlette.responses import Response

from gateway.content.links.base_url import BASE_SCOPE, answering_under
from gateway.content.links.links import Links
from gateway.content.store import ContentStore
from gateway.core.model import media_types
from gateway.core.model.base64_text import decoded, mend
from gateway.core.model.json_values import as_object, as_text, is_list, is_object
from gateway.errors import GatewayError
from gateway.upstream.transports.messages import write_fields

logger = logging.getLogger(__name__)

FAILED = 422
"""The status of a failed result: a client that repeats requests after a 5xx would run the tool again."""

_UNSAID = "application/octet-stream"
_OURS = frozenset({"_meta", "resultType", "ttlMs", "cacheScope"})
"""Members of results that concern MCP alone."""


class ResultWriter:
    """Writes the results of calls. Their media are kept in the store of whoever called."""

    def __init__(self, store: ContentStore, links: Links) -> None:
        self._store = store
        self._links = links

    async def write(self, result: Mapping[str, Any], request: Request, owner: str) -> Response:
        """Return the answer with a result: of several parts if the request accepts that, else JSON with links."""
        status = FAILED if result.get("isError") is True else 200
        parts: list[_Part] | None = [] if _takes_parts(request) else None
        body = {key: value for key, value in result.items() if key not in _OURS}
        blocks = result.get("content")
        with answering_under(request.scope.get(BASE_SCOPE)):
            body["content"] = [await self._block(one, owner, parts) for one in blocks] if is_list(blocks) else []
        written = write_fields(body)
        headers = {"cache-control": "no-store", "x-content-type-options": "nosniff"}
        if not parts:
            return Response(written, status, headers, "application/json")
        boundary = secrets.token_hex(16)
        return Response(_joined(written, parts, boundary), status, headers, f"multipart/mixed; boundary={boundary}")

    async def _block(self, block: Any, owner: str, parts: "list[_Part] | None") -> Any:
        if not is_object(block):
            return block
        kind = block.get("type")
        if kind in ("image", "audio") and isinstance(block.get("data"), str):
            return await self._replaced(block, "data", owner, parts)
        resource = as_object(block.get("resource"))
        if kind == "resource" and isinstance(resource.get("blob"), str):
            return {**block, "resource": await self._replaced(resource, "blob", owner, parts)}
        return block

    async def _replaced(
        self, holder: Mapping[str, Any], key: str, owner: str, parts: "list[_Part] | None"
    ) -> Mapping[str, Any]:
        """Replace the base64 in an object by where the bytes are. What cannot be kept stays as it is."""
        data = mend(str(holder[key])).data
        if data is None:
            return holder
        content = decoded(data)
        kind = media_types.inspect(content).media_type or as_text(holder.get("mimeType")) or _UNSAID
        name = as_text(holder.get("name")) or _last(as_text(holder.get("uri")))
        rest = {**{one: value for one, value in holder.items() if one != key}, "mimeType": kind, "size": len(content)}
        if parts is not None:
            parts.append(_Part(content, kind, name))
            return {**rest, "url": f"cid:part{len(parts)}"}
        try:
            stored = await self._store.put(content, owner=owner, media_type=kind, name=name)
        except GatewayError as error:
            logger.warning("content of a result is sent within it: %s", error)
            return {**rest, key: data}
        url = self._links.link(stored, owner)
        return {**rest, "handle": stored.handle, **({key: data} if url is None else {"url": url})}


class _Part:
    """A part of an answer: bytes, with their type and name."""

    def __init__(self, content: bytes, media_type: str, name: str | None) -> None:
        self.content = content
        self.media_type = media_type if media_type.isascii() and media_type.isprintable() else _UNSAID
        self.name = name


def _last(uri: str | None) -> str | None:
    return (uri or "").rpartition("/")[2] or None


def _takes_parts(request: Request) -> bool:
    accepted = ",".join(request.headers.getlist("accept")).lower()
    return any(kind.partition(";")[0].strip() in ("multipart/mixed", "multipart/*") for kind in accepted.split(","))


def _joined(body: bytes, parts: list[_Part], boundary: str) -> bytes:
    pieces = [b"--%b\r\ncontent-type: application/json\r\n\r\n%b\r\n" % (boundary.encode(), body)]
    for number, part in enumerate(parts, start=1):
        name = part.name or f"part{number}.{media_types.extension(part.media_type)}"
        named = quote(name.encode("utf-8", "replace"), safe="")
        head = (
            f"--{boundary}\r\ncontent-type: {part.media_type}\r\ncontent-id: <part{number}>\r\n"
            f"content-disposition: attachment; filename*=UTF-8''{named}\r\n\r\n"
        )
        pieces += [head.encode("ascii"), part.content, b"\r\n"]
    return b"".join([*pieces, b"--%b--\r\n" % boundary.encode()])
