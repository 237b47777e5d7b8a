"""What became of a case, judged by the requests that reached the model API, as the demo judges."""

import base64
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, cast

from gateway.core.model_apis.requests.handles_in_text import handles_in_text
from gateway.hosts.simulators.host import RASTER, SimulatedHost
from gateway.hosts.simulators.originals import original_images
from gateway.hosts.simulators.readable_text import read_by, words
from gateway.hosts.simulators.seen import Seen, SeenAudio, SeenDocument, SeenImage, SeenPart, SeenText, failed_result
from gateway.hosts.simulators.verdict import judge_seen
from gateway.testing.model_apis import conversation, refusals
from gateway.testing.model_apis.read_request import Seen as Media
from gateway.testing.model_apis.server import Recorded

Word = Literal["seen", "named", "lost", "refused", "failed"]
RANKS: Mapping[Word, int] = {"seen": 3, "named": 2, "lost": 1, "refused": 0, "failed": 0}
"""The more, the better for the model. After a request that was refused, and a program that ended, nothing goes on."""
LONG_CHARS = 10_000
"""Of a text of so many characters, more than its beginning is looked for: hosts and the gateway cut such texts."""
_MADE = {"function_call"}
_HOST = SimulatedHost(
    "framework", "a framework", {}, "", lambda result, tool: failed_result("it is not simulated"), RASTER
)
_MEDIA = frozenset({"image_url", "input_audio", "file", "input_image", "input_file", "image", "document"})


@dataclass(frozen=True)
class Finding:
    """What became of one case: a word, how many pictures of how many were shown, and why it is not `seen`."""

    word: Word
    shown: int
    images: int
    why: str = ""

    def is_worse_than(self, other: "Finding") -> bool:
        """Whether the model has less of the result than in the other."""
        return RANKS[self.word] < RANKS[other.word] or self.shown < other.shown


def find(api: str, model: str, original: Mapping[str, Any], requests: Sequence[Recorded], ended: str | None) -> Finding:
    """What became of a result, by the requests of one run and what its program died of."""
    images = len(original_images(original))
    bodies = [{**request.json, **({"model": model} if api == "gemini" else {})} for request in requests]
    if reasons := [reason for body in bodies for reason in refusals(api, body)]:
        return Finding("refused", 0, images, in_short(reasons[0]))
    if not (after := [body for body in bodies if _is_after_a_call(body)]):
        return Finding("failed", 0, images, in_short(ended or "no result was sent to the model"))
    return judged(original, _seen(api, after[-1]))


def judged(original: Mapping[str, Any], seen: Seen) -> Finding:
    """What became of a result of which a model has seen this."""
    images = len(original_images(original))
    verdict = judge_seen(original, seen, _HOST)
    # A picture that is not shown may be named all the same; everything else that is wrong is lost.
    if wrong := [problem for problem in verdict.problems if not problem.startswith("not seen:")]:
        return Finding(
            "lost", verdict.shown, images, in_short(next((one for one in wrong if "base64" in one), wrong[0]))
        )
    media = images - verdict.shown + _files_missing(original, seen)
    if not (missing := media + _texts_cut(original, seen)):
        return Finding("seen", verdict.shown, images)
    # A line without a handle is nothing that the model, or the proxy before it, could open.
    if missing > len(set(handles_in_text(seen.text))):
        return Finding("lost", verdict.shown, images, "named without a handle" if media else "a text is cut short")
    return Finding("named", verdict.shown, images)


def _texts_cut(original: Mapping[str, Any], seen: Seen) -> int:
    """How many long texts are not there whole: their last line is read less often than it was written."""
    texts = [text for block in original.get("content") or () if len(text := block.get("text", "")) >= LONG_CHARS]
    if not texts:
        return 0
    read, said = read_by(seen), words("\n".join(texts))
    endings = (words(text.rstrip().rpartition("\n")[2]) for text in texts)
    return sum(read.count(ending) < said.count(ending) for ending in endings)


def _files_missing(original: Mapping[str, Any], seen: Seen) -> int:
    """How many sounds and documents are not before the model as what they are."""
    files = sum(isinstance(part, SeenDocument | SeenAudio) for part in seen.parts)
    return max(0, sum(map(_is_a_file, original.get("content") or ())) - files)


def _is_a_file(block: Mapping[str, Any]) -> bool:
    has_bytes = block["type"] == "audio" or (block["type"] == "resource" and "blob" in block["resource"])
    return has_bytes and not original_images({"content": [block]})


def seen_from(api: str, body: Mapping[str, Any], start: int) -> Seen:
    """What the model sees of a request from this message on: its texts, then its media."""
    read = conversation(api, body)
    assert read is not None, "a request that is not refused can be read"
    media = [_part(kept) for one in read.messages[start:] for each in one.media if (kept := each.seen)]
    return _seen_in(_items(body)[start:], media)


def in_short(words: str) -> str:
    """The beginning of a message, on one line."""
    return " ".join(words.split())[:160]


# -- a request, from the results of its last call on ------------------------------------------------


def _is_after_a_call(body: Mapping[str, Any]) -> bool:
    return any(map(_is_the_models, _items(body)))


def _items(body: Mapping[str, Any]) -> list[Any]:
    for name in ("messages", "input", "contents"):
        if isinstance(items := body.get(name), list):
            return cast("list[Any]", items)
    return []


def _is_the_models(item: Mapping[str, Any]) -> bool:
    return item.get("role") in ("assistant", "model") or item.get("type") in _MADE


def _seen(api: str, body: Mapping[str, Any]) -> Seen:
    """What the model behind the API gets to see of the results: their texts, then their media."""
    items = _items(body)
    last = max(at for at, item in enumerate(items) if _is_the_models(item))
    read = conversation(api, body)
    assert read is not None, "a request that is not refused can be read"
    return _seen_in(items[last + 1 :], [_part(found) for one in read.media if (found := one.seen)])


def _seen_in(results: Sequence[Any], media: Sequence[SeenPart]) -> Seen:
    texts = [SeenText(said) for item in results for said in _texts(item)]
    return Seen((*texts, *media), flagged=any(map(_flags, results)))


def _part(media: Media) -> SeenPart:
    data = base64.b64encode(media.content).decode()
    match media.kind:
        case "image":
            return SeenImage(data, media.media_type, None)
        case "audio":
            return SeenAudio(data, media.media_type)
        case _:
            return SeenDocument(data, media.media_type)


def _texts(value: Any) -> Iterator[str]:
    """The texts in an item of a request, media left out."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, list):
        for item in cast("list[Any]", value):
            yield from _texts(item)
    elif isinstance(value, dict):
        yield from _texts_of(cast("dict[str, Any]", value))


def _texts_of(item: Mapping[str, Any]) -> Iterator[str]:
    if "functionResponse" in item:
        yield json.dumps(item["functionResponse"].get("response"), ensure_ascii=False).replace(r"\n", "\n")
    elif item.get("type") not in _MEDIA:
        for name in ("content", "text", "output", "parts"):
            yield from _texts(item.get(name))


def _flags(item: Mapping[str, Any]) -> bool:
    return any(map(_is_flagged, item.get("parts") or item.get("content") or ()))


def _is_flagged(block: Any) -> bool:
    match block:
        case {"is_error": True} | {"functionResponse": {"response": {"error": _}}}:
            return True
        case _:
            return False
