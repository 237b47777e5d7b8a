"""The badge of a host: how many cases with images its model sees, as a small SVG."""

from collections.abc import Iterable
from html import escape

from gateway.core.profiles.matrix import CaseRecord

_LABEL = "images seen"
_WIDTH = 6.6
"""Of a character at 11 px, as wide as in the widest of common fonts."""
_COLOURS = ((1.0, "#116329"), (0.7, "#4a5d0f"), (0.4, "#7a4100"), (0.0, "#a40e26"))
"""From which share on. White text has a contrast of at least 4.5 on each."""


def images_seen(run: Iterable[CaseRecord]) -> tuple[int, int]:
    """Return how many of the cases with images are seen directly, and how many there are, on all model APIs."""
    cells = [record.directly for record in run if record.directly and record.directly.of]
    return sum(cell.verdict == "seen" for cell in cells), len(cells)


def badge_words(run: Iterable[CaseRecord]) -> str:
    """Return what the badge says: `images seen 10/13, 2.1.328`."""
    records = list(run)
    seen, of = images_seen(records)
    return f"{_LABEL} {seen}/{of}, {records[0].version}"


def badge(run: Iterable[CaseRecord]) -> str:
    """Return the badge of a host's run."""
    records = list(run)
    seen, of = images_seen(records)
    value = badge_words(records).removeprefix(f"{_LABEL} ")
    left, right = (round(len(words) * _WIDTH) + 12 for words in (_LABEL, value))
    colour = next(colour for share, colour in _COLOURS if seen >= share * of)
    title = escape(f"{records[0].title}: {_LABEL} {value}")
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{left + right}" height="20" role="img" aria-label="{title}">\n'
        f"<title>{title}</title>\n"
        f'<rect width="{left + right}" height="20" rx="3" fill="#3d444d"/>\n'
        f'<path d="M{left} 0h{right - 3}a3 3 0 0 1 3 3v14a3 3 0 0 1-3 3h-{right - 3}z" fill="{colour}"/>\n'
        '<g fill="#fff" text-anchor="middle" font-family="Verdana,DejaVu Sans,sans-serif" font-size="11">\n'
        f'<text x="{left / 2:g}" y="14">{_LABEL}</text>\n'
        f'<text x="{left + right / 2:g}" y="14">{escape(value)}</text>\n'
        "</g>\n</svg>\n"
    )
