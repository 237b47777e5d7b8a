"""Texts from outside made fit to be shown: control characters visible, length bounded. Standard library only."""

import re
from collections.abc import Mapping

_ELLIPSIS = " …"

_CONTROL = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f]")
_PICTURES: Mapping[int, int] = {
    **{code: 0x2400 + code for code in range(0x20) if chr(code) not in "\t\n\r"},
    0x7F: 0x2421,
    **dict.fromkeys(range(0x80, 0xA0), 0xFFFD),
}


def visible(text: str) -> str:
    """The text with control characters as the pictures that Unicode has for them; tabs and line breaks stay."""
    return text.translate(_PICTURES) if _CONTROL.search(text) else text


def cut(text: str, longest: int) -> str:
    """At most `longest` characters of a text, ending at a paragraph, a sentence or a word where one is near."""
    if len(text) <= longest:
        return text
    if longest <= len(_ELLIPSIS):
        return text[:longest]
    window = text[: longest - len(_ELLIPSIS)]
    ends = (window.rfind("\n\n"), window.rfind(". ") + 1, window.rfind("\n"), window.rfind(" "))
    end = next((end for end in ends if end > len(window) // 2), len(window))
    return window[:end].rstrip() + _ELLIPSIS
