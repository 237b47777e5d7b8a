"""The possible decisions about a block, and the decisions for a whole result."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from gateway.core.model.blocks import Block, Found
from gateway.core.model.effects import Effect
from gateway.core.model.media_types import PixelSize
from gateway.core.model.notes import Note
from gateway.core.tokens import Length, Lengths


@dataclass(frozen=True)
class BlockSource:
    """Content with bytes that is being decided on, as it arrived: from the block at `index`, with its `name` (a URI).

    `key` identifies it within the result, in the keys of effects. `page` is set for a page of a document.
    """

    key: str
    index: int
    found: Found
    name: str | None = None
    page: int | None = None


@dataclass(frozen=True)
class AsIs:
    """The block as it arrived, or media of its kind. `kind` names it in markers if it has to move: `audio` ...

    `shown` is the content as sent, `source` as received; `caption` precedes it if it was changed.
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

    `left_out` is the number of characters removed from it. `key` identifies it among the texts; `index` is that of its
    block, None for structured content.
    """

    text: str
    beside: Mapping[str, Any] = field(default_factory=dict[str, Any])
    whole: str | None = None
    left_out: int = 0
    key: str = ""
    index: int | None = None


@dataclass(frozen=True)
class AsImage:
    """An image block. `original` is set if it was scaled; `handle` stands for the original; `uri` is its origin.

    `frames` is the number of frames of the animation that it is the first frame of; `about` says what it shows if it is
    a page rather than an image of its own. `url` is a link to the original, if the profile wants one.
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
    """One line of text in place of the block: its kind, what is `known` of it, and why it is not shown (`text`).

    `tool` opens the content behind the handle; `path` is a copy in a file; `said` describes it in words, produced `by`
    something. If `kind` is None, `text` is the whole line. `url` is a link to the content, if the profile wants one.
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
class ErrorWords:
    """How a failed result says that it is one: with its error flag, with a prefix of its text, or both.

    `unflagged`: the flag was removed, so that the host does not drop the media beside it.
    """

    is_error: bool = False
    prefix: str = ""
    unflagged: bool = False


@dataclass(frozen=True)
class SentStructured:
    """Structured content as it is sent; `line` says in the content what was left out of it, if it was cut."""

    value: Any
    line: str | None = None


@dataclass(frozen=True)
class Decisions:
    """The decisions about the blocks, in order; the effects still needed; notes of what was changed.

    `structured`: the structured content that is sent beside the blocks, if any. `lengths` are those known of the media.
    """

    decided_blocks: tuple[BlockDecision, ...]
    wanted: Mapping[str, Effect]
    notes: tuple[Note, ...]
    error: ErrorWords
    structured: SentStructured | None
    lengths: Lengths = field(default_factory=dict[str, Length])
