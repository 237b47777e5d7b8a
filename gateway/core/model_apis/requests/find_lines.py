"""Find handles in text: lines and captions by the gateway that name stored content, and `content://` URIs."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from gateway.core import wording
from gateway.core.model import media_types
from gateway.core.model.blocks import AudioBlock, Block, ImageBlock, LinkBlock, TextBlock
from gateway.core.model.envelope import Envelope
from gateway.core.model.notes import Note

How = Literal["line", "described", "link", "uri", "caption"]
"""A line stands for content that the host does not show, a caption before content that it is meant to show.

The line of a document whose pages follow as images is a caption, whether or not all of them follow.
"""

_HANDLE = r"(?:img|aud|vid|doc|mod|cad|bin)_[0-9a-z]{12}"
_INSIDE = r"[^\[\]\n]{0,2000}"
_QUOTE = r"""\\{0,7}"?"""  # may be escaped by JSON, up to three times
_KIND = r"(?:image|audio|video|document|content)"
_URL = r"(?:; a link that opens [^\[\]\n]{1,40} for a while: [^\[\]\s]{1,2000})?"
_OPENED = rf"; (?:open it with [\w-]+, )?handle {_QUOTE}(?P<line>{_HANDLE}){_QUOTE}"
_LINE = rf"\[{_KIND} \d{{1,6}}: (?P<line_known>{_INSIDE}?){_OPENED}{_URL}\]"
_DESCRIBED = (
    rf"\[{_KIND} \d{{1,6}}, described by [^\[\]\n(]{{1,200}}\({_INSIDE}?(?P<seam>; handle )(?P<described>{_HANDLE})\):"
)
_LINK = rf"\[link {_INSIDE}?<content://(?P<link>{_HANDLE})>{_INSIDE}\]"
_ZOOM = rf"; for details call [\w-]+ with handle {_QUOTE}(?P<zoom>{_HANDLE}){_QUOTE}"
_PASSED = rf"; its handle for tools is (?P<passed>{_HANDLE})"
_CAPTION = rf"\[{_KIND} \d{{1,6}}(?:: (?P<caption_known>{_INSIDE}?))?(?:{_ZOOM}|{_PASSED}){_URL}\]"
_NAMED = re.compile(rf"{_LINE}|{_DESCRIBED}|{_LINK}|{_CAPTION}|content://(?P<uri>{_HANDLE})\b")
"""Matches `media_line`, `described`, `link_line`, `caption` and `marker` of `gateway.core.wording`, and a bare URI."""

_GROUPS: Mapping[str, How] = {
    "line": "line",
    "described": "described",
    "link": "link",
    "uri": "uri",
    "zoom": "caption",
    "passed": "caption",
}
_PAGES_FOLLOW = re.compile(rf"(?:^|, ){wording.PAGES_AS_IMAGES}$")
_UNTRUE = re.compile(
    rf"{_PAGES_FOLLOW.pattern}"
    r"|; saved as .*| \([^()]*\)$|(?:, )?shown at \d+x\d+, multiply coordinates by [\d.]+ for the original"
    r"|(?:, )?after the tool results"
)
"""Facts in a line that are no longer true once the content is shown again."""


_LONGEST = 4_000_000
"""Length above which a text is not searched: no model reads that much."""


@dataclass(frozen=True)
class Naming:
    """One place in a text that names content: from `start` up to `end`, with what is said about it."""

    how: How
    handle: str
    start: int
    end: int
    known: str = ""
    seam: int = 0
    """The position of the handle in a description."""


def namings(text: str) -> tuple[Naming, ...]:
    """Find every place in a text where the gateway named content that could be shown, in order."""
    if len(text) > _LONGEST or ("content://" not in text and "handle" not in text):
        return ()
    return tuple(_naming(match) for match in _NAMED.finditer(text))


def _naming(match: re.Match[str]) -> Naming:
    group, handle = next((group, match[group]) for group in _GROUPS if match[group])
    known = match["line_known"] or match["caption_known"] or ""
    how = "caption" if _PAGES_FOLLOW.search(known) else _GROUPS[group]
    return Naming(how, handle, match.start(), match.end(), _UNTRUE.sub("", known).strip(), match.start("seam"))


NAMED: frozenset[How] = frozenset({"line", "described", "link", "uri"})
"""Ways of naming content that is not shown."""
CAPTION: frozenset[How] = frozenset({"caption"})
"""Ways of naming content that the host was given to show, whether or not it did."""
WHOLE_LINES: frozenset[How] = frozenset({"line", "described", "link"})
"""Forms that do not occur by chance: complete lines of the gateway's own."""


def handles_in(envelope: Envelope, hows: frozenset[How] = NAMED) -> tuple[str, ...]:
    """Return the handles of content named in one of these ways, in order, each once."""
    return tuple(dict.fromkeys(handle for block in envelope.blocks for handle in _in_block(block, hows)))


def expanded(
    envelope: Envelope, contents: Mapping[str, Block], hows: frozenset[How] = NAMED, *, after: bool = False
) -> Envelope:
    """Return the envelope with the content of the given handles as blocks where they are named in one of these ways.

    `after`: texts stay whole, and all content follows them.
    """
    opened = [handle for handle in handles_in(envelope, hows) if handle in contents]
    if not opened:
        return envelope
    blocks: list[Block] = []
    for block in envelope.blocks:
        if isinstance(block, TextBlock):
            blocks.extend(_Opening(block, contents, hows, after=after).blocks())
        elif isinstance(block, LinkBlock) and (handle := _of_uri(block.uri)) in contents:
            blocks.append(contents[str(handle)])
        else:
            blocks.append(block)
    notes = [Note(kind="rescued", text=f"{handle} put back") for handle in opened]
    return envelope.model_copy(update={"blocks": tuple(blocks)}).with_note(*notes)


def _in_block(block: Block, hows: frozenset[How]) -> Iterator[str]:
    if isinstance(block, TextBlock):
        yield from (naming.handle for naming in namings(block.text) if naming.how in hows)
    elif isinstance(block, LinkBlock) and "uri" in hows and (handle := _of_uri(block.uri)):
        yield handle


def _of_uri(uri: str) -> str | None:
    match = _NAMED.fullmatch(uri)
    return match["uri"] if match else None


class _Opening:
    """Rewrites one text: the text between its lines, with content in place of the lines."""

    def __init__(self, block: TextBlock, contents: Mapping[str, Block], hows: frozenset[How], *, after: bool) -> None:
        self._block = block
        self._contents = contents
        self._hows = hows
        self._after = after

    def blocks(self) -> list[Block]:
        """Return the text around each line that stands alone, with the content in between; other content follows it."""
        text, done, pending = self._block.text, 0, ""
        blocks: list[Block] = []
        later: list[Block] = []
        for naming in self._wanted(text):
            pending += text[done : naming.start]
            done = naming.end
            shown = self._shown(naming)
            if self._stands_alone(naming):
                blocks += [*self._words(pending.removesuffix("\n")), *shown]
                pending, done = "", done + text.startswith("\n", done)
            else:
                pending += _inside(text, naming)
                later += shown
        return [*blocks, *self._words(pending + text[done:]), *later]

    def _wanted(self, text: str) -> Sequence[Naming]:
        return [naming for naming in namings(text) if naming.how in self._hows and naming.handle in self._contents]

    def _stands_alone(self, naming: Naming) -> bool:
        """Whether the text can be split here: not within JSON or other printed output, nor within a sentence."""
        text = self._block.text
        before = text[text.rfind("\n", 0, naming.start) + 1 : naming.start]
        behind = text[naming.end : end if (end := text.find("\n", naming.end)) >= 0 else len(text)]
        return not self._after and naming.how in ("line", "link", "caption") and not (before + behind).strip()

    def _words(self, text: str) -> list[Block]:
        return [self._block.model_copy(update={"text": text})] if text.strip() else []

    def _shown(self, naming: Naming) -> list[Block]:
        """Return the content, after a caption that keeps its handle for tools."""
        content = self._contents[naming.handle]
        caption = wording.marker(wording.label(_kind_of(content), 1), naming.known, naming.handle)
        return [TextBlock.model_validate({"type": "text", "text": caption}), content]


def _inside(text: str, naming: Naming) -> str:
    """Return the replacement for a naming in a text that stays whole; it is not expanded again."""
    match naming.how:
        case "uri":
            return naming.handle
        case "described":
            return f"{text[naming.start : naming.seam]}; its handle for tools is {naming.handle}):"
        case _:
            return wording.shown_with_result(naming.handle)


def _kind_of(block: Block) -> str:
    if isinstance(block, ImageBlock | AudioBlock):
        return block.type
    found = getattr(block, "found", None)
    return "video" if found is not None and media_types.family(found.media_type) == "video" else "document"
