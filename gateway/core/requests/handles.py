"""Handles that the gateway wrote into a tool's result: a line that names kept content, or a `content://` uri."""

import re
from collections.abc import Iterator, Mapping

from gateway.core import wording
from gateway.core.model.blocks import Block, LinkBlock, TextBlock
from gateway.core.model.envelope import Envelope
from gateway.core.model.notes import Note

_HANDLE = r"(?:img|aud|vid|doc|mod|cad|bin)_[0-9a-z]{12}"
_INSIDE = r"[^\[\]\n]{0,2000}"
_QUOTE = r"""\\{0,3}"?"""  # also where JSON has escaped it
_OPENED = rf"; (?:open it with [\w-]+, )?handle {_QUOTE}(?P<line>{_HANDLE}){_QUOTE}"
_LINE = rf"\[(?:image|audio|video|document|content) \d+: {_INSIDE}?{_OPENED}\]"
_LINK = rf"\[link {_INSIDE}?<content://(?P<link>{_HANDLE})>{_INSIDE}\]"
_NAMED = re.compile(rf"{_LINE}|{_LINK}|content://(?P<uri>{_HANDLE})\b")
"""`wording.media_line`, `wording.link_line`, and a uri by itself."""


def handles_in(envelope: Envelope) -> tuple[str, ...]:
    """The handles of content that could be shown, in order, each once."""
    return tuple(dict.fromkeys(handle for block in envelope.blocks for handle in _in_block(block)))


def expanded(envelope: Envelope, contents: Mapping[str, Block]) -> Envelope:
    """The envelope with the content of the given handles as blocks where they were named."""
    if not any(handle in contents for handle in handles_in(envelope)):
        return envelope
    blocks: list[Block] = []
    for block in envelope.blocks:
        if isinstance(block, TextBlock):
            blocks.extend(_from_text(block, contents))
        elif isinstance(block, LinkBlock) and (handle := _of_uri(block.uri)) in contents:
            blocks.append(contents[str(handle)])
        else:
            blocks.append(block)
    notes = [Note(kind="rescued", text=f"{handle} opened") for handle in handles_in(envelope) if handle in contents]
    return envelope.model_copy(update={"blocks": tuple(blocks)}).with_note(*notes)


def _in_block(block: Block) -> Iterator[str]:
    if isinstance(block, TextBlock):
        if "content://" in block.text or "handle" in block.text:
            yield from (str(match[match.lastgroup or 0]) for match in _NAMED.finditer(block.text))
    elif isinstance(block, LinkBlock) and (handle := _of_uri(block.uri)):
        yield handle


def _of_uri(uri: str) -> str | None:
    match = _NAMED.fullmatch(uri)
    return match["uri"] if match else None


def _from_text(block: TextBlock, contents: Mapping[str, Block]) -> Iterator[Block]:
    """The text around each line, with the content between; JSON stays whole, and what it names follows it."""
    text, done, pending = block.text, 0, ""
    is_json = text.lstrip()[:1] in ("{", "[") and text.rstrip()[-1:] in ("}", "]") and not _NAMED.match(text.lstrip())
    after: list[Block] = []
    for match in _NAMED.finditer(text):
        handle = str(match[match.lastgroup or 0])
        if handle not in contents:
            continue
        pending += text[done : match.start()]
        done = match.end()
        if is_json or match.lastgroup == "uri":
            pending += wording.shown_with_result(handle) if match.lastgroup != "uri" else handle
            after.append(contents[handle])
            continue
        if pending.strip():
            yield block.model_copy(update={"text": pending})
        pending = ""
        yield contents[handle]
    if (pending + text[done:]).strip():
        yield block.model_copy(update={"text": pending + text[done:]})
    yield from after
