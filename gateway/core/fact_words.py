"""Names, counts, sizes and times as words, for lines, messages and tables."""

import unicodedata

from gateway.core.model.media_types import PixelSize

_LONGEST_NAME = 300


def plain(name: str, longest: int = _LONGEST_NAME) -> str:
    """Make a name or address from outside safe within a line: no control characters, blanks folded, cut if too long."""
    visible = "".join(" " if unicodedata.category(char)[0] in "CZ" else char for char in name[: 4 * longest])
    folded = " ".join(visible.split())
    return folded if len(folded) <= longest else folded[: longest - 1] + "…"


def counted(number: int, noun: str) -> str:
    """Format a count: `1 tool`, `1,200 tools`, `no tools`."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}" if number else f"no {noun}s"


def size_words(count: int) -> str:
    """Format a number of bytes: `812 bytes`, `34 KB`, `1.2 MB`."""
    if count < 1_000:
        return f"{count} byte{'' if count == 1 else 's'}"
    for unit in ("KB", "MB"):
        count_in = count / (1_000 if unit == "KB" else 1_000_000)
        if count_in < 999.5:
            return f"{count_in:.1f} {unit}" if count_in < 9.95 else f"{count_in:.0f} {unit}"
    return f"{count / 1_000_000_000:.1f} GB"


def pixel_words(size: PixelSize) -> str:
    """Format a size in pixels: `1200x800`."""
    return f"{size.width}x{size.height}"


def join_facts(*parts: str | None) -> str:
    """Join the known facts about something with commas."""
    return ", ".join(part for part in parts if part)


def seconds_words(seconds: float) -> str:
    """Format a duration: `2.5 s`, `3 min 20 s`."""
    if seconds < 59.95:
        return f"{seconds:.1f} s"
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes:,} min {rest} s" if rest else f"{minutes:,} min"


def age_words(seconds: float) -> str:
    """Format an age: `40 minutes`, `3 hours`, `2 days`."""
    for unit, length in (("day", 86_400), ("hour", 3_600), ("minute", 60)):
        if seconds >= length:
            return counted(int(seconds // length), unit)
    return "less than a minute"


def page_count(pages: int) -> str:
    """Format a number of pages: `12 pages`."""
    return f"{pages:,} page{'' if pages == 1 else 's'}"


def sentence(words: str) -> str:
    """Begin with a capital letter, unless the first word is a command, a key or an option."""
    first = words.partition(" ")[0].rstrip(",;:")
    return words[:1].upper() + words[1:] if first.isalpha() else words


_KINDS = {
    "image": "an image",
    "audio": "audio",
    "video": "a video",
    "document": "a document",
    "3d": "a 3D model",
    "cad": "a CAD file",
}


def kind_words(kind: str | None) -> str:
    """Format a kind of content: `an image`, `audio`, `a 3D model`; any kind is `a file`."""
    return _KINDS.get(kind or "", "a file")
