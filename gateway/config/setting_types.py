"""Types, names and addresses that several sections of mcp-gateway.toml have."""

import re
from typing import Annotated

from pydantic import Field

from gateway.core.model.quantities import Duration, Size

Seconds = Annotated[Duration, Field(gt=0, le=86_400)]

Bytes = Annotated[Size, Field(gt=0)]

BytesOrNone = Annotated[Size, Field(ge=0)]
"""0 means something other than a number of bytes."""
OWN_NAME = "gateway"
"""The name of the gateway's own tools; no upstream may have it."""


def is_url(place: str) -> bool:
    """Whether a place is a URL, and not a file."""
    return place.startswith(("http://", "https://"))


_ADDRESS = re.compile(r"(?:localhost|[\w-]+(?:\.[\w-]+)+|[\w.-]+(?=:\d)|\[[\da-fA-F:]+\])(?::\d{1,5})?(?:/\S*)?")
_LOCAL = re.compile(r"(?:localhost|127\.|0\.0\.0\.0|\[::1?\])")


def url_meant(place: str) -> str | None:
    """Return the URL that a host with a port or a path may mean, as `127.0.0.1:8000/mcp`; None for other words."""
    if _ADDRESS.fullmatch(place) is None or not (":" in place or "/" in place):
        return None
    return f"{'http' if _LOCAL.match(place) or ':' in place else 'https'}://{place}"


PRINCIPAL = r"^[A-Za-z0-9][A-Za-z0-9._@+-]*$"

RESERVED_PRINCIPALS = frozenset({"local", "token"})
"""The principals of hosts without a token, and of hosts with `[http] token`."""
