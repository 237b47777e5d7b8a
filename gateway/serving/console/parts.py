"""Results in parts that can be drawn: the blocks of an envelope, or what the model of a simulated host gets.

A part is a JSON object with a `kind`:

- `text`: its `text`, shortened to what can be looked at, with the whole length in `characters`; `form` says where it
  comes from (see `gateway.hosts.simulators.seen.Form`), and `base64` counts characters of base64 in it;
- `image`, `audio`, `document`, `file`: `media_type`, `bytes`, `medium` (its name at `/console/api/media/`; null if it
  cannot be read), for an image also `pixels` and `is_drawn_as_it_is`;
- `link`: `uri`, `name`, `description`, `media_type`;
- `json`: `text`, as for texts, but indented for people: `characters` and `text_tokens` are those of the JSON as it is
  sent; and the `tree` of an object or a list (see `json_tree.Node`).

`where` and `note` are added if a host does something special with the part.
"""

import json
import re
from collections.abc import Mapping
from itertools import islice
from typing import Any

from gateway.core.model.base64_text import decoded_size
from gateway.core.model.blocks import (
    AudioBlock,
    Block,
    Found,
    ImageBlock,
    LinkBlock,
    ResourceBlock,
    TextBlock,
    UnknownBlock,
)
from gateway.core.model.envelope import Envelope
from gateway.core.model.json_size import compact_json, size_of
from gateway.core.model.media_types import PixelSize
from gateway.core.tokens import text_tokens
from gateway.hosts.simulators.base64_runs import base64_runs
from gateway.hosts.simulators.seen import Seen, SeenAudio, SeenDocument, SeenImage, SeenPart, SeenText
from gateway.serving.console.json_tree import Node, tree_of
from gateway.serving.console.media import PDF, MediaShelf, Medium, is_drawn_as_it_is
from gateway.serving.console.read_form import parse_json

HEAD = 6_000
TAIL = 1_500
"""Characters of a long text that are shown from its beginning and its end."""

_WHOLE = 200_000
"""Characters of JSON that are written as a whole."""
_PIECE = 256 * 1024
_INDENTATION = re.compile(r"\n *")

Part = Mapping[str, Any]


def envelope_parts(envelope: Envelope, shelf: MediaShelf) -> list[Part]:
    """Return the parts of a tool's own result, in order."""
    parts = [_block_part(block, shelf) for block in envelope.blocks]
    if envelope.has_structured_content:
        parts.append({**json_part(envelope.structured_content), "form": "structured"})
    return parts


def _block_part(block: Block, shelf: MediaShelf) -> Part:
    match block:
        case TextBlock():
            return {**text_part(block.text), "tree": _tree_of_text(block.text)}
        case ImageBlock():
            return _found_part("image", block.found, block.mime_type, shelf)
        case AudioBlock():
            return _found_part("audio", block.found, block.mime_type, shelf)
        case ResourceBlock() if block.resource.text is not None:
            return {**text_part(block.resource.text), "uri": block.resource.uri}
        case ResourceBlock():
            declared = block.resource.mime_type
            found = _found_part(_kind(block.found, declared), block.found, declared, shelf)
            return {**found, "uri": block.resource.uri}
        case LinkBlock():
            return {
                "kind": "link",
                "uri": block.uri,
                "name": block.title or block.name,
                "description": block.description,
                "media_type": block.mime_type,
            }
        case UnknownBlock():
            return {**json_part(block.value), "note": "a block of unknown kind"}


def _tree_of_text(text: str) -> Node | None:
    """Return the tree of a text that is a JSON object or list; None for any other text, and for a very long one."""
    if len(text) > _WHOLE or not text.lstrip().startswith(("{", "[")):
        return None
    try:
        return tree_of(parse_json(text))
    except ValueError:
        return None


def _kind(found: Found | None, declared: str | None) -> str:
    media_type = (found.media_type if found is not None else declared) or ""
    return _media_kind(media_type)


def _media_kind(media_type: str) -> str:
    if media_type.startswith("image/"):
        return "image"
    if media_type.startswith("audio/"):
        return "audio"
    return "document" if media_type == PDF else "file"


def _found_part(kind: str, found: Found | None, declared: str | None, shelf: MediaShelf) -> Part:
    if found is None:
        return {"kind": kind, "media_type": declared, "bytes": None, "medium": None, "note": "its base64 is broken"}
    return _medium_part(
        kind, Medium(found.data, found.media_type or declared or "", found.pixels), found.byte_size, shelf
    )


def _medium_part(kind: str, medium: Medium, size: int, shelf: MediaShelf) -> Part:
    part: dict[str, Any] = {
        "kind": kind,
        "media_type": medium.media_type,
        "bytes": size,
        "medium": shelf.put(medium),
    }
    if kind == "image":
        part["pixels"] = list(medium.pixels) if medium.pixels else None
        part["is_drawn_as_it_is"] = is_drawn_as_it_is(medium.media_type, medium.pixels)
    return part


def seen_parts(seen: Seen, shelf: MediaShelf) -> list[Part]:
    """Return the parts of what the model of a host gets, in order."""
    return [_seen_part(part, shelf) for part in seen.parts]


def _seen_part(part: SeenPart, shelf: MediaShelf) -> Part:
    match part:
        case SeenText():
            return text_part(part.text, part.form)
        case SeenImage():
            pixels = PixelSize(*part.pixels) if part.pixels else None
            shown = _medium_part("image", Medium(part.data, part.media_type, pixels), decoded_size(part.data), shelf)
            return {**shown, **_special(part.where, part.note)}
        case SeenAudio():
            shown = _medium_part("audio", Medium(part.data, part.media_type), decoded_size(part.data), shelf)
            return {**shown, **_special(part.where)}
        case SeenDocument():
            shown = _medium_part(
                _media_kind(part.media_type), Medium(part.data, part.media_type), decoded_size(part.data), shelf
            )
            return {**shown, **_special(part.where)}


def _special(where: str, note: str | None = None) -> dict[str, str]:
    return ({"where": where} if where != "in the result" else {}) | ({"note": note} if note else {})


def text_part(text: str, form: str = "text") -> dict[str, Any]:
    """Return the part for a text."""
    # In pieces: hosts' calls have their turn in between, if this runs in a thread.
    pieces = (text[start : start + _PIECE] for start in range(0, len(text), _PIECE))
    leak = sum(len(run) for piece in pieces for run in base64_runs(piece))
    return {
        "kind": "text",
        "form": form,
        "text": shortened(text),
        "characters": len(text),
        "base64": leak,
    }


def json_part(value: Any) -> dict[str, Any]:
    """Return the part for a JSON value. Of a large one, only the beginning is written.

    Its text is indented, for people; `characters` and `text_tokens` (estimated) are those of the JSON as it is sent.
    """
    part = {"kind": "json", "base64": 0, "tree": tree_of(value)}
    written = json.JSONEncoder(indent=2, ensure_ascii=False, default=str).iterencode(value)
    if (size := size_of(value).total) > _WHOLE:
        text = "".join(islice(written, HEAD))[:HEAD]
        # Line ends and the blanks behind them are indentation: JSON escapes the line ends of texts.
        sample = _INDENTATION.sub("", text).replace('": ', '":')
        tokens = round(text_tokens(sample) * size / max(1, len(sample)))
        text = f"{text}\n… {max(0, size - HEAD):,} more characters …"
        return {**part, "text": text, "characters": size, "text_tokens": tokens}
    sent = compact_json(value)
    text = shortened("".join(written))
    return {**part, "text": text, "characters": len(sent), "text_tokens": text_tokens(sent)}


def shortened(text: str) -> str:
    """Return a text that can be looked at: a long one without its middle."""
    left_out = len(text) - HEAD - TAIL
    if left_out <= 200:
        return text
    return f"{text[:HEAD]}\n… {left_out:,} more characters …\n{text[-TAIL:]}"


def characters(parts: list[Part]) -> int:
    """Return the number of characters that are read as text."""
    return sum(part.get("characters", 0) for part in parts)
