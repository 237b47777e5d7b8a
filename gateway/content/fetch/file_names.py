"""Sanitize file names from others: no folders, and nothing that a terminal or a shell would interpret."""

import re
import unicodedata
from urllib.parse import unquote, urlsplit

_ENCODINGS = frozenset({"utf-8", "iso-8859-1"})
"""The encodings of RFC 8187; Python has others that are not text encodings."""
_LONGEST = 150
_EXTENDED = re.compile(r"filename\*\s*=\s*([\w!#$%&+^`{}~.-]+)'[^']*'([^\s;]+)", re.IGNORECASE)
_QUOTED = re.compile(r'filename\s*=\s*"((?:[^"\\]|\\.){0,1000})"', re.IGNORECASE)
_PLAIN = re.compile(r'filename\s*=\s*([^\s;"]{1,1000})', re.IGNORECASE)
_FORBIDDEN = re.compile(r'[<>:"|?*\\/]')
"""Characters that some file system does not permit in names."""


def clean_name(name: str | None) -> str | None:
    """Return the last part of a path as a sanitized file name; None if nothing is left of it."""
    if not name:
        return None
    last = re.split(r"[\\/]", name[-4_096:])[-1]
    visible = "".join(" " if unicodedata.category(char)[0] in "CZ" else char for char in last)
    harmless = " ".join(_FORBIDDEN.sub("_", visible).split()).strip(". ")
    if len(harmless) > _LONGEST:
        stem, dot, ending = harmless.rpartition(".")
        keep = f"{dot}{ending}" if stem and len(ending) <= 16 else ""
        harmless = harmless[: _LONGEST - len(keep)].rstrip(". ") + keep
    return harmless or None


def name_in_disposition(header: str | None) -> str | None:
    """Return the sanitized file name in a Content-Disposition header (RFC 6266; `filename*` before `filename`)."""
    if not header:
        return None
    extended = _EXTENDED.search(header)
    if extended and extended[1].lower() in _ENCODINGS:
        return clean_name(unquote(extended[2], encoding=extended[1], errors="replace"))
    if quoted := _QUOTED.search(header):
        return clean_name(re.sub(r"\\(.)", r"\1", quoted[1]))
    found = _PLAIN.search(header)
    return clean_name(unquote(found[1])) if found else None


def name_in_url(url: str) -> str | None:
    """Return the last part of a URL's path as a sanitized file name."""
    return clean_name(unquote(urlsplit(url).path.rstrip("/").rpartition("/")[2]))
