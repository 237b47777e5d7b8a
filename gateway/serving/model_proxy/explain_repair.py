"""Explain repairs to people: before and after, with base64 shortened."""

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any

from gateway.content.shaping.repair_request import RepairedRequest
from gateway.core.fact_words import counted, plain
from gateway.core.model.json_shape import contents_of, is_container
from gateway.core.profiles.model_profile import ModelProfile

_LONG = re.compile(r"[A-Za-z0-9+/_-]{80,}={0,2}")
_LEAST_LEFT = 4_000
_LEFT = re.compile(rb"(?<![A-Za-z0-9+/])[A-Za-z0-9+/]{4000,}={0,2}")
"""Base64 that costs thousands of tokens where a model reads it as text. A run is tried once, from its beginning: from
each of its characters, those that are a little too short would take thousands of times as long."""
_MEDIUM = re.compile(r"(?:data:[^,]{0,200},)?[A-Za-z0-9+/\r\n_-]*+={0,2}\s*+")
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
    """Show each repaired place of the request as received and as sent on, and all notes.

    Of a request that was not changed, it is said that there was nothing to repair. Long base64 among other text, which
    goes on as it is, is pointed out. Takes time for large requests.
    """
    return "\n".join(_lines(repaired))


def shorten_base64(text: str) -> str:
    """Return the text with runs of base64 replaced by their beginning and their length."""
    return _LONG.sub(lambda run: f"{run[0][:_KEPT]}… ({len(run[0]):,} characters)", text)


def texts_with_base64(body: bytes) -> int:
    """Count the texts in the JSON of a request that have long base64 among other words. Media alone does not count."""
    if _LEFT.search(body) is None:
        return 0
    try:
        level: list[Any] = [json.loads(body)]
    except (ValueError, RecursionError):
        return 0
    count = 0
    while level:
        count += sum(isinstance(item, str) and _has_base64_among_words(item) for item in level)
        level = [below for item in level if is_container(item) for below in contents_of(item)]
    return count


def _has_base64_among_words(text: str) -> bool:
    if len(text) < _LEAST_LEFT or _MEDIUM.fullmatch(text) is not None:
        return False
    return _LEFT.search(text.encode("utf-8", "replace")) is not None


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
    return f"=== {_about(model, profile)}: {where}"


def _about(model: str | None, profile: ModelProfile) -> str:
    return profile.name + (f", model {plain(model, _LONGEST_MODEL)}" if model else "")


def _lines(repaired: RepairedRequest) -> Iterator[str]:
    if not repaired.changes and not repaired.notes:
        profile = repaired.profile
        about = "a request without media in tool results" if profile is None else _about(repaired.model, profile)
        yield f"=== {about}: nothing to repair"
    elif repaired.profile is not None:
        yield _heading(repaired.model, repaired.profile)
    for change in repaired.changes:
        before = change.before if isinstance(change.before, str) else json.dumps(change.before, ensure_ascii=False)
        yield f"--- {change.where}"
        yield shorten_base64(before)
        yield "+++"
        yield shorten_base64(change.after)
    for note in repaired.notes:
        yield f"note: {note.kind}: {note.text}"
    if count := texts_with_base64(repaired.body):
        has, it = ("has", "it is") if count == 1 else ("have", "they are")
        yield (
            f"note: {counted(count, 'text')} of it {has} long base64 among other words, and {it} sent on unchanged: "
            "docs/proxy.md lists the forms that are found"
        )
