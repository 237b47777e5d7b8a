"""Read a JSON document of an authorization server: its metadata, or its keys."""

from typing import Any
from urllib.parse import urlsplit

from pydantic_core import from_json

from gateway.config.schema import FetchSettings
from gateway.content.fetch import fetch
from gateway.core.model.json_values import is_object
from gateway.errors import FetchFailed, FetchRefused

_SECONDS = 10.0
_MOST_BYTES = 512 * 1024


async def read_json(url: str, *, trusted: str) -> dict[str, Any]:
    """Read a JSON object. Only the host of `trusted`, a URL of the configuration, may have a private address.

    Raises:
        FetchRefused: the URL leads to a private address, or is not encrypted as `trusted` is.
        FetchFailed: there is no such document.
    """
    given, base = urlsplit(url), urlsplit(trusted)
    if given.scheme != "https" and (given.scheme, given.netloc) != (base.scheme, base.netloc):
        raise FetchRefused(f"a URL of {base.netloc} that does not begin with https:// is not asked")
    settings = FetchSettings(
        allow=(f"{given.scheme}://{given.netloc}/*",),
        allow_private=(base.netloc,),
        max_bytes=_MOST_BYTES,
        timeout=_SECONDS,
        idle=_SECONDS,
        redirects=0,
    )
    async with fetch(url, settings) as fetched:
        body = b"".join([piece async for piece in fetched])
    try:
        document: Any = from_json(body)
    except ValueError:
        document = None
    if not is_object(document):
        raise FetchFailed(f"what {given.netloc} sends is not a JSON object")
    return dict(document)
