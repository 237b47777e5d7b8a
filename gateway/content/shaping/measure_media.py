"""Find out how long the sound, the video and the documents of a result are, to count what they cost in tokens."""

from collections.abc import Iterator, Mapping
from typing import Any

from gateway.content.shaping.effects import EffectRunner, perform
from gateway.core.model.base64_text import mend
from gateway.core.model.blocks import Found
from gateway.core.model.contents import found_in
from gateway.core.model.effects import Effect
from gateway.core.model.envelope import Envelope
from gateway.core.model.json_values import as_list, as_object, objects_in
from gateway.core.results.decisions.lengths import length_effect, lengths_of
from gateway.core.tokens import Length

_MOST_MEASURED = 20
"""Media of one result that are measured; the cost of further ones is estimated from their size."""


async def measure_media(
    envelope: Envelope, result: Mapping[str, Any], known: Mapping[str, Length], runner: EffectRunner
) -> dict[str, Length]:
    """Return the lengths of media as it was given and as it is sent, by its base64. Never raises for one.

    Each is read in a media worker, within its limits; one that cannot be read is left out.
    """
    effects: dict[str, Effect] = {}
    seen = set(known)
    for found in (*_given(envelope), *_sent(result)):
        effect = None if found.data in seen else length_effect(f"length:{len(effects)}", found)
        if effect is not None and len(effects) < _MOST_MEASURED:
            seen.add(found.data)
            effects[effect.key] = effect
    return {**known, **lengths_of(effects, await perform(effects, runner))} if effects else dict(known)


def _given(envelope: Envelope) -> Iterator[Found]:
    for block in envelope.blocks:
        found = getattr(block, "found", None)
        if isinstance(found, Found):
            yield found


def _sent(result: Mapping[str, Any]) -> Iterator[Found]:
    for block in objects_in(as_list(result.get("content"))):
        data = block.get("data", as_object(block.get("resource")).get("blob"))
        declared = block.get("mimeType", as_object(block.get("resource")).get("mimeType"))
        found = found_in(mend(data), declared if isinstance(declared, str) else None) if isinstance(data, str) else None
        if found is not None:
            yield found
