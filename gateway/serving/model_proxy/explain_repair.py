"""Explain repairs to people: before and after, with base64 shortened."""

import json
import re
from collections.abc import Iterator, Mapping

from gateway.content.shaping.repair_request import RepairedRequest
from gateway.core.profiles.model_profile import ModelProfile
from gateway.core.wording import plain

_LONG = re.compile(r"[A-Za-z0-9+/_-]{80,}={0,2}")
_KEPT = 24
_LONGEST_MODEL = 100

_RESULTS: Mapping[str, str] = {
    "openai_chat": "tool message",
    "mistral": "tool message",
    "openai_responses": "function_call_output",
    "anthropic_messages": "tool_result block",
    "gemini": "functionResponse",
    "ollama": "tool message",
}
_IMAGE_PARTS: Mapping[str, str] = {
    "openai_chat": "image_url parts",
    "mistral": "image_url parts",
    "openai_responses": "input_image items",
    "anthropic_messages": "image blocks",
    "gemini": "inlineData parts",
    "ollama": "members of `images`",
}


def explanation(repaired: RepairedRequest) -> str:
    """Show each repaired place of the request as received and as sent on, and all notes."""
    return "\n".join(_lines(repaired))


def shorten_base64(text: str) -> str:
    """Return the text with runs of base64 replaced by their beginning and their length."""
    return _LONG.sub(lambda run: f"{run[0][:_KEPT]}… ({len(run[0]):,} characters)", text)


def _heading(model: str | None, profile: ModelProfile) -> str:
    """Name the API, and say where its requests carry images of tool results, in the words of its own reference."""
    place, part = profile.image.place, _IMAGE_PARTS.get(profile.writing, "images")
    if place == "none":
        where = "images are not sent to this model"
    elif place == "in_tool":
        where = f"images are {part} in the {_RESULTS.get(profile.writing, 'tool result')}"
    else:
        after = "a short reply after the" if place == "after_reply" else "the"
        where = f"images are {part} in a user message after {after} {_RESULTS.get(profile.writing, 'tool result')}s"
    about = f", model {plain(model, _LONGEST_MODEL)}" if model else ""
    return f"=== {profile.name}{about}: {where}"


def _lines(repaired: RepairedRequest) -> Iterator[str]:
    if repaired.profile is not None:
        yield _heading(repaired.model, repaired.profile)
    for change in repaired.changes:
        before = change.before if isinstance(change.before, str) else json.dumps(change.before, ensure_ascii=False)
        yield f"--- {change.where}"
        yield shorten_base64(before)
        yield "+++"
        yield shorten_base64(change.after)
    for note in repaired.notes:
        yield f"note: {note.kind}: {note.text}"
