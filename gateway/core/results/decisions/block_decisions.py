"""What can become of a block, and the decisions for a whole result."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from gateway.core.model.blocks import Block, Found
from gateway.core.model.effects import Effect
from gateway.core.model.media_types import PixelSize
from gateway.core.model.notes import Note


@dataclass(frozen=True)
class BlockSource:
    """Content with bytes that is decided upon, as it came: of the block at `index`, which calls it `name` (its uri).

    `key` tells it from everything else of the result, in the keys of effects. `page` is set for a page of a document.
    """

    key: str
    index: int
    found: Found
    name: str | None = None
    page: int | None = None


@dataclass(frozen=True)
class AsIs:
    """The block as it arrived, or media of its kind. `kind` names it in markers when it has to move: `audio` ...

    `shown` is what its bytes are now, `source` what they were; `caption` stands before it where it was changed.
    """

    wire: Any
    kind: str
    known: str = ""
    has_bytes: bool = False
    block: Block | None = None
    source: BlockSource | None = None
    shown: Found | None = None
    caption: str = ""
    handle: str | None = None
    url: str | None = None


@dataclass(frozen=True)
class AsText:
    """A text. `beside` is every member of the block but its text; `whole` the text before it was cut, if it was.

    `left_out`: how many characters of it. `key` tells it from the other texts; `index` is that of its block, None for
    structured content.
    """

    text: str
    beside: Mapping[str, Any] = field(default_factory=dict[str, Any])
    whole: str | None = None
    left_out: int = 0
    key: str = ""
    index: int | None = None


@dataclass(frozen=True)
class AsImage:
    """An image block. `original` is set when it was scaled; `handle` keeps the original; `uri` where it came from.

    `frames`: of how many it is the first; `about` says what it shows where that is not an image of its own: a page.
    `url` is a link to the original, where the profile wants one.
    """

    data: str
    media_type: str
    pixels: PixelSize | None
    beside: Mapping[str, Any] = field(default_factory=dict[str, Any])
    original: PixelSize | None = None
    handle: str | None = None
    uri: str | None = None
    source: BlockSource | None = None
    frames: int = 1
    about: str = ""
    url: str | None = None


@dataclass(frozen=True)
class ToTextLine:
    """One line of text in place of the block: what it is, what is `known` of it, and why it is not shown (`text`).

    `tool` opens what is behind the handle; `path` is a file of it; `said` describes it in words, made `by` something.
    With `kind` None, `text` is the whole line. `url` is a link to the content, where the profile wants one.
    """

    text: str
    kind: str | None = None
    known: str = ""
    handle: str | None = None
    tool: str | None = None
    path: str | None = None
    said: str = ""
    by: str = ""
    url: str | None = None


BlockDecision: TypeAlias = AsIs | AsText | AsImage | ToTextLine


@dataclass(frozen=True)
class Decisions:
    """What becomes of the blocks, in order; the effects that are still needed; the notes of what was changed.

    `is_error`: whether the result keeps its flag; `prefix`: what its text begins with.
    `structured`: whether structured content is sent beside the blocks.
    """

    decided_blocks: tuple[BlockDecision, ...]
    wanted: Mapping[str, Effect]
    notes: tuple[Note, ...]
    is_error: bool
    prefix: str
    structured: bool
