"""JSON of an authorization server: a document that it publishes, or its answer to a form. Both are bounded."""

from collections.abc import Mapping
from typing import Any
from urllib.parse import urlsplit

import anyio
import httpx2
from pydantic_core import from_json

from gateway._version import __version__
from gateway.config.content_settings import FetchSettings
from gateway.content.fetch import fetch
from gateway.core.model.json_values import is_object
from gateway.errors import FetchFailed, FetchRefused
from gateway.system.tls import HOOKS, ssl_context

_SECONDS = 10.0
"""Seconds for everything together, from the connection to the end of the answer."""
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
    return _object_in(body, given.netloc)


async def post_form(
    url: str, form: Mapping[str, str], auth: tuple[str, str] | None = None, *, most_bytes: int = _MOST_BYTES
) -> dict[str, Any]:
    """Send a form to an endpoint of a server that the configuration names, and return the JSON object in its answer.

    `auth` are user and password, each already form-encoded (RFC 6749, 2.3.1). Redirects are not followed, and no proxy
    is asked.

    Raises:
        FetchFailed: there is no such answer of at most `most_bytes` in time; the message has nothing of the form.
    """
    host = urlsplit(url).netloc.rpartition("@")[2]
    # Compression is declined, because a small compressed answer can be enormous.
    headers = {"accept": "application/json", "accept-encoding": "identity", "user-agent": f"mcp-gateway/{__version__}"}
    body = bytearray()
    try:
        with anyio.fail_after(_SECONDS):
            async with (
                httpx2.AsyncClient(verify=ssl_context(), trust_env=False, event_hooks=HOOKS, timeout=None) as client,
                client.stream("POST", url, data=dict(form), auth=auth, headers=headers) as response,
            ):
                if response.status_code != 200:
                    raise FetchFailed(f"{host} answered {response.status_code}")
                async for piece in response.aiter_raw():
                    body += piece
                    if len(body) > most_bytes:
                        raise FetchFailed(f"{host} answered with more than {most_bytes} bytes")
    except TimeoutError:
        raise FetchFailed(f"{host} did not answer within {_SECONDS:g} s") from None
    except (httpx2.HTTPError, httpx2.InvalidURL, OSError) as error:
        # Only the type: the text of an error may quote what the server has sent, or was sent.
        raise FetchFailed(f"{host} cannot be reached ({type(error).__name__})") from None
    return _object_in(bytes(body), host)


def _object_in(body: bytes, host: str) -> dict[str, Any]:
    try:
        document: Any = from_json(body)
    except ValueError:
        document = None
    if not is_object(document):
        raise FetchFailed(f"what {host} sends is not a JSON object")
    return dict(document)
