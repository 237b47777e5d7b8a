"""What can become of a block, and the decisions for a whole result."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from gateway.core.model.effects import Effect
from gateway.core.model.media_types import PixelSize
from gateway.core.model.notes import Note


@dataclass(frozen=True)
class AsIs:
    """The block as it arrived. `kind` names it in markers when it has to move: `audio`, `document` ..."""

    wire: Any
    kind: str
    known: str = ""
    has_bytes: bool = False


@dataclass(frozen=True)
class AsText:
    """A text. `beside` is every member of the block but its text; `whole` the text before it was cut, if it was."""

    text: str
    beside: Mapping[str, Any] = field(default_factory=dict[str, Any])
    whole: str | None = None


@dataclass(frozen=True)
class AsImage:
    """An image block. `original` is set when it was scaled; `handle` keeps the original; `uri` where it came from."""

    data: str
    media_type: str
    pixels: PixelSize | None
    beside: Mapping[str, Any] = field(default_factory=dict[str, Any])
    original: PixelSize | None = None
    handle: str | None = None
    uri: str | None = None


@dataclass(frozen=True)
class AsLine:
    """One line of text in place of the block: what it is, what is `known` of it, and why it is not shown (`text`).

    With `kind` None, `text` is the whole line.
    """

    text: str
    kind: str | None = None
    known: str = ""
    handle: str | None = None
    tool: str | None = None


Fate: TypeAlias = AsIs | AsText | AsImage | AsLine


@dataclass(frozen=True)
class Decisions:
    """What becomes of the blocks, in order; the effects that are still needed; the notes of what was changed.

    `is_error`: whether the result keeps its flag; `prefix`: what its text begins with.
    `structured`: whether structured content is sent beside the blocks.
    """

    fates: tuple[Fate, ...]
    wanted: tuple[Effect, ...]
    notes: tuple[Note, ...]
    is_error: bool
    prefix: str
    structured: bool
