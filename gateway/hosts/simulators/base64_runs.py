"""Finding base64 in text, where a model pays for every character of it and sees nothing.

Ordinary text must never count, however long it is, so a run of base64 characters is judged by features that only
encoded bytes have: the beginnings of media files, or characters that change their kind as often as random ones do.
"""

import re
from collections.abc import Iterator
from itertools import pairwise

_RUN = re.compile(r"(?<![A-Za-z0-9+/_-])[A-Za-z0-9+/_-]{24,}={0,2}")
_DATA_URI = re.compile(r"data:[\w.+-]+/[\w.+-]+(?:;[^,;\s]{1,64}){0,4};base64,\Z", re.IGNORECASE)
_MEDIA_STARTS = ("iVBORw0KGgo", "R0lGOD", "UklGR", "JVBERi0", "PHN2Zy", "PD94bWw", "/9j/4", "/9j/2", "T2dnUw", "ZkxhQ")
_WRAPS = frozenset({"\n", "\r\n", "\\", "\\r\\"})
"""Separators between the lines of wrapped base64, including those escaped into a JSON string."""

LONG = 120
"""The shortest run that counts by its character distribution alone, in characters."""
SHORT = 64
"""The shortest run that counts because it begins like a media file."""
SAMPLE = 4_096


def base64_runs(text: str) -> list[str]:
    """Return every piece of `text` that is base64. Wrapped base64 gives one piece for each line."""
    return [run for block in _blocks(text) for run in block]


def _blocks(text: str) -> Iterator[list[str]]:
    """Yield the runs to judge; those of one wrapped text are together."""
    block: list[str] = []
    end, counts = -1, False
    for match in _RUN.finditer(text):
        run = match[0]
        continues = bool(block) and text[end : match.start()] in _WRAPS
        if not continues:
            if counts:
                yield block
            block, counts = [], _counts(run, text[max(0, match.start() - 200) : match.start()])
        block.append(run)
        # A wrapped line is too short to count alone; several of them together may.
        if continues and not counts:
            counts = _counts("".join(block), "")
        end = match.end()
    if counts:
        yield block


def _counts(run: str, before: str) -> bool:
    if _DATA_URI.search(before):
        return True
    if len(run) >= SHORT and run.startswith(_MEDIA_STARTS):
        return True
    return len(run) >= LONG and looks_encoded(run)


def looks_encoded(run: str) -> bool:
    """Whether the characters of `run` look like encoded bytes, not like words, numbers, hex digits or a path.

    Random bytes give 41 % capitals, 41 % small letters, 16 % digits, and a change of kind at two characters out of
    three. Words and paths are mostly small letters, and change at one out of five or fewer.
    """
    middle = max(0, len(run) // 2 - SAMPLE // 2)
    return any(_looks_random(sample) for sample in {run[:SAMPLE], run[middle : middle + SAMPLE], run[-SAMPLE:]})


def _looks_random(sample: str) -> bool:
    small = sum(map(str.islower, sample))
    large = sum(map(str.isupper, sample))
    digits = sum(map(str.isdigit, sample))
    changes = sum(_kind(a) != _kind(b) for a, b in pairwise(sample))
    return (
        len(set(sample)) >= 24
        and min(small, large, digits) >= 0.03 * len(sample)
        and max(small, large) <= 0.7 * len(sample)
        and changes >= 0.35 * len(sample)
    )


def _kind(character: str) -> int:
    return 0 if character.islower() else 1 if character.isupper() else 2 if character.isdigit() else 3
