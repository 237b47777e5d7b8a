"""The operations of an OpenAPI document: read, selected by the configuration, and named."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from typing import Any, Literal
from urllib.parse import urljoin, urlsplit

from gateway.config.openapi_settings import OperationSettings
from gateway.core.fact_words import plain
from gateway.core.model.json_values import as_list, as_object, as_text, is_object, objects_in
from gateway.core.model.media_types import normalise
from gateway.errors import DocumentUnusable, GatewayError, OtherServer, OutsideReference
from gateway.upstream.openapi.document import Document

Place = Literal["path", "query", "header", "cookie"]

MOST_OPERATIONS = 5_000
"""Maximum operations that are offered; the rest is left out."""

_METHODS = ("get", "head", "options", "post", "put", "patch", "delete")
_PLACES = ("path", "query", "header", "cookie")
_VARIABLE = re.compile(r"\{([^{}/]{1,200})\}")
_ILLEGAL = re.compile(r"[^A-Za-z0-9_.-]+")
_HEADER = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]{1,200}")
_LONGEST_NAME = 100
_LONGEST_URL = 10_000
_LONGEST_DEFAULT = 1_000

_OURS = frozenset(
    {"accept", "accept-encoding", "authorization", "connection", "content-length", "content-type", "cookie", "dpop"}
    | {"expect", "host", "keep-alive", "te", "trailer", "transfer-encoding", "upgrade", "proxy-authorization"}
)
"""Headers that are not parameters (OpenAPI, "Parameter Object"), or that no model may set."""

_STYLES: Mapping[str, str] = {"path": "simple", "query": "form", "header": "simple", "cookie": "form"}
_PREFERRED = ("application/json", "multipart/form-data", "application/x-www-form-urlencoded")
"""The types of a body that are preferred to others if there is a choice, the best first."""


@dataclass(frozen=True)
class ApiParameter:
    """A parameter in the path, the query, a header or a cookie; `name` as it is sent."""

    name: str
    place: Place
    schema: Any
    is_required: bool = False
    description: str | None = None
    style: str = "form"
    explode: bool = True
    is_json: bool = False
    """Whether its value is sent as JSON (`content`)."""


@dataclass(frozen=True)
class ApiBody:
    """The body of a request: the media type that was chosen, all that are allowed, and how its parts are encoded."""

    media_type: str
    media_types: tuple[str, ...]
    schema: Any
    is_required: bool = False
    description: str | None = None
    encoding: Mapping[str, Any] = field(default_factory=dict[str, Any])


@dataclass(frozen=True)
class Operation:
    """An operation, and the name of its tool. `base` is the base URL that it has instead of that of the API."""

    name: str
    method: str
    path: str
    id: str | None = None
    summary: str | None = None
    description: str | None = None
    tags: tuple[str, ...] = ()
    is_deprecated: bool = False
    parameters: tuple[ApiParameter, ...] = ()
    body: ApiBody | None = None
    responses: Mapping[str, Any] = field(default_factory=dict[str, Any])
    base: str | None = None

    @property
    def words(self) -> str:
        """The operation as documents write it: `GET /pets/{id}`."""
        return f"{self.method} {plain(self.path, 200)}"


@dataclass
class FoundOperations:
    """The operations that are offered, and in words those that the configuration selects but that cannot be."""

    operations: list[Operation] = field(default_factory=list[Operation])
    left_out: list[str] = field(default_factory=list[str])


def find_operations(document: Document, settings: OperationSettings, base_url: str) -> FoundOperations:
    """Read the operations that the settings select; one that cannot be used does not affect the others."""
    found = FoundOperations()
    names: dict[str, int] = {}
    for path, item, method, operation in _operations(document, found):
        words = f"{method} {plain(path, 200)}"
        name = _name(as_text(operation.get("operationId")), method, path, names)
        tags = tuple(tag for tag in as_list(operation.get("tags")) if isinstance(tag, str))
        if not is_selected(settings, method, path, tags, (name, as_text(operation.get("operationId")))):
            continue
        if len(found.operations) >= MOST_OPERATIONS:
            found.left_out.append(f"{words} and all after it: there are more than {MOST_OPERATIONS:,}")
            break
        try:
            found.operations.append(_operation(document, base_url, name, method, path, item, operation))
        except GatewayError as error:
            found.left_out.append(f"{words}: {error}")
    return found


def is_selected(
    settings: OperationSettings, method: str, path: str, tags: Sequence[str], names: Sequence[str | None]
) -> bool:
    """Whether the settings select an operation; `names` are its id and the name of its tool."""
    if any(_is_named(pattern, method, path, names) for pattern in settings.also):
        return True
    if method not in settings.methods or not any(fnmatchcase(path, pattern) for pattern in settings.paths):
        return False
    return not settings.tags or not {*settings.tags}.isdisjoint(tags)


def _is_named(pattern: str, method: str, path: str, names: Sequence[str | None]) -> bool:
    verb, blank, place = pattern.partition(" ")
    if blank:
        return fnmatchcase(method, verb.upper()) and fnmatchcase(path, place.strip())
    return any(name is not None and fnmatchcase(name, pattern) for name in names)


def _operations(
    document: Document, found: FoundOperations
) -> Iterator[tuple[str, Mapping[str, Any], str, Mapping[str, Any]]]:
    for path, value in as_object(document.root.get("paths")).items():
        if not path.startswith("/"):
            continue
        try:
            item = document.followed(value)
        except OutsideReference as error:
            found.left_out.append(f"{plain(path, 200)}: {error}")
            continue
        for method in _METHODS:
            if is_object(operation := item.get(method)):
                yield path, item, method.upper(), operation


def _name(given: str | None, method: str, path: str, names: dict[str, int]) -> str:
    """Return the name of an operation's tool: its id, or else its method and path; each is given once. `names` has
    those that were given, with the number from which a free one is looked for.
    """
    wanted = given or f"{method.lower()}_{path.strip('/')}"
    legal = _ILLEGAL.sub("_", wanted).strip("_")[:_LONGEST_NAME] or method.lower()
    return free_name(legal, names)


def free_name(wanted: str, taken: dict[str, int]) -> str:
    """Return a name that is not taken, by adding a number if it must be, and take it.

    `taken` has for each name the last number that was added to it: a document can want one name a million times.
    """
    name = wanted
    while name in taken:
        taken[wanted] += 1
        name = f"{wanted}_{taken[wanted]}"
    taken[name] = 1
    return name


def _operation(
    document: Document,
    base_url: str,
    name: str,
    method: str,
    path: str,
    item: Mapping[str, Any],
    operation: Mapping[str, Any],
) -> Operation:
    return Operation(
        name,
        method,
        path,
        as_text(operation.get("operationId")),
        as_text(operation.get("summary")) or as_text(item.get("summary")),
        as_text(operation.get("description")) or as_text(item.get("description")),
        tuple(tag for tag in as_list(operation.get("tags")) if isinstance(tag, str)),
        operation.get("deprecated") is True,
        _parameters(document, path, (item.get("parameters"), operation.get("parameters"))),
        _body(document, operation.get("requestBody")),
        {code: document.followed(one) for code, one in as_object(operation.get("responses")).items()},
        _other_base(base_url, operation.get("servers") or item.get("servers")),
    )


def _parameters(document: Document, path: str, lists: Sequence[object]) -> tuple[ApiParameter, ...]:
    found: dict[tuple[str, str], ApiParameter] = {}
    for listed in lists:
        for one in as_list(listed):
            parameter = _parameter(document, document.followed(one))
            if parameter is not None and (parameter.place != "path" or f"{{{parameter.name}}}" in path):
                found[parameter.place, parameter.name] = parameter
    for name in _VARIABLE.findall(path):  # many documents do not declare them
        found.setdefault(("path", name), ApiParameter(name, "path", {"type": "string"}, True, style="simple"))
    return tuple(found.values())


def _parameter(document: Document, declared: Mapping[str, Any]) -> ApiParameter | None:
    name, place = as_text(declared.get("name")), declared.get("in")
    if not name or place not in _PLACES:
        return None
    if place == "header" and (name.lower() in _OURS or not _HEADER.fullmatch(name)):
        return None
    content = as_object(declared.get("content"))
    schema = declared.get("schema")
    if content:
        schema = as_object(next(iter(content.values()))).get("schema")
    style = as_text(declared.get("style")) or _STYLES[place]
    explode = declared.get("explode")
    return ApiParameter(
        name,
        place,
        {} if schema is None else schema,
        place == "path" or declared.get("required") is True,
        as_text(declared.get("description")),
        style,
        explode if isinstance(explode, bool) else style == "form",
        bool(content),
    )


def _body(document: Document, declared: object) -> ApiBody | None:
    body = document.followed(declared)
    content = {
        kind: media for kind, media in as_object(body.get("content")).items() if is_object(media) and kind.isascii()
    }
    if not content:
        return None
    chosen = min(content, key=_rank)
    alike = tuple(kind for kind in content if _rank(kind) == _rank(chosen))
    media = content[chosen]
    return ApiBody(
        (normalise(chosen) or chosen.strip().lower()),
        tuple(normalise(kind) or kind.strip().lower() for kind in alike),
        media.get("schema", {}),
        body.get("required") is True,
        as_text(body.get("description")),
        as_object(media.get("encoding")),
    )


def _rank(media_type: str) -> int:
    kind = media_type.partition(";")[0].strip().lower()
    if kind.endswith("+json"):
        return 0
    return _PREFERRED.index(kind) if kind in _PREFERRED else len(_PREFERRED)


def _other_base(base_url: str, servers: object) -> str | None:
    """Return the base URL that an operation has for itself, if any. Raises OtherServer if it is elsewhere."""
    listed = objects_in(servers)
    if not listed:
        return None
    base = server_url(listed[0], base_url)
    if origin(base) != origin(base_url):
        raise OtherServer(
            f"the document says that it is at {'://'.join(origin(base)[:2])}, another server than base_url",
            remedy="configure that server as an upstream of its own",
        )
    return base


def server_url(server: Mapping[str, Any], base_url: str) -> str:
    """Return the URL of a Server Object, relative to another URL, with its variables replaced by their defaults.

    Raises:
        DocumentUnusable: it is not a URL.
    """
    variables = as_object(server.get("variables"))

    def default(found: re.Match[str]) -> str:
        name = found[1]
        return str(as_object(variables[name]).get("default", ""))[:_LONGEST_DEFAULT] if name in variables else found[0]

    # In one pass: what stands in a default is not replaced, so that nothing multiplies.
    url = _VARIABLE.sub(default, (as_text(server.get("url")) or "/")[:_LONGEST_URL])
    found = joined(base_url, url)
    if found is None:
        raise DocumentUnusable(f"the document names a server that is not a URL: {plain(url, 100)!r}")
    return found


def joined(base: str, url: str) -> str | None:
    """Return a URL that may be relative to another one as a whole one; None if it is not a URL."""
    try:
        return urljoin(base, url)
    except ValueError:
        return None


def origin(url: str) -> tuple[str, str, int | None]:
    """Return scheme, host and port of a URL; the default port is None."""
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError:
        return "", "", None
    default = {"http": 80, "https": 443}.get(parts.scheme)
    return parts.scheme, (parts.hostname or "").lower(), None if port == default else port
