"""HTTP answers as results of tool calls: media as blocks, JSON as structured content, errors with their bodies."""

import codecs
import re
from collections.abc import Mapping
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any
from urllib.parse import parse_qsl, unquote, urlsplit

import pybase64
from pydantic_core import from_json

from gateway.config.secrets import HIDDEN
from gateway.core.fact_words import plain
from gateway.core.model import media_types
from gateway.core.model.json_safe import read_leniently
from gateway.core.model.json_text import has_more_values
from gateway.core.model.json_values import is_object
from gateway.upstream.openapi.tools import is_json_type, is_text_type

_FILE_NAME = re.compile(r"filename\*?\s*=\s*(?:UTF-8'[^']*')?\"?([^\";]{1,300})", re.IGNORECASE)
_CHARSET = re.compile(r"charset\s*=\s*\"?([A-Za-z0-9_.:-]{1,40})", re.IGNORECASE)
_NO_CHARSETS = frozenset({"idna", "punycode", "raw-unicode-escape", "undefined", "unicode-escape"})
"""Python's own codecs (https://docs.python.org/3/library/codecs.html#python-specific-encodings). The time that two of
them take grows with the square of the length."""
_NEXT = re.compile(r"<([^<>]{1,2000})>([^<>]{0,500})")
_RELATION = re.compile(r"rel\s*=\s*\"?([a-z ]{1,100})", re.IGNORECASE)


@dataclass(frozen=True)
class ApiAnswer:
    """An HTTP answer with its body. `url` and `method` are those of the request, `headers` have names in lower case."""

    status: int
    headers: Mapping[str, str]
    body: bytes
    url: str
    method: str = "GET"

    @property
    def media_type(self) -> str | None:
        """The declared media type, without parameters; None if it says nothing."""
        return media_types.normalise(self.headers.get("content-type"))

    @property
    def status_words(self) -> str:
        """The status, such as `HTTP 404 Not Found`."""
        try:
            return f"HTTP {self.status} {HTTPStatus(self.status).phrase}"
        except ValueError:
            return f"HTTP {self.status}"


def result_of(answer: ApiAnswer, upstream: str, tool: str, credentials_hint: str | None = None) -> dict[str, Any]:
    """Return the result of a call: with `isError` for a status of 400 and above, and never without content.

    `credentials_hint` is what the document says about credentials, for an answer that wants some.
    """
    if answer.status >= 400:
        return _error(answer, upstream, tool, credentials_hint)
    result = _content(answer, upstream, tool)
    content: list[dict[str, Any]] = result["content"]
    if answer.method == "HEAD":
        content.append(_text("\n".join((answer.status_words, *_shown_headers(answer)))))
    if not content:
        content.append(_text(f"[{answer.status_words}: done, without content]"))
    if answer.status in (201, 202) and (place := answer.headers.get("location")):
        content.append(_text(f"[{answer.status_words}: at {plain(place, 300)}]"))
    if (words := _next_page(answer)) is not None:
        content.append(_text(f"[{words}]"))
    return result


def refused(words: str) -> dict[str, Any]:
    """Return a failed result with a text for the model."""
    return {"content": [_text(words)], "isError": True}


def redirected(answer: ApiAnswer, location: str | None) -> dict[str, Any]:
    """Return the result for a redirect to another server, which is not followed: a link to it. None: to no URL."""
    if location is None:
        return refused(f"[{answer.status_words}: it redirects to what is not a URL]")
    words = f"[{answer.status_words}: it is at another address, which was not requested]"
    link = {"type": "resource_link", "uri": location, "name": location_name(location)}
    return {"content": [_text(words), link]}


def location_name(url: str) -> str:
    """Return a name for what is at a URL: the last part of its path."""
    parts = urlsplit(url)
    return plain(unquote(parts.path.rstrip("/").rpartition("/")[2]) or parts.netloc, 100)


def _text(text: str) -> dict[str, Any]:
    return {"type": "text", "text": text}


def _error(answer: ApiAnswer, upstream: str, tool: str, credentials_hint: str | None) -> dict[str, Any]:
    words = answer.status_words
    if (pause := answer.headers.get("retry-after")) is not None:
        shown = plain(pause, 60)
        words += f" (try again in {shown} s)" if shown.isdecimal() else f" (try again after {shown})"
    if answer.status in (401, 403) and credentials_hint:
        words += f" ({credentials_hint})"
    content: list[dict[str, Any]] = _content(answer, upstream, tool)["content"]
    if content and content[0]["type"] == "text":
        content[0] = _text(f"{words}\n\n{content[0]['text']}")
    else:
        content.insert(0, _text(words))
    return {"content": content, "isError": True}


def _content(answer: ApiAnswer, upstream: str, tool: str) -> dict[str, Any]:
    """Return the content of an answer, and its structured content if it is a JSON object."""
    body, declared = answer.body, answer.media_type
    if not body:
        return {"content": []}
    if declared is not None and is_json_type(declared):
        return _json(answer)
    if declared is not None and is_text_type(declared) and declared != "image/svg+xml":
        return {"content": [_text(_decoded(answer))] if body.strip() else []}
    kind = media_types.inspect(body).media_type or declared
    if kind is None:
        kind = _guessed(body)
        if kind == "text/plain":
            return {"content": [_text(body.decode())]}
    data = pybase64.b64encode_as_string(body)
    family = media_types.family(kind)
    if family in ("image", "audio"):
        return {"content": [{"type": family, "data": data, "mimeType": kind}]}
    resource = {"uri": f"openapi://{upstream}/{_name(answer, tool, kind)}", "mimeType": kind, "blob": data}
    return {"content": [{"type": "resource", "resource": resource}]}


def _json(answer: ApiAnswer) -> dict[str, Any]:
    text = _decoded(answer)
    if has_more_values(answer.body):
        return {"content": [_text(text)]}
    try:
        value = from_json(answer.body)
    except ValueError:
        try:
            value = read_leniently(text)
        except ValueError:
            return {"content": [_text(text)]}
    content = [_text(text)] if text.strip() else []
    return {"content": content, "structuredContent": value} if is_object(value) else {"content": content}


def _shown_headers(answer: ApiAnswer) -> list[str]:
    """Return the headers that say something of the content that a GET would answer with."""
    shown = ("content-type", "content-length", "last-modified", "etag", "content-disposition", "link", "allow")
    return [f"{name}: {plain(answer.headers[name], 500)}" for name in shown if name in answer.headers]


def _decoded(answer: ApiAnswer) -> str:
    """Return the body as text: in the declared encoding, or else UTF-8; what is neither is replaced."""
    found = _CHARSET.search(answer.headers.get("content-type", ""))
    try:
        return answer.body.decode(_codec(found[1]) if found else "utf-8", "replace").removeprefix("\ufeff")
    except (LookupError, UnicodeError):
        return answer.body.decode("utf-8", "replace")


def _codec(charset: str) -> str:
    """Return the name of a charset's codec. Raises LookupError if there is none."""
    name = codecs.lookup(charset).name.replace("_", "-")
    if name in _NO_CHARSETS:
        raise LookupError(name)
    return name


def _guessed(body: bytes) -> str:
    """Return the type of content that nothing is known of: text, if it is UTF-8 without control signs."""
    if b"\0" in body:
        return "application/octet-stream"
    try:
        body.decode()
    except UnicodeDecodeError:
        return "application/octet-stream"
    return "text/plain"


def _name(answer: ApiAnswer, tool: str, kind: str) -> str:
    """Return a name for a file: the one that the answer gives, or else the tool's with the usual ending."""
    found = _FILE_NAME.search(answer.headers.get("content-disposition", ""))
    named = unquote(found[1]).strip().replace("\\", "/").rpartition("/")[2] if found else ""
    return plain(named, 100).replace(" ", "_") or f"{tool}.{media_types.extension(kind)}"


def _next_page(answer: ApiAnswer) -> str | None:
    """Say how to get the next page, if a Link header names it (RFC 8288): the parameters that differ."""
    for link in _NEXT.finditer(answer.headers.get("link", "")[:8_000]):
        target, relation = link[1], _RELATION.search(link[2])
        if relation is None or "next" not in relation[1].lower().split():
            continue
        here, there = dict(_query(answer.url)), dict(_query(target))
        # Parameters that are the same may be keys that the model is not to see.
        changed = [
            f"{plain(key, 60)}={plain(value, 200)}"
            for key, value in there.items()
            if value not in (here.get(key), HIDDEN)
        ]
        path = urlsplit(target).path
        if changed and path in ("", urlsplit(answer.url).path):
            return f"there is more: the next page has {', '.join(changed)}"
        return f"there is more: the next page is at {plain(path, 300)}{' with ' if changed else ''}{', '.join(changed)}"
    return None


def _query(url: str) -> list[tuple[str, str]]:
    try:
        return parse_qsl(urlsplit(url).query, keep_blank_values=True, max_num_fields=200)
    except ValueError:
        return []
