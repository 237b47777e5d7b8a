"""The layout of an object store: the names of its objects, and the records of its content.

    key                          the key that handles are made with
    about/<owner>/<id>           the JSON record of a piece of content, written last: without it there is no content
    bytes/<owner>/<object>       its bytes; each put writes an object of its own, so two gateways never share one
    used/<owner>/<id>            empty; written at about the time when the content was last used
    gone/<owner>/<id>            the reason why content was removed

`<owner>` is a keyed hash of the principal, `<id>` is the second half of the handle.
"""

import hashlib
import json
import re
import secrets
from dataclasses import asdict, dataclass
from typing import Annotated, Literal

from pydantic import Field, TypeAdapter

from gateway.content.store.content import Stored
from gateway.content.store.handles import new_handle
from gateway.core.model.format_versions import newer_than
from gateway.core.model.json_values import as_object
from gateway.core.model.kinds import kind_of

KEY, ABOUT, BYTES, USED, GONE = "key", "about", "bytes", "used", "gone"

CONTENT_VERSION = 1
"""The version of the layout and of the records."""

_ID = r"^[0-9a-hjkmnp-tv-z]{12}$"


@dataclass(frozen=True)
class ContentRecord:
    """The record of a piece of content, as it is stored."""

    ident: Annotated[str, Field(pattern=_ID)]
    media_type: str
    name: str | None
    size: Annotated[int, Field(ge=0)]
    sha256: Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]
    object: Annotated[str, Field(pattern=r"^[0-9a-f]{32}$")]
    """The last part of the name of the object that holds its bytes."""
    put_at: Annotated[float, Field(allow_inf_nan=False)]
    """Seconds since 1970."""
    order: int
    """Orders what one gateway stored at the same moment."""
    origin: str | None = None
    version: Literal[1] = 1

    def stored(self, expires: float) -> Stored:
        """Return the metadata for callers; `expires` is how many seconds content is kept."""
        handle = new_handle(self.media_type, self.ident, self.name)
        kind = kind_of(self.media_type, self.name)
        until = self.put_at + expires
        return Stored(handle, self.media_type, self.name, self.size, self.sha256, kind, until, self.origin)

    def written(self) -> bytes:
        """Return the record as JSON."""
        return json.dumps(asdict(self)).encode()


_RECORD = TypeAdapter(ContentRecord)


def read_record(content: bytes) -> ContentRecord | None:
    """Read what `ContentRecord.written` wrote; None for anything else that may be in the store."""
    try:
        return _RECORD.validate_python(json.loads(content))
    except (ValueError, RecursionError):
        return None


def newer_record(content: bytes) -> str | None:
    """Return the words about a record that a newer version of the gateway wrote; None for any other."""
    try:
        return newer_than(CONTENT_VERSION, as_object(json.loads(content)).get("version"))
    except (ValueError, RecursionError):
        return None


def is_id(ident: str) -> bool:
    """Whether an id is well formed. Ids come from callers and become part of object names."""
    return re.fullmatch(_ID, ident) is not None


def owner_id(key: bytes, owner: str) -> str:
    """Return the keyed hash that stands for an owner in object names."""
    plain = owner.encode("utf-8", "surrogatepass")
    return hashlib.blake2b(plain, key=key, digest_size=16, person=b"content owner").hexdigest()


def new_object() -> str:
    """Return a unique last part for an object's name."""
    return secrets.token_hex(16)
