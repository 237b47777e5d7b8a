"""Extra outputs in the result's `_meta`, for programs that read results themselves, if the profile asks for them."""

from collections.abc import Mapping
from typing import Any

from anyio import to_thread

from gateway.content.shaping.effects import EffectRunner
from gateway.core.model.envelope import Envelope
from gateway.core.model.json_size import wire_chars
from gateway.core.model.notes import Note
from gateway.core.profiles.profile import Profile

ENVELOPE_KEY = "mcp-gateway/envelope"
"""The `_meta` key of the envelope as JSON, by its published schema (docs/envelope.md), with unchanged media."""

MODEL_API_KEY = "mcp-gateway/model-api"
"""The `_meta` key of `{"target": ..., "messages": [...]}`: the messages that give the result to this model API."""

CALL_ID = "call"
"""The placeholder for the call's id in the messages, like `TOOL_NAME` for the tool's name: only programs know them."""

TOOL_NAME = "tool"


def has_outputs(profile: Profile) -> bool:
    """Whether the profile asks for any of these outputs."""
    return profile.output.envelope or profile.output.model_api is not None


async def with_outputs(
    result: dict[str, Any], envelope: Envelope, profile: Profile, runner: EffectRunner
) -> tuple[dict[str, Any], tuple[Note, ...]]:
    """Return the shaped result with the outputs of the profile, and a note for each output that has no room."""
    if not has_outputs(profile):
        return result, ()
    present: Mapping[str, Any] = result.get("_meta", {})
    # An upstream's members of the same names must not pass for ours.
    meta = {key: value for key, value in present.items() if key not in (ENVELOPE_KEY, MODEL_API_KEY)}
    limit, notes = profile.limits.result_chars, list[Note]()
    for key, value in (await _outputs(envelope, profile, runner)).items():
        larger = {**result, "_meta": {**meta, key: value}}
        size = await to_thread.run_sync(wire_chars, larger)
        if limit is not None and size > limit:
            text = f"_meta {key} left out: with it the result has {size:,} characters, and it may have {limit:,}"
            notes.append(Note(kind="dropped", text=text))
        else:
            meta[key] = value
    rest = {key: value for key, value in result.items() if key != "_meta"}
    return ({**rest, "_meta": meta} if meta else rest), tuple(notes)


async def _outputs(envelope: Envelope, profile: Profile, runner: EffectRunner) -> dict[str, Any]:
    outputs: dict[str, Any] = {}
    if (target := profile.output.model_api) is not None:
        outputs[MODEL_API_KEY] = {"target": target, "messages": await _messages(envelope, target, runner)}
    if profile.output.envelope:
        outputs[ENVELOPE_KEY] = envelope.model_dump(mode="json", by_alias=True)
    return outputs


async def _messages(envelope: Envelope, target: str, runner: EffectRunner) -> list[dict[str, Any]]:
    # Imported here because only profiles with this output need the model APIs.
    from gateway.config.builtin_profiles import model_profiles
    from gateway.content.shaping.settle import settle_turn
    from gateway.core.model.turn import Call
    from gateway.core.model_apis.registry import APIS
    from gateway.core.model_apis.turns import Choices
    from gateway.core.profiles.model_profiles import choose_model_profile
    from gateway.core.results.rescue import rescue

    profile = choose_model_profile(model_profiles(), target)
    calls, choices = [Call(CALL_ID, TOOL_NAME, rescue(envelope))], Choices(describes=runner.describes)
    done = await settle_turn(calls, profile, runner, choices)
    return APIS[profile.writing].write_turn(done.turn)
