"""Deciding about a link to a resource."""

from collections.abc import Callable
from typing import Any, TypeAlias

from pydantic import ValidationError

from gateway.core import fact_words, wording
from gateway.core.model import media_types
from gateway.core.model.base64_text import mend
from gateway.core.model.blocks import LinkBlock, ResourceBlock
from gateway.core.model.contents import found_in
from gateway.core.model.effects import Failed, LinkRead, ReadLink
from gateway.core.model.json_values import is_dict
from gateway.core.results.decisions.block_decisions import AsIs, BlockDecision, ToTextLine
from gateway.core.results.decisions.decision_context import PDF, DecisionContext, is_image

ShowEmbedded: TypeAlias = Callable[[DecisionContext, int, str, ResourceBlock], list[BlockDecision]]
"""A function that decides about an embedded resource, given the index of its block, its key, and the block."""

_MOST_CONTENTS = 20
"""Maximum number of contents of one link that are used; the rest is left out."""
_ENDINGS = (".pdf", *(f".{ending}" for kind, ending in media_types.EXTENSIONS.items() if kind.startswith("image/")))


def decide_link(context: DecisionContext, index: int, block: LinkBlock, show: ShowEmbedded) -> list[BlockDecision]:
    """Decide about a link: unchanged, a line, or the resource that it leads to."""
    rules = context.profile.link
    if rules.show == "native":
        return [AsIs(block.wire(), "link", fact_words.plain(block.uri), block=block)]
    if rules.show == "inline" and block.audience != ("user",) and _leads_to_media(block):
        shown = _inline(context, index, block, show)
        if shown:
            return shown
    context.note("named", "a link as a line", index)
    return [ToTextLine(link_words(block, readable=context.profile.tools.helpers))]


def link_words(block: LinkBlock, *, readable: bool) -> str:
    """Format a link as one line of text; `readable`: the gateway's own tool can read it."""
    size = fact_words.size_words(block.size) if block.size is not None else None
    known = fact_words.join_facts(fact_words.plain(block.mime_type, 80) if block.mime_type else "", size)
    return wording.link_line(block.title or block.name or "", known, block.uri, block.description, readable)


def _leads_to_media(block: LinkBlock) -> bool:
    media_type = media_types.normalise(block.mime_type)
    if media_type is None:
        return block.uri.split("?", 1)[0].split("#", 1)[0].lower().endswith((*_ENDINGS, ".jpeg", ".tif"))
    return media_type == PDF or media_type.startswith("image/")


def _inline(context: DecisionContext, index: int, block: LinkBlock, show: ShowEmbedded) -> list[BlockDecision]:
    """Decide about the linked resource as if it had been embedded; empty if the line has to suffice."""
    rules = context.profile.link
    if context.links >= rules.max_count or (block.size is not None and block.size > rules.max_bytes):
        return []
    context.links += 1
    read = context.want(ReadLink(f"link:{index}", block.uri, rules.max_bytes))
    if isinstance(read, Failed):
        context.note("failed", f"a link: {read.reason}", index)
        return []
    if not isinstance(read, LinkRead):
        return []
    decided_blocks: list[BlockDecision] = []
    for number, contents in enumerate(read.contents[:_MOST_CONTENTS]):
        embedded = _embedded(contents, block)
        if embedded is not None:
            decided_blocks += show(context, index, f"{index}.{number}", embedded)
    if decided_blocks:
        context.note("moved", "what a link leads to, in its place", index)
    return decided_blocks


def _embedded(contents: Any, block: LinkBlock) -> ResourceBlock | None:
    """Turn an image or a document that was read into an embedded resource; None for anything else."""
    if not is_dict(contents):
        return None
    resource = {"uri": block.uri, **contents}
    try:
        embedded = ResourceBlock.model_validate({"type": "resource", "resource": resource})
    except ValidationError:
        return None
    if embedded.resource.blob is None:
        return None
    found = found_in(mend(embedded.resource.blob), embedded.resource.mime_type or block.mime_type)
    if found is None or not (is_image(found) or found.media_type == PDF):
        return None
    return embedded.model_copy(update={"found": found})
