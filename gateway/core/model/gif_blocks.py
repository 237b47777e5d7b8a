"""Whether a GIF is all there, by its blocks (https://www.w3.org/Graphics/GIF/spec-gif89a.txt).

The trailer is one byte that compressed image data has as well, so that only a walk over the blocks tells them apart.
"""

_MOST_BLOCKS = 100_000
"""A walk takes about 10 ms for as many: 25 MB of full blocks. One of longer files is given up."""

_HEADER, _SCREEN, _IMAGE = 6, 7, 9
_EXTENSION, _IMAGE_SEPARATOR, _TRAILER = 0x21, 0x2C, 0x3B


def ends_with_trailer(gif: bytes) -> bool:
    """Whether the blocks of a GIF are complete up to its trailer; False if they are too many to tell."""
    left = _MOST_BLOCKS
    try:
        at = _HEADER + _SCREEN + _color_table(gif[_HEADER + 4])
        while left and gif[at] != _TRAILER:
            at, left = _behind(gif, at, left)
    except (IndexError, ValueError):
        return False
    return left > 0


def _behind(gif: bytes, at: int, left: int) -> tuple[int, int]:
    """Return where the block at `at` ends, and how many more may be looked at."""
    if gif[at] == _EXTENSION:
        at += 2
    elif gif[at] == _IMAGE_SEPARATOR:
        at += 1 + _IMAGE + _color_table(gif[at + _IMAGE]) + 1
    else:
        raise ValueError(f"no block of a GIF begins with {gif[at]:#x}")
    while left and (size := gif[at]):
        at, left = at + size + 1, left - 1
    return at + 1, max(left - 1, 0)


def _color_table(packed: int) -> int:
    """Return the size in bytes of the table of colors that the fields of a screen or an image announce."""
    return 3 << (packed & 7) + 1 if packed & 0x80 else 0
