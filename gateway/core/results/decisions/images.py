"""Deciding about an image."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from gateway.core import fact_words, wording
from gateway.core.fact_words import counted
from gateway.core.model.base64_text import decoded_size
from gateway.core.model.blocks import Found
from gateway.core.model.contents import may_be_cut_off, may_move
from gateway.core.model.effects import Failed, FitImage, Fitted, ImageTarget
from gateway.core.profiles.profile import ImageRules
from gateway.core.results.decisions.block_decisions import AsImage, AsIs, BlockDecision, BlockSource, ToTextLine
from gateway.core.results.decisions.decision_context import DecisionContext, is_image, takes

_ANY_IMAGE = ("image/png", "image/jpeg", "image/gif", "image/webp")
"""Types that an image is converted to if the profile accepts every type."""


def decide_image(
    context: DecisionContext,
    source: BlockSource,
    beside: Mapping[str, Any],
    uri: str | None,
    as_is: AsIs | None,
    hidden: str | None,
) -> BlockDecision:
    """Decide about an image. `as_is`: the block as it arrived, if it is an image block; `uri`: else its URI."""
    rules, found = context.profile.image, source.found
    is_taken = takes(rules.types, found) and _is_within(found, rules)
    if as_is is not None and rules.show == "native" and not rules.types and not hidden and is_taken:
        return as_is
    if rules.show == "file" and is_image(found) and not hidden and not context.hides_media:
        return context.filed(source, "image", described=True)
    why = hidden or _why_not_shown(context, found)
    if why is not None:
        blind = rules.show == "line" and is_image(found) and not hidden
        return context.line(source, "image", why, described=blind)
    context.images += 1
    if is_taken and not may_be_cut_off(found):
        # Not a byte is changed: the original string is passed on.
        media_type = found.media_type or "application/octet-stream"
        return AsImage(found.data, media_type, found.pixels, beside, uri=uri, source=source)
    return fit_image_to_profile(context, source, f"fit:{source.key}", rules.max_bytes, beside, uri)


def image_target(rules: ImageRules, max_bytes: int | None) -> ImageTarget:
    """Return the host's requirements for an image."""
    return ImageTarget(rules.types or _ANY_IMAGE, rules.max_edge, max_bytes, rules.animation == "kept")


def fit_image_to_profile(
    context: DecisionContext,
    source: BlockSource,
    key: str,
    max_bytes: int | None,
    beside: Mapping[str, Any],
    uri: str | None,
    max_edge: int | None = None,
) -> AsImage | ToTextLine:
    """Fit an image to the profile; the decision is provisional (the image unchanged) until the outcome is known.

    `max_edge` takes the place of the profile's.
    """
    found = source.found
    media_type = found.media_type or "application/octet-stream"
    target = image_target(context.profile.image, max_bytes)
    if max_edge is not None:
        target = replace(target, max_edge=max_edge)
    outcome = context.want(FitImage(key, found.data, media_type, target))
    if isinstance(outcome, Failed):
        context.note("failed", f"image: {outcome.reason}", source.index)
        return context.line(source, "image", outcome.reason, is_intact=key.startswith(("refit", "tokens:")))
    if not isinstance(outcome, Fitted) or outcome.data == found.data:
        return AsImage(found.data, media_type, found.pixels, beside, uri=uri, source=source)
    is_scaled = outcome.pixels != outcome.original
    if is_scaled:
        was, now = fact_words.pixel_words(outcome.original), fact_words.pixel_words(outcome.pixels)
        context.note("resized", f"image {was} to {now}", source.index)
    if outcome.frames > 1:
        context.note("converted", f"an animation to the {wording.first_frame(outcome.frames)}", source.index)
    if outcome.media_type != media_type:
        context.note("converted", f"{media_type} to {outcome.media_type}", source.index)
    elif not is_scaled and outcome.frames == 1:
        context.note("resized", f"image to {fact_words.size_words(decoded_size(outcome.data))}", source.index)
    handle, url = context.kept(source), context.url(f"keep:{source.key}")
    original = outcome.original if is_scaled else None
    return AsImage(
        outcome.data, outcome.media_type, outcome.pixels, beside, original, handle, uri, source, outcome.frames, url=url
    )


def _why_not_shown(context: DecisionContext, found: Found) -> str | None:
    rules = context.profile.image
    if rules.show == "line":
        return "this host does not show images to its model"
    if context.hides_media:
        return "this host does not show images of failed calls"
    if not is_image(found):
        return "no known image format"
    if rules.max_count is not None and context.images >= rules.max_count:
        return f"only {counted(rules.max_count, 'image')} {'is' if rules.max_count == 1 else 'are'} shown at once"
    return None


def _is_within(found: Found, rules: ImageRules) -> bool:
    if rules.max_bytes is not None and found.byte_size > rules.max_bytes:
        return False
    if rules.animation == "first-frame" and may_move(found):
        return False
    if rules.max_edge is None:
        return True
    return found.pixels is not None and max(found.pixels) <= rules.max_edge
