"""Formulas of token counts: what a model's vendor has published of the cost of its inputs, as data with evidence.

A value that nobody has published is left out and counts as unknown; nothing is assumed in its place.
"""

from collections.abc import Mapping
from typing import Annotated, Literal

from pydantic import Field

from gateway.core.profiles.inheritance import Resolver
from gateway.core.profiles.profile import Count, Evidence, FactSource, Match, Rules

Rate = Annotated[float, Field(gt=0)]


class ImageFormula(Rules):
    """The cost of one image, by its size in pixels.

    `by`: how it is counted.
    - `patches`: the image is scaled down (never up) until its longer edge has at most `max_edge` pixels and it needs at
      most `max_patches` squares of `side` pixels; each costs one token, times `multiplier`. `rounding`: whether each
      side is rounded up to whole squares, or to the `nearest` number of them. `shrink`: how an image is scaled down to
      `max_patches`: to the `largest` size that needs no more; until an edge is a `whole` number of squares; or with
      both edges `floored`. `per_row`: tokens at the end of each row of squares. `min_patches`: the fewest that an image
      is scaled up to. `base`: tokens of the image besides.
    - `tiles`: the image is scaled down to fit a square of `max_edge`, then until its shorter edge has `short_edge`;
      each tile of `side` pixels costs `each`, at most `max_tiles` of them, and the image `base` as well.
    - `crops`: the image is scaled down to fit a square of `max_edge`. With both edges within `small_edge` it costs
      `each`; a larger one is cropped into squares of two thirds of its shorter edge, but with a side of at least
      `min_side` and at most `max_side`, which cost `each`.
    - `fixed`: every image costs `each`.
    - `unknown`: nothing is published.
    """

    by: Literal["unknown", "patches", "tiles", "crops", "fixed"] = "unknown"
    side: Count | None = None
    max_edge: Count | None = None
    max_patches: Count | None = None
    min_patches: Count = 1
    multiplier: Rate = 1.0
    rounding: Literal["up", "nearest"] = "up"
    shrink: Literal["largest", "whole", "floored"] = "largest"
    per_row: Annotated[int, Field(ge=0)] = 0
    short_edge: Count | None = None
    max_tiles: Count | None = None
    small_edge: Count | None = None
    min_side: Count = 1
    max_side: Count | None = None
    base: Annotated[int, Field(ge=0)] = 0
    each: Count | None = None


class TimedFormula(Rules):
    """The cost of sound or video: tokens per second. Omitted: unknown."""

    per_second: Rate | None = None


class DocumentFormula(Rules):
    """The cost of a PDF: tokens per page, at most. Omitted: unknown."""

    per_page: Count | None = None


class FormulaSource(FactSource):
    """A formula's file: only the differences from the formula that it extends.

    `models` are shell globs on the lower-case names of the models that it is for, with or without their vendor.
    """

    match: tuple[Match, ...] = ()
    models: tuple[str, ...] = ()


class TokenFormula(Rules):
    """A fully resolved formula, with the evidence for each value."""

    name: str
    title: str = ""
    about: str = ""
    match: tuple[Match, ...] = ()
    lineage: tuple[str, ...] = ()
    models: tuple[str, ...] = ()
    image: ImageFormula = ImageFormula()
    audio: TimedFormula = TimedFormula()
    video: TimedFormula = TimedFormula()
    document: DocumentFormula = DocumentFormula()
    evidence: Mapping[str, Evidence] = Field(default_factory=dict[str, Evidence])


def _parent(_: str, source: FormulaSource) -> str | None:
    return source.extends


_RESOLVER = Resolver(TokenFormula, _parent, "docs/tokens.md lists what there is")


def resolve_formulas(sources: Mapping[str, FormulaSource]) -> Mapping[str, TokenFormula]:
    """Resolve every source by merging all that it extends.

    Raises:
        ProfileError: an unknown parent, a circle, an unknown path, or a value that does not fit.
    """
    resolved = _RESOLVER.resolve(sources)
    return {name: formula.model_copy(update={"models": sources[name].models}) for name, formula in resolved.items()}
