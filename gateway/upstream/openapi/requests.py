"""A call's arguments as an HTTP request: parameters in their styles, and bodies in the media type of the operation."""

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote, urlencode

from gateway.core.fact_words import plain
from gateway.core.model import media_types
from gateway.core.model.base64_text import decoded, mend
from gateway.core.model.json_values import as_list, as_object, is_list, is_object
from gateway.errors import InvalidRequest
from gateway.upstream.openapi.document import Document
from gateway.upstream.openapi.operations import ApiBody, ApiParameter
from gateway.upstream.openapi.tools import ApiTool, is_binary_body, is_form, is_json_type, is_text_type

_HEADER_VALUE = re.compile(r"[\t\x20-\x7e\x80-\xff]*")
_DELIMITERS = {"form": ",", "spaceDelimited": "%20", "pipeDelimited": "|"}
_ANYTHING = "*/*;q=0.1"
_MOST_ACCEPTED = 20

FilePart = tuple[str, tuple[str | None, bytes, str | None]]
"""A part of a form: its name, and its file name (None if it is not a file), content and media type."""


@dataclass(frozen=True)
class ApiRequest:
    """A request that is ready to be sent, but for what the configuration and logins add."""

    method: str
    url: str
    headers: Mapping[str, str]
    content: bytes | None = None
    parts: tuple[FilePart, ...] | None = None
    """The parts of a multipart form, in place of `content`."""


def build_request(
    document: Document, tool: ApiTool, arguments: Mapping[str, Any], base_url: str, query: Mapping[str, str]
) -> ApiRequest:
    """Return the request for a call. `query` are parameters that are added to every one.

    Raises:
        InvalidRequest: an argument is missing, unknown, or cannot be sent; the message is for the model.
    """
    operation = tool.operation
    _check(tool, arguments)
    path = operation.path
    pairs: list[str] = []
    headers = {"accept": _accepted(operation.responses)}
    cookies: list[str] = []
    for name, parameter in tool.parameters.items():
        if name not in arguments or (arguments[name] is None and not parameter.is_json):
            continue
        value = arguments[name]
        match parameter.place:
            case "path":
                path = path.replace(f"{{{parameter.name}}}", _path_value(name, parameter, value))
            case "query":
                pairs += _query_pairs(parameter, value)
            case "header":
                headers[parameter.name.lower()] = _header_value(name, parameter, value)
            case "cookie":
                cookies += _query_pairs(parameter, value)
    # The members of an object are parameters of their own, and could be those that the configuration sets.
    fixed = {quote(name, safe="") for name in query}
    pairs = [pair for pair in pairs if pair.partition("=")[0] not in fixed]
    pairs += [f"{quote(name, safe='')}={quote(value, safe='')}" for name, value in query.items()]
    if cookies:
        headers["cookie"] = "; ".join(cookies)
    content, parts = _body(document, tool, arguments, headers)
    url = (operation.base or base_url).rstrip("/") + quote(path, safe="/%:@!$&'()*+,;=~-._")
    return ApiRequest(operation.method, f"{url}?{'&'.join(pairs)}" if pairs else url, headers, content, parts)


def _check(tool: ApiTool, arguments: Mapping[str, Any]) -> None:
    known = {*tool.parameters, *([tool.body_name] if tool.body_name else [])}
    if unknown := sorted(arguments.keys() - known):
        names = ", ".join(sorted(known)) or "none"
        raise InvalidRequest(f"there is no argument {plain(unknown[0], 100)!r}; there are: {plain(names, 1_000)}")
    missing = [name for name in as_list(tool.wire["inputSchema"].get("required")) if arguments.get(name) is None]
    if missing:
        raise InvalidRequest(f"the argument {missing[0]!r} is missing")


def _accepted(responses: Mapping[str, Any]) -> str:
    named = [
        kind.partition(";")[0].strip()
        for code, answer in responses.items()
        if code.startswith("2") or code == "default"
        for kind in as_object(answer.get("content"))
    ]
    kinds = [kind for kind in dict.fromkeys(named) if kind.isascii() and kind.isprintable() and kind != "*/*"]
    return ", ".join([*kinds[:_MOST_ACCEPTED], _ANYTHING]) if kinds else "*/*"


# Parameters: https://spec.openapis.org/oas/v3.1.0#style-values


def _text(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if value is None:
        return ""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _quoted(value: Any) -> str:
    return quote(_text(value), safe="", errors="replace")


def _path_value(name: str, parameter: ApiParameter, value: Any) -> str:
    if parameter.is_json:
        text = _quoted(json.dumps(value))
    elif is_list(value):
        text = ",".join(map(_quoted, value))
    elif is_object(value):
        text = ",".join(_flat(value, parameter.explode))
    else:
        text = _quoted(value)
    if text in ("", ".", ".."):
        raise InvalidRequest(f"{name} must not be {_text(value)!r}: it is a part of the path")
    match parameter.style:
        case "label":
            return f".{text}"
        case "matrix":
            return f";{quote(parameter.name, safe='')}={text}"
        case _:
            return text


def _flat(value: Mapping[str, Any], explode: bool) -> list[str]:
    if explode:
        return [f"{_quoted(key)}={_quoted(member)}" for key, member in value.items()]
    return [_quoted(one) for pair in value.items() for one in pair]


def _query_pairs(parameter: ApiParameter, value: Any) -> list[str]:
    name = quote(parameter.name, safe="")
    if parameter.is_json:
        return [f"{name}={_quoted(json.dumps(value))}"]
    if is_list(value):
        if parameter.explode:
            return [f"{name}={_quoted(one)}" for one in value]
        return [f"{name}={_DELIMITERS.get(parameter.style, ',').join(map(_quoted, value))}"]
    if is_object(value):
        if parameter.style == "deepObject":
            return list(_deep(name, value))
        return _flat(value, True) if parameter.explode else [f"{name}={','.join(_flat(value, False))}"]
    return [f"{name}={_quoted(value)}"]


def _deep(name: str, value: Mapping[str, Any]) -> Iterator[str]:
    for key, member in value.items():
        inner = f"{name}%5B{_quoted(key)}%5D"
        if is_object(member):
            yield from _deep(inner, member)
        elif is_list(member):
            yield from (f"{inner}={_quoted(one)}" for one in member)
        else:
            yield f"{inner}={_quoted(member)}"


def _header_value(name: str, parameter: ApiParameter, value: Any) -> str:
    if parameter.is_json:
        text = json.dumps(value)
    elif is_list(value):
        text = ",".join(map(_text, value))
    elif is_object(value):
        joined = "=" if parameter.explode else ","
        text = ",".join(f"{key}{joined}{_text(member)}" for key, member in value.items())
    else:
        text = _text(value)
    if not _HEADER_VALUE.fullmatch(text):
        raise InvalidRequest(f"{name} is sent in a header, so it must not contain line breaks or signs beyond Latin-1")
    return text.strip(" \t")


# Bodies.


def _body(
    document: Document, tool: ApiTool, arguments: Mapping[str, Any], headers: dict[str, str]
) -> tuple[bytes | None, tuple[FilePart, ...] | None]:
    body, name = tool.operation.body, tool.body_name
    if body is None or name is None or name not in arguments:
        return None, None
    value = arguments[name]
    if body.media_type == "multipart/form-data":
        return None, tuple(_parts(tool, body, name, value))
    if is_form(body.media_type):
        headers["content-type"] = body.media_type
        return urlencode(list(_form(name, value)), errors="replace").encode(), None
    if is_binary_body(document, body):
        content = _bytes(name, value)
        headers["content-type"] = _type_of(content, body.media_types)
        return content, None
    headers["content-type"] = body.media_type
    if is_json_type(body.media_type):
        return json.dumps(value, ensure_ascii=False).encode("utf-8", "replace"), None
    if is_text_type(body.media_type):
        headers["content-type"] = f"{body.media_type}; charset=utf-8"
    return _text(value).encode("utf-8", "replace"), None


def _type_of(content: bytes, allowed: tuple[str, ...]) -> str:
    """Return the media type to send bytes as: what they are, if that is allowed; else the first that is named."""
    sniffed = media_types.inspect(content).media_type
    if sniffed is not None and any(_covers(kind, sniffed) for kind in allowed):
        return sniffed
    return next((kind for kind in allowed if "*" not in kind), "application/octet-stream")


def _covers(allowed: str, kind: str) -> bool:
    return allowed == kind or allowed == "*/*" or (allowed.endswith("/*") and kind.startswith(allowed[:-1]))


def _bytes(place: str, value: Any) -> bytes:
    data = mend(value).data if isinstance(value, str) else None
    if data is None:
        if value == "":
            return b""
        raise InvalidRequest(f"{place} must be the handle of content, a data: URI, or base64")
    return decoded(data)


def _members(name: str, value: Any) -> Mapping[str, Any]:
    if not is_object(value):
        raise InvalidRequest(f"{name} must be an object, whose members are the fields of the form")
    return {key: member for key, member in value.items() if member is not None}


def _form(name: str, value: Any) -> Iterator[tuple[str, str]]:
    for key, member in _members(name, value).items():
        yield from ((key, _text(one)) for one in (member if is_list(member) else [member]))


def _parts(tool: ApiTool, body: ApiBody, name: str, value: Any) -> Iterator[FilePart]:
    for key, member in _members(name, value).items():
        kinds = str(as_object(body.encoding.get(key)).get("contentType", ""))
        allowed = tuple(kind.strip().lower() for kind in kinds.split(",") if kind.strip())
        for one in member if is_list(member) else [member]:
            if key in tool.binary_parts:
                content = _bytes(f"{name}.{key}", one)
                sent = _type_of(content, allowed or ("*/*",))
                yield key, (f"{key}.{media_types.extension(sent)}", content, sent)
            elif is_object(one) or is_list(one):
                yield key, (None, json.dumps(one, ensure_ascii=False).encode("utf-8", "replace"), "application/json")
            else:
                yield key, (None, _text(one).encode("utf-8", "replace"), allowed[0] if len(allowed) == 1 else None)
