"""The length of sound, video and documents, for which models charge by the second or page: found out by effects."""

from collections.abc import Mapping

from gateway.core.model.blocks import Found
from gateway.core.model.effects import Converted, DocumentRead, Effect, Outcome, Probe, Probed, ReadDocument
from gateway.core.model.media_types import family
from gateway.core.results.decisions.decision_context import PDF, SOUNDING
from gateway.core.tokens import Length


def length_effect(key: str, found: Found) -> Probe | ReadDocument | None:
    """Return the effect that finds out how long content is; None for content without a length."""
    if found.media_type == PDF:
        return ReadDocument(key, found.data, 0, 0)
    if family(found.media_type) in SOUNDING:
        return Probe(key, found.data, found.media_type or "")
    return None


def length_in(outcome: Outcome | None) -> Length | None:
    """Return the length that an outcome says, if it says any."""
    match outcome:
        case DocumentRead():
            return Length(pages=outcome.pages)
        case Probed() if outcome.seconds is not None:
            return Length(seconds=outcome.seconds)
        case _:
            return None


def lengths_of(effects: Mapping[str, Effect], outcomes: Mapping[str, Outcome]) -> dict[str, Length]:
    """Return the lengths that the outcomes of effects say, by the base64 of the content."""
    found: dict[str, Length] = {}
    for key, effect in effects.items():
        match effect, outcomes.get(key):
            case ((Probe(data=str(data)) | ReadDocument(data=str(data))), outcome):
                length = length_in(outcome)
                found |= {data: length} if length is not None else {}
            case _, Converted() as converted:
                found[converted.data] = Length(seconds=converted.seconds)
            case _:
                pass
    return found
