"""A host as data: what becomes of each kind of content, of structured content and of errors."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

from gateway.hosts.simulators.readable_text import is_json_of
from gateway.hosts.simulators.results import (
    IMAGE_PREFIX,
    PDF,
    blob_of,
    blocks,
    dump,
    is_error,
    lacks_structured,
    malformed,
    structured,
)
from gateway.hosts.simulators.seen import (
    Form,
    Seen,
    SeenAudio,
    SeenDocument,
    SeenPart,
    SeenText,
    Where,
    as_labelled,
    failed_result,
    texts_first,
)

Way: TypeAlias = Callable[[Mapping[str, Any]], tuple[SeenPart, ...]]
"""What the model gets of one block."""
SeeError: TypeAlias = Callable[[Mapping[str, Any]], tuple[SeenPart, ...]]
"""What the model gets of a failed result."""


def dropped(block: Mapping[str, Any]) -> tuple[SeenPart, ...]:
    """Nothing."""
    return ()


def as_text(block: Mapping[str, Any]) -> tuple[SeenPart, ...]:
    """The text of a text block, or of an embedded resource."""
    return (SeenText(block["text"] if block["type"] == "text" else block["resource"]["text"]),)


def as_json(block: Mapping[str, Any]) -> tuple[SeenPart, ...]:
    """The block as JSON, base64 included."""
    return (SeenText(dump(block), "json"),)


def as_words(pattern: str, form: Form = "text") -> Way:
    """A line of the host's own, with the block's `{type}`, `{uri}` and `{name}`."""

    def words(block: Mapping[str, Any]) -> tuple[SeenPart, ...]:
        about = {**block, **block.get("resource", {})}
        said = {"type": about.get("mimeType"), "uri": about.get("uri"), "name": about.get("name")}
        return (SeenText(pattern.format(**said), form),)

    return words


def shown(where: Where = "in the result") -> Way:
    """An image, sound or document as what it is, under its declared type."""

    def native(block: Mapping[str, Any]) -> tuple[SeenPart, ...]:
        data, media_type = blob_of(block) or (block["data"], block["mimeType"])
        if media_type.startswith(IMAGE_PREFIX):
            return (as_labelled(data, media_type, where),)
        if media_type.startswith("audio/"):
            return (SeenAudio(data, media_type, where),)
        return (SeenDocument(data, media_type, where),)

    return native


@dataclass(frozen=True)
class BlockRules:
    """What a host makes of a result. `see` is that of a `SimulatedHost`.

    `structured`: `if-empty`: read where there is no content; `first`: written before the content; `after`: behind it;
    `unless-twin`: behind it, unless a text says the same; `instead`: all that arrives. `error`: what becomes of a
    failed result; None: the same as of others. `flags`: whether the model is told of a failure by other than text.
    `is_in_order`: texts and media stay in their order; otherwise the texts come first.
    """

    image: Way
    audio: Way
    document: Way
    embedded_image: Way
    blob: Way
    link: Way
    text: Way = as_text
    embedded_text: Way = as_text
    structured: Literal["ignored", "if-empty", "first", "after", "unless-twin", "instead"] = "ignored"
    structured_words: str = "{}"
    error: SeeError | None = None
    flags: bool = True
    is_in_order: bool = True

    def see(self, result: Mapping[str, Any], tool: Mapping[str, Any] | None = None) -> Seen:
        """Return what the model gets of a result."""
        if problem := malformed(result):
            return failed_result(f"Error: {problem}")
        if lacks_structured(result, tool):
            return failed_result("Error: Tool has an output schema but did not return structured content")
        is_failed = is_error(result)
        if is_failed and self.error is not None:
            return Seen(self.error(result), flagged=self.flags)
        parts = self._with_structured(result, [part for block in blocks(result) for part in self.way(block)(block)])
        return Seen(tuple(parts) if self.is_in_order else texts_first(parts), flagged=is_failed and self.flags)

    def way(self, block: Mapping[str, Any]) -> Way:
        """Return what becomes of blocks of this kind."""
        match block["type"]:
            case "text":
                return self.text
            case "image":
                return self.image
            case "audio":
                return self.audio
            case "resource_link":
                return self.link
            case _:
                return self._embedded(block)

    def _embedded(self, block: Mapping[str, Any]) -> Way:
        blob = blob_of(block)
        if blob is None:
            return self.embedded_text
        if blob[1].startswith(IMAGE_PREFIX):
            return self.embedded_image
        return self.document if blob[1] == PDF else self.blob

    def _with_structured(self, result: Mapping[str, Any], parts: Sequence[SeenPart]) -> Sequence[SeenPart]:
        value = structured(result)
        if value is None or self.structured == "ignored":
            return parts
        said = SeenText(self.structured_words.format(dump(value)), "structured")
        match self.structured:
            case "if-empty":
                return parts if blocks(result) else (said,)
            case "first":
                return (said, *parts)
            case "instead":
                return (said,)
            case "unless-twin" if any(is_json_of(text, value) for text in _texts(result)):
                return parts
            case _:
                return (*parts, said)


def _texts(result: Mapping[str, Any]) -> list[str]:
    return [block["text"] for block in blocks(result) if block["type"] == "text"]
