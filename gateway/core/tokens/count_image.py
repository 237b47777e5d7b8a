"""The tokens of one image, from its size in pixels. Pure arithmetic; each way of counting names its source."""

from collections.abc import Callable
from math import ceil, floor, sqrt

from gateway.core.model.media_types import PixelSize
from gateway.core.tokens.formula import ImageFormula

_LONGEST_EDGE = 1 << 16
_MOST_PIXELS = 100_000_000
"""No model takes an image of more pixels, or of a longer edge; a file header may claim any."""


def image_tokens(formula: ImageFormula, pixels: PixelSize | None) -> int | None:
    """Return the tokens of an image; None if the formula or the size is unknown, or no model takes such a size."""
    if formula.by == "fixed":
        return formula.each
    if pixels is None or not all(0 < edge < _LONGEST_EDGE for edge in pixels):
        return None
    if pixels.width * pixels.height > _MOST_PIXELS:
        return None
    match formula.by:
        case "patches":
            return _patches(formula, *pixels)
        case "tiles":
            return _tiles(formula, *pixels)
        case "crops":
            return _crops(formula, *pixels)
        case _:
            return None


def _patches(formula: ImageFormula, width: int, height: int) -> int | None:
    """Count patches of the image after it was scaled: to the longest edge first, then until the most patches hold."""
    side, most = formula.side, formula.max_patches
    if side is None:
        return None
    if formula.max_edge is not None and max(width, height) > formula.max_edge:
        scale = formula.max_edge / max(width, height)
        width, height = max(1, round(width * scale)), max(1, round(height * scale))
    count = round if formula.rounding == "nearest" else ceil
    columns, rows = max(1, count(width / side)), max(1, count(height / side))
    if most is not None and columns * rows > most:
        columns, rows = _SHRINK[formula.shrink](width, height, side, most)
    elif columns * rows < formula.min_patches:
        grow = sqrt(formula.min_patches * side * side / (width * height))
        columns, rows = ceil(width * grow / side), ceil(height * grow / side)
    return formula.base + ceil((columns + formula.per_row) * rows * formula.multiplier)


def _largest(width: int, height: int, side: int, most: int) -> tuple[int, int]:
    """Return the patches of the largest image of these proportions that needs at most `most`.

    https://platform.claude.com/docs/en/build-with-claude/vision-coordinates: the largest size within both limits. At
    that size one edge is a whole number of patches, so only those sizes are tried, from the largest on.
    """
    area = sqrt(most * side * side / (width * height))
    columns, rows = floor(width * area / side), floor(height * area / side)
    while columns > 0 or rows > 0:
        # Whichever of the two edges would leave the image larger.
        if columns * height >= rows * width:
            if columns * (other := -(-columns * height // width)) <= most:
                return columns, max(1, other)
            columns -= 1
        else:
            if rows * (other := -(-rows * width // height)) <= most:
                return max(1, other), rows
            rows -= 1
    return 1, 1


def _whole(width: int, height: int, side: int, most: int) -> tuple[int, int]:
    """Return the patches of an image that is shrunk to the area of `most`, and then until an edge is whole patches.

    https://developers.openai.com/api/docs/guides/images-vision, "Patch-based image tokenization".
    """
    area = sqrt(most * side * side / (width * height))
    columns, rows = width * area / side, height * area / side
    shrink = min(max(1, floor(columns)) / columns, max(1, floor(rows)) / rows, 1.0)
    fitted = [ceil(int(edge * area * shrink) / side) for edge in (width, height)]
    return max(1, min(fitted[0], most)), max(1, min(fitted[1], most))


def _floored(width: int, height: int, side: int, most: int) -> tuple[int, int]:
    """Return the patches of an image that is shrunk to the area of `most`, each edge rounded down.

    https://github.com/QwenLM/Qwen3-VL, qwen_vl_utils `smart_resize`.
    """
    area = sqrt(most * side * side / (width * height))
    return max(1, min(most, floor(width * area / side))), max(1, min(most, floor(height * area / side)))


_SHRINK: dict[str, Callable[[int, int, int, int], tuple[int, int]]] = {
    "largest": _largest,
    "whole": _whole,
    "floored": _floored,
}


def _tiles(formula: ImageFormula, width: int, height: int) -> int | None:
    """Count tiles: https://developers.openai.com/api/docs/guides/images-vision, "Tile-based image tokenization"."""
    side, each = formula.side, formula.each
    if side is None or each is None:
        return None
    scale = min(1.0, formula.max_edge / max(width, height)) if formula.max_edge is not None else 1.0
    if formula.short_edge is not None:
        scale = min(scale, formula.short_edge / min(width, height))
    tiles = ceil(max(1, round(width * scale)) / side) * ceil(max(1, round(height * scale)) / side)
    return formula.base + each * (tiles if formula.max_tiles is None else min(tiles, formula.max_tiles))


def _crops(formula: ImageFormula, width: int, height: int) -> int | None:
    """Count crops: https://ai.google.dev/gemini-api/docs/image-understanding, "Token calculation".

    The limits: https://firebase.google.com/docs/ai-logic/input-file-requirements, "Images".
    """
    if formula.each is None:
        return None
    if formula.max_edge is not None and max(width, height) > formula.max_edge:
        scale = formula.max_edge / max(width, height)
        width, height = max(1, round(width * scale)), max(1, round(height * scale))
    if formula.small_edge is not None and max(width, height) <= formula.small_edge:
        return formula.each
    unit = max(formula.min_side, floor(min(width, height) / 1.5))
    if formula.max_side is not None:
        unit = min(unit, formula.max_side)
    return ceil(width / unit) * ceil(height / unit) * formula.each
