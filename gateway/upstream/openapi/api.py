"""An API as its document describes it: the tools that the configuration offers of it, and the base URL."""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from weakref import WeakValueDictionary

from gateway.config.upstream_settings import UpstreamSettings
from gateway.core.fact_words import counted, plain, size_words
from gateway.core.model.json_size import size_of
from gateway.core.model.json_values import as_object, as_text, objects_in
from gateway.errors import DocumentUnusable, OutsideReference
from gateway.upstream.openapi.document import Document, parse_document
from gateway.upstream.openapi.operations import find_operations, origin, server_url
from gateway.upstream.openapi.tools import ApiTool, Libraries, tool_for

MOST_BYTES = 32 * 1024 * 1024
"""Size of the tools after which no further ones are offered: thousands can share one large parameter."""


@dataclass(frozen=True, eq=False)
class Api:
    """The API of a document, as an upstream's settings select it. `left_out` says what they select in vain, and why."""

    document: Document
    base_url: str
    tools: Mapping[str, ApiTool]
    left_out: tuple[str, ...] = ()

    @property
    def info(self) -> dict[str, str]:
        """Its name and version, as of a server."""
        info = as_object(self.document.root.get("info"))
        title, version = as_text(info.get("title")) or "HTTP API", as_text(info.get("version")) or ""
        return {"name": plain(title, 200), "version": plain(version, 100)}

    @property
    def instructions(self) -> str | None:
        """The description of the API, for models."""
        return as_text(as_object(self.document.root.get("info")).get("description"))

    @property
    def credentials_hint(self) -> str | None:
        """How the API takes credentials, for those who configure it; None if the document does not say."""
        schemes = as_object(as_object(self.document.root.get("components")).get("securitySchemes"))
        return next((hint for one in schemes.values() if (hint := _hint(as_object(one)))), None)


_read: WeakValueDictionary[str, Api] = WeakValueDictionary()
"""The APIs in use: several connections of an upstream have the same."""


def read_api(content: bytes, settings: UpstreamSettings, place: str) -> Api:
    """Read an API from its document. `place` is the document's URL, or empty. Takes seconds for a large one.

    Raises:
        DocumentUnusable: the document cannot be used, or nothing in it is offered.
    """
    of = settings.model_dump_json(include={"base_url", "headers", "operations"})
    key = hashlib.sha256(b"\0".join((place.encode(), of.encode("utf-8", "surrogatepass"), content))).hexdigest()
    if (known := _read.get(key)) is not None:
        return known
    document = parse_document(content)
    base_url = _base_url(document, settings, place)
    given = {name.lower() for name in (*settings.headers, *settings.headers_from_claims)}
    found = find_operations(document, settings.operations, base_url)
    libraries = Libraries.of(document)
    tools: dict[str, ApiTool] = {}
    left_out = list(found.left_out)
    size = 0
    for operation in found.operations:
        if size > MOST_BYTES:
            left_out.append(f"{operation.words} and all after it: the tools before it take {size_words(MOST_BYTES)}")
            break
        try:
            tool = tool_for(libraries, operation, given, settings.operations.query.keys())
        except OutsideReference as error:
            left_out.append(f"{operation.words}: {error}")
            continue
        tools[operation.name] = tool
        size += size_of(tool.wire).total
    if not tools:
        raise _nothing(left_out)
    api = _read[key] = Api(document, base_url, tools, tuple(left_out))
    return api


def _nothing(left_out: list[str]) -> DocumentUnusable:
    if left_out:
        more = f", and {counted(len(left_out) - 1, 'more')}" if len(left_out) > 1 else ""
        return DocumentUnusable(f"none of its operations can be offered: {left_out[0]}{more}")
    return DocumentUnusable(
        "the document has no operations that the configuration selects",
        remedy='GET and HEAD are offered by default; others with operations = { methods = ["GET", "POST"] }',
    )


def _base_url(document: Document, settings: UpstreamSettings, place: str) -> str:
    if settings.base_url is not None:
        return settings.base_url
    servers = objects_in(document.root.get("servers"))
    url = server_url(servers[0], place) if servers else server_url({}, place)
    if origin(url) != origin(place):
        raise DocumentUnusable(
            f"the document says that the API is on another server, {plain(origin(url)[1], 100)}",
            remedy=f'if that is meant, set base_url = "{plain(url, 200)}"',
        )
    return url.partition("?")[0].partition("#")[0]


def _hint(scheme: Mapping[str, Any]) -> str | None:
    name = plain(as_text(scheme.get("name")) or "", 60)
    match scheme.get("type"), scheme.get("in"):
        case "apiKey", "query":
            return f'it wants a key: operations.query = {{ {name} = "${{API_KEY}}" }} in the gateway\'s configuration'
        case "apiKey", "header":
            return f'it wants a key: headers = {{ {name} = "${{API_KEY}}" }} in the gateway\'s configuration'
        case "http", _:
            kind = plain(as_text(scheme.get("scheme")) or "Bearer", 20).capitalize()
            return f'it wants credentials: headers = {{ Authorization = "{kind} ..." }} in the gateway\'s configuration'
        case (("oauth2" | "openIdConnect"), _):
            return "it wants a login (OAuth): `auth` in the gateway's configuration"
        case _:
            return None
