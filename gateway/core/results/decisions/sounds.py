"""Deciding about sound."""

from collections.abc import Mapping
from typing import Any

from gateway.core import fact_words, wording
from gateway.core.model.base64_text import decoded_size
from gateway.core.model.blocks import Found
from gateway.core.model.effects import AudioTarget, ConvertAudio, Converted, Failed
from gateway.core.profiles.profile import AudioRules
from gateway.core.results.decisions.block_decisions import AsIs, BlockDecision, BlockSource
from gateway.core.results.decisions.decision_context import DecisionContext, takes

_AUDIBLY = 0.05
"""Seconds by which sound must be shorter to count as cut: encoders pad and trim frames."""


def decide_sound(
    context: DecisionContext, source: BlockSource, as_is: AsIs, beside: Mapping[str, Any], hidden: str | None
) -> BlockDecision:
    """Decide about sound. `as_is`: the block as it arrived; `beside`: its members other than data and type."""
    rules = context.profile.audio
    if hidden or context.hides_media:
        return context.line(source, "audio", hidden)
    if rules.show == "file":
        return context.filed(source, "audio", described=True)
    if rules.show == "line":
        return context.line(source, "audio", None, described=True)
    if _fits(source.found, rules):
        return as_is
    return _converted(context, source, as_is, beside)


def _fits(found: Found, rules: AudioRules) -> bool:
    if rules.max_bytes is not None and found.byte_size > rules.max_bytes:
        return False
    return takes(rules.types, found) and rules.max_seconds is None


def _converted(context: DecisionContext, source: BlockSource, as_is: AsIs, beside: Mapping[str, Any]) -> BlockDecision:
    """Fit the sound to the profile; the decision is provisional (the sound unchanged) until the outcome is known."""
    rules, found = context.profile.audio, source.found
    media_type = found.media_type or "application/octet-stream"
    target = AudioTarget(rules.types, rules.max_bytes, rules.max_seconds)
    outcome = context.want(ConvertAudio(f"sound:{source.key}", found.data, media_type, target))
    if isinstance(outcome, Failed):
        context.note("failed", f"sound: {outcome.reason}", source.index)
        return context.line(source, "audio", outcome.reason, described=True)
    if not isinstance(outcome, Converted) or outcome.data == found.data:
        return as_is
    handle = context.kept(source)
    shown = Found(data=outcome.data, byte_size=decoded_size(outcome.data), media_type=outcome.media_type)
    words = None
    if outcome.media_type != media_type:
        context.note("converted", f"{media_type} to {outcome.media_type}", source.index)
    if outcome.original - outcome.seconds > _AUDIBLY:
        words = wording.first_seconds(outcome.seconds, outcome.original)
        context.note("cut", f"sound to {words}", source.index)
    elif outcome.media_type == media_type:
        context.note("converted", f"{media_type} to {fact_words.size_words(shown.byte_size)}", source.index)
    wire = {"type": "audio", **beside, "data": outcome.data, "mimeType": outcome.media_type}
    size = fact_words.size_words(shown.byte_size)
    known = fact_words.join_facts(outcome.media_type, words or fact_words.seconds_words(outcome.seconds), size)
    caption = wording.kept_whole(words, handle) if words else ""
    return AsIs(wire, "audio", known, has_bytes=True, source=source, shown=shown, caption=caption)
