"""How content lies in an object store: the names of its objects, and what is written about it.

    key                          what handles are made with
    about/<owner>/<id>           JSON about a piece of content, written last: without it there is no content
    bytes/<owner>/<object>       its bytes; each put has an object of its own, so that two gateways never share one
    used/<owner>/<id>            empty; when it was written, the content was last used, about
    gone/<owner>/<id>            why content is no more

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
from gateway.core.model.kinds import kind_of

KEY, ABOUT, BYTES, USED, GONE = "key", "about", "bytes", "used", "gone"

_ID = r"^[0-9a-hjkmnp-tv-z]{12}$"


@dataclass(frozen=True)
class ContentRecord:
    """What is written about a piece of content."""

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
    """Tells apart what was put at the same moment by one gateway."""
    origin: str | None = None
    version: Literal[1] = 1

    def stored(self, expires: float) -> Stored:
        """What callers are told, where content is kept for so many seconds."""
        handle = new_handle(self.media_type, self.ident, self.name)
        kind = kind_of(self.media_type, self.name)
        until = self.put_at + expires
        return Stored(handle, self.media_type, self.name, self.size, self.sha256, kind, until, self.origin)

    def written(self) -> bytes:
        """The JSON."""
        return json.dumps(asdict(self)).encode()


_ABOUT = TypeAdapter(ContentRecord)


def read_about(content: bytes) -> ContentRecord | None:
    """What `ContentRecord.written` wrote; None for what is no such thing, which others may have put there."""
    try:
        return _ABOUT.validate_python(json.loads(content))
    except (ValueError, RecursionError):
        return None


def is_id(ident: str) -> bool:
    """Whether an id may be looked for: what a caller gives becomes part of a name."""
    return re.fullmatch(_ID, ident) is not None


def owner_id(key: bytes, owner: str) -> str:
    """What stands for an owner in names."""
    plain = owner.encode("utf-8", "surrogatepass")
    return hashlib.blake2b(plain, key=key, digest_size=16, person=b"content owner").hexdigest()


def new_object() -> str:
    """The last part of a name that no other object has."""
    return secrets.token_hex(16)
