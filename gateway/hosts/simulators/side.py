"""One host's side of a call: what its model gets of the result, the verdict on it, and both in a few words."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from gateway.hosts.simulators.host import SimulatedHost
from gateway.hosts.simulators.seen import Seen, SeenAudio, SeenDocument
from gateway.hosts.simulators.verdict import Verdict, judge_seen

Tone = Literal["good", "kept", "poor", "bad"]

JSON = "application/json"
LONG = 100_000
"""Characters of text, about 25,000 tokens: too many for a model in one result."""
_KEPT = re.compile(r"\[[^\[\]]*\bhandle\b[^\[\]]*\]")
"""A line written by the gateway that names content and its handle."""


@dataclass(frozen=True)
class Side:
    """One host's outcome of one call: what its model saw, with the verdict, or why there is nothing.

    `also` has the kinds of content that the tool returned beside text and images: `sound`, `document`. `characters` is
    the length of the text that was seen, `written` that in the tool's own result.
    """

    seen: Seen | None
    verdict: Verdict | None
    failure: str | None = None
    also: tuple[str, ...] = ()
    characters: int = 0
    written: int = 0

    @property
    def is_good(self) -> bool:
        """Whether the call worked and the verdict is good."""
        return self.verdict is not None and self.verdict.is_good

    @property
    def is_seen(self) -> bool:
        """Whether the model sees everything: nothing is only named in a line and kept, or saved to a file."""
        return summary(self)[1] == "good"

    @property
    def problems(self) -> tuple[str, ...]:
        """The problems, in words."""
        if self.verdict is None:
            return (self.failure or "not run",)
        return self.verdict.problems

    @property
    def problems_in_short(self) -> tuple[str, ...]:
        """The problems for a line: everything that is not read counts as one."""
        return self.problems if self.verdict is None else self.verdict.problems_in_short


def side(
    original: Mapping[str, Any], result: Mapping[str, Any], tool: Mapping[str, Any] | None, host: SimulatedHost
) -> Side:
    """Simulate `host` on `result`, and judge it by the upstream's own result."""
    seen = host.see(result, tool)
    texts = [block["text"] for block in original.get("content", ()) if block.get("type") == "text"]
    return Side(
        seen,
        judge_seen(original, seen, host),
        also=_other_media(original),
        # There is no limit on the text that a person is shown.
        characters=0 if host.for_people else len(seen.text),
        written=sum(map(len, texts)),
    )


def _other_media(result: Mapping[str, Any]) -> tuple[str, ...]:
    kinds: list[str] = []
    for block in result.get("content", ()):
        match block:
            case {"type": "audio"}:
                kinds.append("sound")
            case {"type": "resource", "resource": {"blob": _, "mimeType": str(media_type)}} if (
                not media_type.startswith("image/")
            ):
                kinds.append("document")
            case _:
                pass
    return tuple(dict.fromkeys(kinds))


def summary(side: Side) -> tuple[str, Tone]:
    """Summarise a side in a few words, and give its tone.

    `good`: the model sees everything; `kept`: something is only named in a line and kept; `poor`: something other than
    an image is out of the model's sight, or read more than once; or `bad`.
    """
    seen, verdict = side.seen, side.verdict
    if seen is None or verdict is None:
        return "call failed", "bad"
    if verdict.is_only_repeated:
        return "twice", "poor"
    if not (verdict.is_good or verdict.lacks_only_media):
        return _bad_words(verdict), "bad"
    if side.characters > LONG:
        return f"{_count(side.characters)} of text", "poor"
    if 0 < side.characters < side.written / 2 and side.written > LONG and not _KEPT.search(seen.text):
        return f"cut to {_count(side.characters)}", "poor"
    words = [_image_words(seen, verdict), *_other_words(seen)]
    words += [word for kind in side.also if (word := _fate(kind, seen))]
    is_poor = verdict.lacks_only_media or any(word.endswith(("lost", "a file")) for word in words)
    said = " + ".join(word for word in words if word) or _text_words(seen)
    if is_poor or said == "a file":
        return said, "poor"
    # A picture scaled down for the host is seen, although a line names the handle of the original.
    return said, "kept" if said.endswith(("named", "kept")) or "named +" in said else "good"


def _bad_words(verdict: Verdict) -> str:
    if verdict.error is not None:
        return "host error"
    if verdict.leak:
        return f"base64! {_count(verdict.leak)}"
    if verdict.shown < verdict.expected:
        return "image lost" if verdict.expected == 1 else f"{verdict.shown} of {verdict.expected} images"
    if verdict.named < verdict.to_name:
        return "image lost"
    if verdict.is_empty or not verdict.is_silent:
        return "lost"
    return "error untold"


def _image_words(seen: Seen, verdict: Verdict) -> str:
    if verdict.named:
        return "named" if verdict.named == 1 else f"{verdict.named} named"
    if not verdict.shown:
        return ""
    late = " later" if any(image.where == "next turn" for image in seen.images) else ""
    return f"{verdict.shown} image{'s' if verdict.shown > 1 else ''}{late}"


def _other_words(seen: Seen) -> list[str]:
    documents = [part.media_type for part in seen.parts if isinstance(part, SeenDocument)]
    words = ["sound"] if any(isinstance(part, SeenAudio) for part in seen.parts) else []
    words += ["document"] if any(media_type != JSON for media_type in documents) else []
    return words + (["JSON"] if JSON in documents else [])


def _fate(kind: str, seen: Seen) -> str:
    """Say what replaces a sound or a document that the model does not get as such; empty if it does."""
    if kind in _other_words(seen):
        return ""
    if _KEPT.search(seen.text):
        return "named"
    return "a file" if seen.texts("file") else f"{kind} lost"


def _text_words(seen: Seen) -> str:
    if seen.texts("file"):
        return "a file"
    return "text, rest kept" if _KEPT.search(seen.text) else "text"


def _count(number: int) -> str:
    if number < 1_000:
        return str(number)
    return f"{number / 1_000:.0f}k" if number < 1_000_000 else f"{number / 1_000_000:.1f}M"
