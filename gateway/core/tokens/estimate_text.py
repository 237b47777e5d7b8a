"""An estimate of the tokens of a text, in linear time and without a tokenizer's tables.

The weights are fitted to `o200k_base` over prose in twelve languages, code, markup, JSON, tables, logs and identifiers;
docs/decisions/token-estimate.md says how, and what the error is. tests/core/tokens holds it to that.
"""

_LOWER = bytes(range(0x61, 0x7B))
_UPPER = bytes(range(0x41, 0x5B))
_DIGITS = bytes(range(0x30, 0x3A))
_BREAKS = b"\n\r\t"
_CONTINUATION = bytes(range(0x80, 0xC0))
# The first bytes of characters beyond ASCII in UTF-8 (RFC 3629, section 4), by the scripts that share them.
_LATIN = bytes(range(0xC2, 0xCE))
_CYRILLIC_TO_ARABIC = bytes(range(0xCE, 0xE0))
_INDIC_AND_SIGNS = bytes(range(0xE0, 0xE3))
_EAST_ASIAN = bytes(range(0xE3, 0xF0))
_EMOJI = bytes(range(0xF0, 0xF5))

_WEIGHTS: tuple[tuple[bytes, float], ...] = (
    (_LOWER, 0.223),
    (_UPPER, 0.41),
    (_DIGITS, 0.81),
    (_BREAKS, 1.06),
    (_LATIN, 2.2),
    (_CYRILLIC_TO_ARABIC, 0.365),
    (_INDIC_AND_SIGNS, 0.35),
    (_EAST_ASIAN, 0.82),
    (_EMOJI, 1.7),
)
_SPACE = 0.008
_PUNCTUATION = 0.52
_JOINTS: tuple[tuple[bytes, float], ...] = ((b'":"', 0.56), (b'","', 0.56), (b'":{"', 1.08), (b'"},"', 1.08))
"""Marks that stand together in compact JSON, and are one token: how much less they cost than one by one."""
_ENCODED = 0.68
"""Tokens of one character of base64, in which tokenizers find no words."""
_LONGEST_WORD = 40
"""Characters of the average word above which a text counts as encoded bytes."""


def text_tokens(text: str) -> int:
    """Return the estimated number of tokens of a text; 0 for an empty one, and otherwise at least 1."""
    if not text:
        return 0
    written = text.encode("utf-8", "replace")
    weighed = [(_occurrences(written, members), weight) for members, weight in _WEIGHTS]
    spaces = written.count(b" ")
    continuing = 0 if text.isascii() else _occurrences(written, _CONTINUATION)
    marks = len(written) - spaces - continuing - sum(count for count, _ in weighed)
    alphanumeric, breaks = sum(count for count, _ in weighed[:3]), weighed[3][0]
    if alphanumeric > _LONGEST_WORD * (1 + spaces + breaks) and weighed[1][0] * 8 > alphanumeric:
        return max(1, round(_ENCODED * len(written)))
    tokens = sum(count * weight for count, weight in weighed) + spaces * _SPACE + marks * _PUNCTUATION
    tokens -= sum(written.count(joint) * less for joint, less in _JOINTS)
    return max(1, round(tokens))


def _occurrences(written: bytes, members: bytes) -> int:
    """Return how many of the bytes are among `members`: one pass, in C."""
    return len(written) - len(written.translate(None, members))
