"""Lowering to MCP: writing the envelope as the CallToolResult that suits a host best."""

from dataclasses import dataclass
from typing import Any

from gateway.core.model.envelope import RAW_KEY, Envelope
from gateway.core.model.notes import Note
from gateway.core.profiles.profile import Profile
from gateway.core.results.decisions import Decisions
from gateway.core.results.decisions.write_blocks import BlockWriter


@dataclass(frozen=True)
class Lowered:
    """A CallToolResult as wire JSON, with notes of every difference from what the tool returned."""

    result: dict[str, Any]
    notes: tuple[Note, ...]


def lower(envelope: Envelope, profile: Profile, decisions: Decisions) -> Lowered:
    """Write the envelope as the CallToolResult for a profile, by decisions that ask for no more effects. Never raises.

    `resultType` is not added; the upstream's `_meta` and unknown members are kept.
    """
    writer = BlockWriter(profile)
    for decision in decisions.decided_blocks:
        writer.write(decision)
    result: dict[str, Any] = {
        **_rest(envelope, profile),
        "content": writer.content(decisions.error, structured=decisions.structured is not None),
    }
    notes = (*envelope.notes, *decisions.notes, *writer.notes())
    if decisions.structured is not None:
        result["structuredContent"] = decisions.structured.value
    if decisions.error.is_error:
        result["isError"] = True
    elif not isinstance(result.get("isError", False), bool) and profile.text.empty == "named":
        del result["isError"]
    return Lowered(result, notes)


def _rest(envelope: Envelope, profile: Profile) -> dict[str, Any]:
    """Return every other member of the result, without raw shapes for model APIs if the space is limited."""
    if RAW_KEY not in envelope.meta or profile.limits.result_chars is None:
        return envelope.rest
    return {**envelope.rest, "_meta": {key: value for key, value in envelope.meta.items() if key != RAW_KEY}}
