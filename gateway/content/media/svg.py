"""Rewrite an SVG so that nothing in it refers to anything outside. Works on text only; runs in a worker.

Elements, attributes and text are kept, in order. Comments, processing instructions, the document type, and references
(`href` under any prefix, `url(...)` and `@import` in CSS) are left out, except references to a `#fragment` or `data:`.
An image in a `data:` URI gets its actual type; an SVG in one is rewritten as well. Entity declarations are refused.
expat never opens external entities, and parsing does not recurse, however deep the elements nest.
"""

import binascii
import re
from typing import NamedTuple
from urllib.parse import unquote_to_bytes
from xml.parsers import expat

import pybase64

from gateway.core.model.media_types import HEAD_BYTES, PixelSize, inspect
from gateway.errors import MediaError

MOST_NESTED = 2
"""How deep SVGs may nest in `data:` URIs of SVGs."""

MOST_DEPTH = 300
"""How deep elements may nest. resvg needs up to 40 KB of stack for each level (`gateway.content.media.vector`)."""

_RASTER = frozenset({"image/png", "image/jpeg", "image/gif", "image/webp"})
_SVG = "image/svg+xml"
_SVG_NAMESPACE = "http://www.w3.org/2000/svg"
_XLINK_NAMESPACE = "http://www.w3.org/1999/xlink"
_DATA = re.compile(r"data:([^,]*),", re.IGNORECASE)

_PIXELS = {"": 1.0, "px": 1.0, "pt": 4 / 3, "pc": 16.0, "in": 96.0, "cm": 96 / 2.54, "mm": 96 / 25.4, "em": 16.0}
"""CSS pixels per unit (CSS Values and Units 4, section 6.2; an em has the usual 16)."""

_LENGTH = re.compile(r"\s*\+?([0-9]*\.?[0-9]+(?:e[-+]?[0-9]+)?)\s*([a-z]*)\s*", re.IGNORECASE)
_LARGEST_LENGTH = 1_000_000.0

_CSS_COMMENT = re.compile(r"/\*.*?(?:\*/|\Z)", re.DOTALL)
_CSS_ESCAPE = re.compile(r"\\(?:([0-9a-fA-F]{1,6})\s?|(.))", re.DOTALL)
_CSS_URL = re.compile(r"""url\(\s*(?:"([^"]*)"|'([^']*)'|([^)"']*))\s*\)?""", re.IGNORECASE)
_CSS_IMPORT = re.compile(r"@import[^;]*(?:;|\Z)", re.IGNORECASE)
_CSS_HREF = re.compile(r"href\s*:", re.IGNORECASE)


class Cleaned(NamedTuple):
    """The rewritten SVG, its declared size in CSS pixels, and whether it contains text (which needs fonts)."""

    text: str
    size: PixelSize | None
    has_text: bool


def clean(content: bytes, max_pixels: int, depth: int = 0) -> Cleaned:
    """Remove all references to the outside. Raises MediaError if `content` is not an SVG or declares entities."""
    return _Rewriting(max_pixels, depth).run(content)


class _Rewriting:
    """One pass of expat over one document, which is written out as it is read."""

    def __init__(self, max_pixels: int, depth: int) -> None:
        self._max_pixels = max_pixels
        self._depth = depth
        self._out: list[str] = []
        self._open = 0
        self._css: list[str] | None = None
        self._size: PixelSize | None = None
        self._has_text = False

    def run(self, content: bytes) -> Cleaned:
        parser = expat.ParserCreate()
        parser.buffer_text = True
        parser.StartElementHandler = self._start
        parser.EndElementHandler = self._end
        parser.CharacterDataHandler = self._characters
        parser.EntityDeclHandler = _refuse_entity
        try:
            parser.Parse(content, True)
        except expat.ExpatError as error:
            raise MediaError(f"it is not a well-formed SVG: {error}") from error
        return Cleaned("".join(self._out), self._size, self._has_text)

    def _start(self, name: str, attributes: dict[str, str]) -> None:
        local = _local(name)
        self._open += 1
        if self._open > MOST_DEPTH:
            raise MediaError(f"its elements nest deeper than {MOST_DEPTH:,}")
        if not self._out:
            attributes = self._root(name, local, attributes)
        kept = ((key, self._attribute(key, value)) for key, value in attributes.items())
        written = "".join(f' {key}="{value.translate(_IN_ATTRIBUTE)}"' for key, value in kept if value is not None)
        self._flush_css()
        self._out.append(f"<{name}{written}>")
        if local == "style":
            self._css = []
        elif local == "text":
            self._has_text = True

    def _end(self, name: str) -> None:
        self._flush_css()
        self._open -= 1
        self._out.append(f"</{name}>")

    def _characters(self, text: str) -> None:
        if self._css is not None:
            self._css.append(text)
        else:
            self._out.append(text.translate(_IN_TEXT))

    def _flush_css(self) -> None:
        if self._css is not None:
            self._out.append(_clean_css("".join(self._css)).translate(_IN_TEXT))
            self._css = None

    def _root(self, name: str, local: str, attributes: dict[str, str]) -> dict[str, str]:
        if local != "svg":
            raise MediaError(f"it is not an SVG: its root is {name[:40]!r}")
        self._size = _natural_size(attributes)
        if self._size:
            # In pixels and without a position, because it may be placed inside another svg.
            told = {"width": str(self._size.width), "height": str(self._size.height)}
            attributes = {key: value for key, value in attributes.items() if key not in ("x", "y")} | told
        # Browsers draw an svg within a page without these, so people and models leave them out.
        missing = {"xmlns:xlink": _XLINK_NAMESPACE}
        if name == "svg":
            missing["xmlns"] = _SVG_NAMESPACE
        return missing | attributes

    def _attribute(self, name: str, value: str) -> str | None:
        if name == "xmlns" or name.startswith("xmlns:"):
            return value
        local = _local(name)
        if local == "href":
            return self._reference(value)
        if local in ("base", "src"):
            return None
        if local == "style" or "url" in value.lower() or "\\" in value:
            return _clean_css(value)
        return value

    def _reference(self, value: str) -> str | None:
        value = value.strip()
        if value.startswith("#"):
            return value
        prefix = _DATA.match(value)
        return self._embedded(prefix[1], value[prefix.end() :]) if prefix else None

    def _embedded(self, parameters: str, data: str) -> str | None:
        content = _decoded(parameters, data)
        if content is None:
            return None
        finding = inspect(content[:HEAD_BYTES])
        if finding.media_type in _RASTER:
            # resvg decodes any size that the header declares, so the size is checked here.
            if finding.size is None or finding.size.width * finding.size.height > self._max_pixels:
                return None
            return _data_uri(finding.media_type, content)
        if finding.media_type == _SVG and self._depth < MOST_NESTED:
            nested = clean(content, self._max_pixels, self._depth + 1)
            self._has_text = self._has_text or nested.has_text
            return _data_uri(_SVG, nested.text.encode())
        return None


def _refuse_entity(*_: object) -> None:
    raise MediaError("it declares XML entities, which are not allowed")


def _local(name: str) -> str:
    return name.rpartition(":")[2].lower()


_IN_TEXT = {ord(raw): f"&#{ord(raw)};" for raw in "&<>\r"}
_IN_ATTRIBUTE = {ord(raw): f"&#{ord(raw)};" for raw in '&<>"\t\n\r'}


def _decoded(parameters: str, data: str) -> bytes | None:
    if ";base64" not in parameters.lower().replace(" ", ""):
        return unquote_to_bytes(data)
    plain = re.sub(rb"\s", b"", unquote_to_bytes(data)).rstrip(b"=")
    try:
        return pybase64.b64decode(plain + b"=" * (-len(plain) % 4), validate=True)
    except (binascii.Error, ValueError):
        return None


def _data_uri(media_type: str | None, content: bytes) -> str:
    return f"data:{media_type};base64,{pybase64.b64encode(content).decode('ascii')}"


def _clean_css(css: str) -> str:
    """Return `css` unchanged if it refers to nothing outside; else unescaped, with `none` for outside references."""
    plain = _CSS_ESCAPE.sub(_unescaped, _CSS_COMMENT.sub(" ", css))
    cleaned = _CSS_HREF.sub("-no-", _CSS_IMPORT.sub("", _CSS_URL.sub(_local_url, plain)))
    return css if cleaned == plain else cleaned


def _unescaped(match: re.Match[str]) -> str:
    if match[1] is None:
        return match[2]
    code = int(match[1], 16)
    return chr(code) if 0 < code < 0xD800 or 0xDFFF < code < 0x110000 else "\ufffd"


def _local_url(match: re.Match[str]) -> str:
    reference = next(group for group in match.groups() if group is not None).strip()
    return match[0] if reference.startswith("#") or reference.lower().startswith("data:") else "none"


def _natural_size(attributes: dict[str, str]) -> PixelSize | None:
    """Return the root's width and height in CSS pixels, completed from its viewBox; None if the size is unknown."""
    width, height = _length(attributes.get("width")), _length(attributes.get("height"))
    box = _view_box(attributes.get("viewBox"))
    if width is None and height is None and box:
        width, height = box
    elif width is None and height is not None and box:
        width = height * box[0] / box[1]
    elif height is None and width is not None and box:
        height = width * box[1] / box[0]
    if width is None or height is None:
        return None
    return PixelSize(*(max(1, round(min(side, _LARGEST_LENGTH))) for side in (width, height)))


def _length(text: str | None) -> float | None:
    match = _LENGTH.fullmatch(text or "")
    unit = match and _PIXELS.get(match[2].lower())
    length = float(match[1]) * unit if match and unit else 0.0
    return length if length > 0 else None


def _view_box(text: str | None) -> tuple[float, float] | None:
    try:
        _, _, width, height = (float(number) for number in re.split(r"[\s,]+", (text or "").strip()))
    except ValueError:
        return None
    return (width, height) if 0 < width < float("inf") and 0 < height < float("inf") else None
