"""Handles: their format, how to make them, and how to read one that a model has copied.

img_7h3k2m9q4w8x     the kind, and an id: 60 bits of a keyed hash in Crockford's base32 (no i, l, o, u)
"""

import hashlib
import re

from gateway.core.model.kinds import kind_of
from gateway.core.model.media_types import family

URI_SCHEME = "content://"
KEY_BYTES = 32

_ALPHABET = "0123456789abcdefghjkmnpqrstvwxyz"
_ID_LENGTH = 12
_PREFIXES = {"image": "img", "audio": "aud", "video": "vid", "document": "doc", "3d": "mod", "cad": "cad"}
_LOOKALIKES = str.maketrans("ilo", "110")
_SHAPE = re.compile(r"([a-z]{3})_([0-9a-z]{12})")


def content_id(key: bytes, owner: str, sha256: bytes) -> str:
    """Return the id of the content with this hash: stable for one owner, and unguessable without the key."""
    # The owner comes last: the hash before it has a fixed length, so two different pairs never hash the same bytes.
    hashed = sha256 + owner.encode("utf-8", "surrogatepass")
    digest = hashlib.blake2b(hashed, key=key, digest_size=_ID_LENGTH, person=b"content handle").digest()
    # One byte per letter: 32 divides 256, so all letters are equally likely.
    return "".join(_ALPHABET[byte % 32] for byte in digest)


def new_handle(media_type: str, content_id: str, name: str | None = None) -> str:
    """Return the handle for content with this id, type and name."""
    kind = kind_of(media_type, name)
    is_text = kind == "document" and family(media_type) == "text"
    return f"{'txt' if is_text else _PREFIXES.get(kind, 'bin')}_{content_id}"


def handle_from(text: str) -> str:
    """Return the handle that `text` means: lower case, look-alikes corrected, no `content://`, quotes or white space.

    Text that is not a handle is returned stripped, and is unknown to every store.
    """
    plain = text.strip().strip("\"'`<>").strip().lower().removeprefix(URI_SCHEME)
    shape = _SHAPE.fullmatch(plain)
    return f"{shape[1]}_{shape[2].translate(_LOOKALIKES)}" if shape else plain


def id_in(handle: str) -> str:
    """Return the id in a handle, in any spelling that `handle_from` reads. The prefix is not needed to find content."""
    return handle_from(handle).rpartition("_")[2]
