"""Signed links: each opens one piece of content for a limited time, for anyone who has the link.

<base>/content/<handle>?expires=<seconds since 1970>&signature=<text>

Nothing is stored for a link: the signature holds the owner in encrypted form, and a MAC over handle, time and owner.
It is built in the way of RFC 5297 from two keyed hashes: the MAC also serves as the nonce that encrypts the owner.
"""

import base64
import hashlib
import hmac
import logging
import math
import secrets
import time
from collections.abc import Callable
from pathlib import Path
from urllib.parse import quote, urlencode

from gateway.content.links.base_url import current_base
from gateway.content.store import Stored, handle_from
from gateway.errors import BadLink, ExpiredLink
from gateway.system.files import write_new_file

PATH = "/content"

_MAC_BYTES = 32
_KEY_BYTES = 32
_LONGEST = 2_000
_KEY_FILE = "content.key"

logger = logging.getLogger(__name__)


class Links:
    """Makes and checks links once the HTTP side runs (`serve_at`). `lifetime` is in seconds.

    Links begin with `public_url`. If that is None, they begin with the base URL under which the current request
    reached the gateway, else with the address that it listens on. `clock` returns seconds since 1970.
    """

    def __init__(
        self, lifetime: float, public_url: str | None = None, *, clock: Callable[[], float] = time.time
    ) -> None:
        self._lifetime = lifetime
        self._public_url = public_url.rstrip("/") if public_url else None
        self._clock = clock
        self._served_at: str | None = None
        self._mac_key = self._owner_key = b""

    def serve_at(self, base: str, key: bytes) -> None:
        """Make links to the HTTP side at `base`, signed with `key` (of any length)."""
        short = key if len(key) <= hashlib.blake2b.MAX_KEY_SIZE else hashlib.sha512(key).digest()
        self._mac_key = hashlib.blake2b(b"mac", key=short).digest()
        self._owner_key = hashlib.blake2b(b"owner", key=short).digest()
        self._served_at = base

    @property
    def is_served(self) -> bool:
        """Whether the HTTP side runs, so that links can be made."""
        return self._served_at is not None

    @property
    def base(self) -> str | None:
        """The address that links begin with; None if no HTTP side runs."""
        return None if self._served_at is None else self._public_url or current_base() or self._served_at

    def link(self, stored: Stored, owner: str) -> str | None:
        """Return a link to this content of `owner`; None if the gateway has no HTTP side.

        Links to the same content are identical for a quarter of their lifetime, and so are prompts that contain them.
        """
        if (base := self.base) is None:
            return None
        step = max(1, math.ceil(self._lifetime / 4))
        expires = math.ceil((self._clock() + self._lifetime) / step) * step
        query = urlencode({"expires": expires, "signature": self._signature(stored.handle, expires, owner)})
        return f"{base}{PATH}/{quote(stored.handle)}?{query}"

    def owner(self, handle: str, expires: str, signature: str) -> str:
        """Return the owner whose content a link opens.

        Raises:
            BadLink: the link was not made by this gateway.
            ExpiredLink: the link has expired.
        """
        if self._served_at is None:
            raise BadLink("the gateway has no HTTP side")
        plain = expires.isascii() and expires.isdigit() and len(expires) <= 15 and len(signature) <= _LONGEST
        until = int(expires) if plain else 0
        owner = self._opened(handle, until, signature if plain else "")
        if owner is None:
            raise BadLink("this link was not made by this gateway, or was changed")
        if until <= self._clock():
            raise ExpiredLink("this link has expired", remedy="ask for the content again")
        return owner

    def _signature(self, handle: str, expires: int, owner: str) -> str:
        name = owner.encode("utf-8", "surrogatepass")
        mac = self._mac(handle, expires, name)
        return base64.urlsafe_b64encode(mac + self._hidden(mac, name)).decode("ascii").rstrip("=")

    def _opened(self, handle: str, expires: int, signature: str) -> str | None:
        try:
            raw = base64.b64decode(signature + "=" * (-len(signature) % 4), altchars=b"-_", validate=True)
        except ValueError:
            raw = b""
        mac, hidden = raw[:_MAC_BYTES], raw[_MAC_BYTES:]
        name = self._hidden(mac, hidden)
        if not hmac.compare_digest(mac, self._mac(handle, expires, name)):
            return None
        return name.decode("utf-8", "surrogatepass")

    def _mac(self, handle: str, expires: int, name: bytes) -> bytes:
        # The owner comes last, after parts that contain no line feed: different links never sign the same bytes.
        signed = f"{handle_from(handle)}\n{expires}\n".encode("utf-8", "surrogatepass") + name
        return hmac.digest(self._mac_key, signed, "sha256")

    def _hidden(self, mac: bytes, name: bytes) -> bytes:
        """Encrypt or decrypt the owner's name; the operation is its own inverse."""
        blocks = (
            hashlib.blake2b(mac + at.to_bytes(4, "big"), key=self._owner_key).digest()
            for at in range(math.ceil(len(name) / hashlib.blake2b.MAX_DIGEST_SIZE))
        )
        return bytes(one ^ other for one, other in zip(name, b"".join(blocks), strict=False))


def is_link(method: str, path: str) -> bool:
    """Whether a request asks for content by a link, which takes the place of a token."""
    return method in ("GET", "HEAD") and path.startswith(f"{PATH}/")


def link_key(configured: str | None, folder: Path | None) -> bytes:
    """Return the configured key, else the one kept in the user's private folder, created if necessary.

    If no file can be kept (or there is no folder), the key and its links last as long as the process.
    """
    if configured is not None:
        return configured.encode()
    if folder is None:
        return secrets.token_bytes(_KEY_BYTES)
    try:
        return _kept_key(folder / _KEY_FILE)
    except OSError as error:
        logger.warning("links are valid until the gateway ends, since their key cannot be kept: %s", error)
        return secrets.token_bytes(_KEY_BYTES)


def _kept_key(path: Path) -> bytes:
    """Return the key in the file. The first of several gateways that start creates it, readable by its user only."""
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    for _ in range(2):
        try:
            key = path.read_bytes()
        except FileNotFoundError:
            write_new_file(path, secrets.token_bytes(_KEY_BYTES))  # unless another gateway is first
            continue
        if len(key) == _KEY_BYTES:
            return key
        raise OSError(f"{path} does not hold a key: remove it")
    raise OSError(f"{path} comes and goes")
