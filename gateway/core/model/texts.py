"""Making texts from outside fit to be shown: nothing hidden in them, bounded in length. Standard library only.

A model reads every character; a person who approves a tool sees only those that are drawn. So what is declared to hosts
loses the characters that have no form of their own: the tag characters (ASCII in disguise), marks that reverse the
direction of text, zero-width and other invisible characters. Those that scripts and emoji need are kept:

- the joiners U+200C and U+200D after a letter or mark of a script that joins (Arabic, Persian, Indic ...; compare
  RFC 5892, appendix A), and U+200D between two emoji;
- one variation selector after a character that may have one: a sign, a digit, an ideograph, not a Latin letter;
- the zero-width space between letters of Thai, Lao, Burmese and Khmer, which have no other sign for the end of a word;
- U+200E, U+200F and U+061C beside text that runs from right to left, where they reverse nothing;
- the tags of the three flags that are made of them (Unicode Technical Standard 51, annex C).

The characters: Unicode Standard, DerivedCoreProperties.txt, Default_Ignorable_Code_Point; and the bidirectional
controls of Unicode Technical Report 36, section 3.
"""

import re
import unicodedata
from collections.abc import Callable, Iterator, Mapping

_ELLIPSIS = " …"

_CONTROL = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u2028\u2029]")
_PICTURES: Mapping[int, int] = {
    **{code: 0x2400 + code for code in range(0x20) if chr(code) not in "\t\n\r"},
    0x7F: 0x2421,
    **dict.fromkeys(range(0x80, 0xA0), 0xFFFD),
    **dict.fromkeys((0x2028, 0x2029), 0x0A),
}


_FLAGS = tuple(
    "\U0001f3f4" + "".join(chr(0xE0000 + ord(letter)) for letter in region) + "\U000e007f"
    for region in ("gbeng", "gbsct", "gbwls")
)
_JUDGED = "\u061c\u180b-\u180f\u200b-\u200f\ufe00-\ufe0f\U000e0020-\U000e007f\U000e0100-\U000e01ef"
"""Hidden characters that may be needed where they stand; all others never are. Both as in a regular expression."""
_ALWAYS_HIDDEN = (
    "\xad\u034f\u115f\u1160\u17b4\u17b5\u202a-\u202e\u2060-\u206f\u3164\ufeff\uffa0\ufff0-\ufffb"
    "\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e001f\U000e0080-\U000e00ff\U000e01f0-\U000e0fff"
)
_NEVER_NEEDED = re.compile(
    rf"[{_ALWAYS_HIDDEN}]+"
    rf"|(?<=[A-Za-z\s])(?:(?![\u061c\u200e\u200f])[{_JUDGED}])+"
    r"|(?<=[A-Za-z\s])[\u061c\u200e\u200f](?=[\x00-\u058f])"
)
"""Nothing is needed after an ASCII letter or a blank, but marks of direction before text that runs from the right."""
_HIDDEN = re.compile("|".join(_FLAGS) + f"|[{_JUDGED}]+")
_DRAWN_TWICE = re.compile(f"[^{_ALWAYS_HIDDEN}{_JUDGED}]{{2}}")
_PIECE = 64 * 1024
"""Characters of a text that are gone through at once."""
_JOINING = re.compile(
    r"[\u0600-\u1cff\ua800-\uabff\ufb50-\ufdff\ufe70-\ufefc\U00010a00-\U00011fff\U0001e900-\U0001e95f]"
)
_WITHOUT_SPACES = re.compile(r"[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\ua9e0-\ua9ff\uaa60-\uaa7f]")
_IDEOGRAPH = re.compile(r"[\u3400-\u9fff\uf900-\ufaff\U00020000-\U0003ffff]")
_MONGOLIAN = re.compile(r"[\u1800-\u180a\u1810-\u18af]")
_FROM_THE_RIGHT = re.compile(
    r"[\u0590-\u061b\u061d-\u08ff\ufb1d-\ufdff\ufe70-\ufefc\U00010800-\U00010fff\U0001e800-\U0001efff]"
)
_NON_JOINER, _JOINER, _ZERO_WIDTH_SPACE = "\u200c", "\u200d", "\u200b"
_EMOJI_STYLE = "\ufe0f"
_MARKS_OF_DIRECTION = "\u200e\u200f\u061c"


def visible(text: str) -> str:
    """Return the text without anything that is not seen; the same object if there is nothing of the kind.

    Control characters are replaced by the pictures that Unicode has for them; tabs and line breaks stay. Characters
    without a form of their own are removed. Linear in time.
    """
    return _by_pieces(_visible, text)


def without_hidden(text: str) -> str:
    """Return the text without characters that are not drawn; the same object if there are none.

    Control characters stay: this is for content, which is not printed as it is. Linear in time.
    """
    return text if text.isascii() else _by_pieces(_without_hidden, text)


def _visible(text: str) -> str:
    if _CONTROL.search(text):
        text = text.translate(_PICTURES)
    return _without_hidden(text)


def _without_hidden(text: str) -> str:
    return text if text.isascii() else _HIDDEN.sub(_kept, _NEVER_NEEDED.sub("", text))


def _by_pieces(change: Callable[[str], str], text: str) -> str:
    """Return the changed text; the same object if nothing changes.

    A regular expression lets no other thread run while it goes through a text, so a long one is changed piece by piece.
    """
    changed = change(text) if len(text) <= _PIECE else "".join(map(change, _pieces(text)))
    return text if changed == text else changed


def _pieces(text: str) -> Iterator[str]:
    """Split a long text between two characters that are drawn, unless there are none for long."""
    start = 0
    while start < len(text):
        end = start + _PIECE
        found = _DRAWN_TWICE.search(text, end - 1, end + _PIECE)
        end = found.start() + 1 if found else end
        yield text[start:end]
        start = end


def has_hidden(text: str) -> bool:
    """Whether a text has characters without a form of their own that the text does not need."""
    return without_hidden(text) is not text


def _kept(found: re.Match[str]) -> str:
    """Return those of hidden characters beside one another that what precedes and follows them needs.

    These are the first, one after a first that makes an emoji of a sign, and a last that marks a direction.
    """
    signs, text = found[0], found.string
    if signs in _FLAGS:
        return signs
    before, after = text[max(found.start() - 1, 0) : found.start()], text[found.end() : found.end() + 1]
    kept = signs[0] if before and _is_needed(signs[0], before, signs[1:2] or after) else ""
    if kept == _EMOJI_STYLE and signs[1:2] == _JOINER and _is_needed(_JOINER, before, signs[2:3] or after):
        kept += _JOINER
    if signs[-1] in _MARKS_OF_DIRECTION and not (kept and len(signs) == 1) and _FROM_THE_RIGHT.match(after):
        kept += signs[-1]
    return kept


def _is_needed(sign: str, before: str, after: str) -> bool:
    if sign in _MARKS_OF_DIRECTION:
        return _FROM_THE_RIGHT.match(before) is not None
    if sign == _JOINER and after and _is_emoji(before) and _is_emoji(after):
        return True
    if sign in (_NON_JOINER, _JOINER):
        return _JOINING.match(before) is not None and unicodedata.category(before)[0] in "LM"
    if sign == _ZERO_WIDTH_SPACE:
        return _WITHOUT_SPACES.match(before) is not None
    if "\ufe00" <= sign <= _EMOJI_STYLE:
        return unicodedata.category(before)[0] not in "CZ" and not (before.isascii() and before.isalpha())
    if "\U000e0100" <= sign <= "\U000e01ef":
        return _IDEOGRAPH.match(before) is not None
    return "\u180b" <= sign <= "\u180f" and _MONGOLIAN.match(before) is not None


def _is_emoji(sign: str) -> bool:
    return unicodedata.category(sign) in ("So", "Sm", "Sk")


def cut(text: str, longest: int) -> str:
    """Return at most `longest` characters of a text, ending at a paragraph, a sentence or a word if one is near."""
    if len(text) <= longest:
        return text
    if longest <= len(_ELLIPSIS):
        return text[:longest]
    window = text[: longest - len(_ELLIPSIS)]
    ends = (window.rfind("\n\n"), window.rfind(". ") + 1, window.rfind("\n"), window.rfind(" "))
    end = next((end for end in ends if end > len(window) // 2), len(window))
    return window[:end].rstrip() + _ELLIPSIS
