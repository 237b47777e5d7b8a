"""Making text from outside safe for a terminal or a log: without control characters and encoded content."""

import re
import unicodedata

_KEPT = frozenset("\n\t")
_BIDI = frozenset("\u200e\u200f\u061c\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069")
"""Characters that reorder the text beside them: with them, one text can look like another."""

_RUN = re.compile(r"[A-Za-z0-9+/_-]{48,}={0,2}")
_DATA_URI = re.compile(r"(data:[^,\s]{0,200};base64,)[A-Za-z0-9+/_%=-]+", re.IGNORECASE)
_LONGEST_NAME = 1_000
_DIGEST = re.compile(r"(?=[a-fA-F]*[0-9])(?:[0-9a-f]{48,128}|[0-9A-F]{48,128})")
_SEPARATOR = re.compile(r"[/_-]+")
_WORD = re.compile(r"[A-Z]?[a-z0-9]{0,40}")


def neutral(text: str) -> str:
    """Escape everything that a terminal would obey, as `\\x1b`; line ends and tabs stay."""
    if text.isascii() and text.isprintable():
        return text
    return "".join(char if _harmless(char) else _written_out(char) for char in text)


def without_base64(text: str) -> str:
    """Replace every run of characters that is likely to be base64 by its length.

    Paths, names and hex digits stay. A few short pieces of base64 may remain (fewer than 48 characters of a text
    without a `data:` prefix), too little for any content.
    """
    if len(text) < 24:
        return text
    if ";base64," in text.lower():
        text = _DATA_URI.sub(_length_after, text)
    return _RUN.sub(_length_of, text)


def _length_after(found: re.Match[str]) -> str:
    return f"{found[1]}<{len(found[0]) - len(found[1]):,} characters>"


def _length_of(found: re.Match[str]) -> str:
    run = found[0]
    if _DIGEST.fullmatch(run) or (len(run) <= _LONGEST_NAME and all(map(_WORD.fullmatch, _SEPARATOR.split(run)))):
        return run
    return f"<{len(run):,} characters of base64>"


def _harmless(char: str) -> bool:
    return char in _KEPT or (unicodedata.category(char) not in ("Cc", "Cs") and char not in _BIDI)


def _written_out(char: str) -> str:
    return char.encode("unicode_escape").decode("ascii")
