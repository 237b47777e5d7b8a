"""Types, names and addresses that several sections of mcp-gateway.toml have."""

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


PRINCIPAL = r"^[A-Za-z0-9][A-Za-z0-9._@+-]*$"

RESERVED_PRINCIPALS = frozenset({"local", "token"})
"""The principals of hosts without a token, and of hosts with `[http] token`."""
