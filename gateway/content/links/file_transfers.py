"""File transfer beside the protocol: a host asks where to send a file, or where to fetch one, and names it by a URI.

Built to SEP-2631 at 8799c5c1 (2026-06-16), https://github.com/modelcontextprotocol/modelcontextprotocol/pull/2631.
What is sent is stored as content of the principal that has asked; what it may fetch is its own, by a signed link.

    mcp-file://gateway/up_<text>    a file that is being sent, and then the content that it has become
    mcp-file://gateway/<handle>     content

A place to send to is a secret, works once and for a few minutes, and takes only what was announced.
"""

import base64
import re
import secrets
import time
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any
from urllib.parse import parse_qs, urlsplit

from gateway.content.fetch import clean_name
from gateway.content.links.links import Links
from gateway.content.store import ContentStore, Stored
from gateway.core.model.json_values import as_object, is_dict, is_list
from gateway.core.model.media_types import normalise
from gateway.errors import ExpiredHandle, FileRefused, UnknownHandle
from gateway.system.loopback import is_loopback

METHODS = frozenset({"files/authorizeUpload", "files/authorizeDownload"})
UPLOADS = "/files"
"""The path below which files are sent."""

_SCHEME = "mcp-file://gateway/"
_UPLOAD = "up_"
_SECONDS = 900
"""How long a place to send a file to can be used."""
_KEPT_SECONDS = 86_400
_MOST = 2_000
_MOST_OF_ONE = 100
_MOST_DIGITS = 64
_MEDIA_TYPE = re.compile(r"[A-Za-z0-9!#$&^_.+-]{1,100}/[A-Za-z0-9!#$&^_.+-]{1,100}(?:;[^\r\n]{0,200})?")


@dataclass
class AnnouncedFile:
    """A file that a host is going to send: `sha256` in hex, `size` in bytes; None for what it has not said."""

    uri: str
    owner: str
    name: str | None
    media_type: str | None
    size: int | None
    sha256: str | None
    until: float
    is_sending: bool = False
    handle: str | None = None
    """The content that it has become."""


class FileTransfers:
    """The files that hosts of this process are sending. `max_bytes` is the size of the largest that is taken.

    `clock` returns seconds since 1970.
    """

    def __init__(
        self, store: ContentStore, links: Links, max_bytes: int, *, clock: Callable[[], float] = time.time
    ) -> None:
        self.methods = METHODS
        self._store = store
        self._links = links
        self.max_bytes = max_bytes
        self._clock = clock
        self._by_secret: OrderedDict[str, AnnouncedFile] = OrderedDict()
        self._by_uri: dict[str, AnnouncedFile] = {}

    async def answer(self, method: str, params: Mapping[str, Any], owner: str) -> dict[str, Any]:
        """Return the result of one of `METHODS`.

        Raises:
            FileRefused: it is malformed, too large, unknown, or too many files are awaited.
            StoreUnavailable: the store cannot be asked.
        """
        if method == "files/authorizeUpload":
            return self._upload(params, owner)
        return await self._download(params.get("uri"), owner)

    def announced(self, secret: str) -> AnnouncedFile | None:
        """Return the file that is to be sent to this place; None if there is no such place any more."""
        file = self._by_secret.get(secret)
        return file if file is not None and file.handle is None and self._clock() < file.until else None

    def with_handles(self, arguments: Any, owner: str) -> Any:
        """Return the arguments of a call with handles in place of file URIs; the same object if there are none.

        Raises:
            FileRefused: a URI is not one of this owner's, or its file has not been sent.
        """
        if isinstance(arguments, str):
            return self._handle(arguments, owner) if arguments.startswith(_SCHEME) else arguments
        if is_list(arguments):
            items = [self.with_handles(each, owner) for each in arguments]
            return arguments if all(new is old for new, old in zip(items, arguments, strict=True)) else items
        if is_dict(arguments):
            members = {key: self.with_handles(each, owner) for key, each in arguments.items()}
            return arguments if all(members[key] is arguments[key] for key in members) else members
        return arguments

    async def blocks(self, handles: Sequence[str], owner: str) -> list[dict[str, Any]]:
        """Return blocks of type `file` for content of this owner, without what is no longer there."""
        found: list[dict[str, Any]] = []
        for handle in dict.fromkeys(handles):
            try:
                stored = await self._store.metadata(handle, owner=owner)
            except (UnknownHandle, ExpiredHandle):
                continue
            found.append({"type": "file", "file": _file_value(f"{_SCHEME}{stored.handle}", stored)})
        return found

    def _upload(self, params: Mapping[str, Any], owner: str) -> dict[str, Any]:
        base = self._base()
        size, media_type = params.get("size"), params.get("mimeType")
        if size is not None and (not isinstance(size, int) or isinstance(size, bool) or size < 0):
            raise FileRefused("size must be a number of bytes", data={"reason": "invalidSize"})
        if size is not None and size > self.max_bytes:
            told = {"reason": "maxSizeExceeded", "maxSize": self.max_bytes, "actualSize": size}
            raise FileRefused(f"the file has {size:,} bytes, and may have {self.max_bytes:,}", data=told)
        if media_type is not None and not (isinstance(media_type, str) and _MEDIA_TYPE.fullmatch(media_type)):
            raise FileRefused("mimeType must be a media type", data={"reason": "invalidMimeType"})
        known = normalise(media_type)
        name = params.get("name")
        sha256 = _hex_of(params.get("digest"))
        until = self._clock() + _SECONDS
        uri = f"{_SCHEME}{_UPLOAD}{secrets.token_urlsafe(16)}"
        self._make_room(owner)
        secret = secrets.token_urlsafe(32)
        file = AnnouncedFile(
            uri, owner, clean_name(name) if isinstance(name, str) else None, known, size, sha256, until
        )
        self._by_secret[secret] = self._by_uri[uri] = file
        digest = None if sha256 is None else _digest(sha256)
        told = {"name": file.name, "mimeType": known, "size": size, "digest": digest}
        return {
            "file": {"uri": uri, **{key: value for key, value in told.items() if value is not None}},
            "upload": {
                "transport": "https",
                "method": "POST",
                "url": f"{base}{UPLOADS}/{secret}",
                "headers": {"Content-Type": known or "application/octet-stream"},
                "expiresAt": _moment(until),
            },
        }

    async def _download(self, uri: object, owner: str) -> dict[str, Any]:
        self._base()
        if not isinstance(uri, str) or not uri.startswith(_SCHEME):
            raise FileRefused(f"uri must be a file's, {_SCHEME}...", data={"reason": "invalidUri"})
        try:
            stored = await self._store.metadata(self._handle(uri, owner), owner=owner)
        except (UnknownHandle, ExpiredHandle):
            raise _unknown() from None
        link = self._links.link(stored, owner)
        if link is None:
            raise FileRefused("this gateway has no HTTP side", data={"reason": "unavailable"})
        expires = parse_qs(urlsplit(link).query)["expires"][0]
        download = {"transport": "https", "method": "GET", "url": link, "expiresAt": _moment(int(expires))}
        return {"file": _file_value(uri, stored), "download": download}

    def _handle(self, uri: str, owner: str) -> str:
        named = uri.removeprefix(_SCHEME)
        if not named.startswith(_UPLOAD):
            return named
        file = self._by_uri.get(uri)
        if file is None or file.owner != owner:
            raise _unknown()
        if file.handle is None:
            raise FileRefused("the file has not been sent yet", data={"reason": "notUploaded"})
        return file.handle

    def _base(self) -> str:
        """Return the address that links begin with. Raises FileRefused if bytes could be read on the way."""
        base = self._links.base
        parts = urlsplit(base or "")
        if base is None or not (parts.scheme == "https" or is_loopback(parts.hostname or "")):
            raise FileRefused(
                "files are sent and fetched over HTTPS only",
                remedy="see gateway.public_url",
                data={"reason": "insecureTransport"},
            )
        return base

    def _make_room(self, owner: str) -> None:
        """Forget what is over. Raises FileRefused if too many files are awaited."""
        now = self._clock()
        for secret, file in list(self._by_secret.items()):
            if not file.is_sending and now > file.until + (_KEPT_SECONDS if file.handle is not None else 0):
                del self._by_secret[secret], self._by_uri[file.uri]
        sent = [secret for secret, file in self._by_secret.items() if file.handle is not None]
        if len(self._by_secret) >= _MOST and sent:
            del self._by_uri[self._by_secret.pop(sent[0]).uri]
        waiting = [file for file in self._by_secret.values() if file.handle is None]
        if len(waiting) >= _MOST or sum(file.owner == owner for file in waiting) >= _MOST_OF_ONE:
            raise FileRefused("too many files are awaited", remedy="send those first", data={"reason": "tooMany"})


def _unknown() -> FileRefused:
    return FileRefused("there is no such file, or it is gone", data={"reason": "unknownFile"})


def _file_value(uri: str, stored: Stored) -> dict[str, Any]:
    named = {} if stored.name is None else {"name": stored.name}
    return {"uri": uri, **named, "mimeType": stored.media_type, "size": stored.size, "digest": _digest(stored.sha256)}


def _digest(sha256: str) -> dict[str, str]:
    value = base64.urlsafe_b64encode(bytes.fromhex(sha256)).decode("ascii").rstrip("=")
    return {"algorithm": "sha-256", "value": value}


def _hex_of(digest: object) -> str | None:
    """Return a digest as hex. Raises FileRefused for one that cannot be checked."""
    if digest is None:
        return None
    told = as_object(digest)
    value = told.get("value")
    if told.get("algorithm") == "sha-256" and isinstance(value, str) and len(value) <= _MOST_DIGITS:
        try:
            found = base64.b64decode(value + "=" * (-len(value) % 4), altchars=b"-_", validate=True)
        except ValueError:
            found = b""
        if len(found) == 32:
            return found.hex()
    supported = {"reason": "invalidDigest", "supported": ["sha-256"]}
    raise FileRefused("digest must be a sha-256 in base64url", data=supported)


def _moment(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
