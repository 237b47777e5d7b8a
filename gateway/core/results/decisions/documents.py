"""Deciding about a PDF: sent as it is, as text with a mark before each page, as images of its pages, or as a line."""

from collections.abc import Sequence
from dataclasses import replace

from gateway.core import fact_words, own_names, wording
from gateway.core.model.effects import DocumentRead, Failed, Fitted, ImageTarget, ReadDocument, Rendered, RenderPages
from gateway.core.results.decisions.block_decisions import AsImage, AsIs, AsText, BlockDecision, BlockSource, ToTextLine
from gateway.core.results.decisions.decision_context import DecisionContext, known_of
from gateway.core.results.decisions.images import image_target

_MOST_PAGES = 200
"""Pages whose text is read if the profile sets no number."""
_MOST_PICTURES = 20
"""Pages that are drawn if the profile sets no number."""
_MOST_CHARS = 400_000
"""Characters of text that are read from one document; how much a host takes is left to the budget."""
_LARGEST_EDGE = 2_000
"""Pixels of a page's longer edge if the profile sets no number: a page has no size in pixels of its own."""
_PAGE_TYPES = ("image/png", "image/jpeg")


def decide_document(
    context: DecisionContext, source: BlockSource, as_is: AsIs, hidden: str | None
) -> list[BlockDecision]:
    """Decide about a PDF. `as_is` is the decision to send the block as it arrived."""
    rules = context.profile.document
    if hidden:
        return [context.line(source, "document", hidden)]
    is_small = rules.max_bytes is None or source.found.byte_size <= rules.max_bytes
    if rules.show == "native" and is_small and not context.hides_media:
        return [as_is]
    if rules.show == "file":
        return [context.filed(source, "document")]
    if rules.show == "line":
        return [context.line(source, "document", None)]
    pages = min(rules.max_pages or _MOST_PAGES, _MOST_PAGES)
    read = context.want(ReadDocument(f"read:{source.key}", source.found.data, pages, _MOST_CHARS))
    if isinstance(read, Failed):
        context.note("failed", f"document: {read.reason}", source.index)
        return [context.line(source, "document", read.reason, is_intact=False)]
    if not isinstance(read, DocumentRead):
        return [context.line(source, "document", None)]
    has_text = any(text.strip() for text in read.texts)
    if rules.show == "pages" or not has_text:
        shown = _pages(context, source, read)
        if shown is not None:
            return shown
    return _texts(context, source, read) if has_text else [_unread(context, source, read)]


def _texts(context: DecisionContext, source: BlockSource, read: DocumentRead) -> list[BlockDecision]:
    marked = [
        f"{wording.page_mark(number, read.pages, bool(text.strip()))}\n{text.strip()}".rstrip()
        for number, text in enumerate(read.texts, 1)
    ]
    context.note("converted", f"application/pdf as text, {wording.page_range(len(marked), read.pages)}", source.index)
    if len(marked) < read.pages:
        context.note("cut", f"{read.pages - len(marked):,} of {read.pages:,} pages are left out", source.index)
    head = _head(context, source, read, f"text of {wording.page_range(len(marked), read.pages)}")
    return [head, AsText("\n\n".join(marked), key=source.key, index=source.index)]


def _pages(context: DecisionContext, source: BlockSource, read: DocumentRead) -> list[BlockDecision] | None:
    """Return the pages as images; None if none can be shown."""
    rules, images = context.profile.document, context.profile.image
    if images.show != "native" or context.hides_media:
        return None
    most = min(read.pages, rules.max_pages or _MOST_PICTURES)
    if images.max_count is not None:
        most = min(most, images.max_count - context.images)
    if most < 1:
        return None
    numbers = tuple(range(1, most + 1))
    drawn = context.want(
        RenderPages(f"pages:{source.key}", source.found.data, numbers, _target(context, images.max_bytes))
    )
    if isinstance(drawn, Failed) or (isinstance(drawn, Rendered) and not _any_drawn(drawn)):
        why = drawn.reason if isinstance(drawn, Failed) else "no page could be drawn"
        context.note("failed", f"pages of a document: {why}", source.index)
        return None
    context.images += most
    if not isinstance(drawn, Rendered):
        return [context.line(source, "document", None)]
    context.note("converted", f"application/pdf as images, {wording.page_range(most, read.pages)}", source.index)
    if most < read.pages:
        context.note("cut", f"{read.pages - most:,} of {read.pages:,} pages are left out", source.index)
    head = _head(context, source, read, wording.pages_as_images(most, read.pages))
    name = fact_words.plain(source.name) if source.name else None
    return [head, *(_page(context, source, number, read.pages, name, drawn) for number in numbers)]


def _any_drawn(drawn: Rendered) -> bool:
    return any(isinstance(image, Fitted) for image in drawn.images)


def _page(
    context: DecisionContext, source: BlockSource, number: int, pages: int, name: str | None, drawn: Rendered
) -> BlockDecision:
    about = wording.page_of(number, pages, name)
    image = drawn.images[number - 1] if number <= len(drawn.images) else Failed("it was not drawn")
    if isinstance(image, Failed):
        context.note("failed", f"page {number}: {image.reason}", source.index)
        return ToTextLine(wording.page_left_out(about, image.reason))
    page = BlockSource(f"{source.key}p{number}", source.index, source.found, source.name, number)
    beside = {"type": "image"}
    return AsImage(image.data, image.media_type, image.pixels, beside, source=page, about=about)


def smaller_page(context: DecisionContext, page: AsImage, source: BlockSource, max_bytes: int) -> BlockDecision:
    """Fit a page that is shown into fewer bytes; return a line if that fails."""
    number = source.page or 1
    drawn = context.want(
        RenderPages(f"refit:{source.key}", source.found.data, (number,), _target(context, max_bytes)),
    )
    if drawn is None:
        return page
    image = drawn.images[0] if isinstance(drawn, Rendered) and drawn.images else drawn
    if isinstance(image, Fitted):
        return replace(page, data=image.data, media_type=image.media_type, pixels=image.pixels)
    why = image.reason if isinstance(image, Failed) else "it was not drawn"
    return left_out_page(context, page, source, why)


def left_out_page(context: DecisionContext, page: AsImage, source: BlockSource, why: str) -> ToTextLine:
    """Return the line in place of a page; the document's own line names the handle."""
    context.note("cut", f"page {source.page} is left out: {why}", source.index)
    return ToTextLine(wording.page_left_out(page.about, why))


def _target(context: DecisionContext, max_bytes: int | None) -> ImageTarget:
    target = image_target(context.profile.image, max_bytes)
    types = tuple(kind for kind in target.types if kind in _PAGE_TYPES) or target.types
    return ImageTarget(types, min(target.max_edge or _LARGEST_EDGE, _LARGEST_EDGE), max_bytes, target.animation)


def _unread(context: DecisionContext, source: BlockSource, read: DocumentRead) -> ToTextLine:
    context.note("named", "document (application/pdf) as a line: it has no text", source.index)
    return _head(context, source, read, "no text in it")


def _head(context: DecisionContext, source: BlockSource, read: DocumentRead, what: str) -> ToTextLine:
    """Return the line before a document's text or pages, which names the document and the tool for the rest of it."""
    titled: Sequence[str | None] = (
        fact_words.plain(source.name) if source.name else None,
        f'"{fact_words.plain(read.title, 100)}"' if read.title and read.title.strip() else None,
    )
    known = fact_words.join_facts(*titled, known_of(source.found), fact_words.page_count(read.pages), what)
    tool = own_names.VIEW_TOOL if context.profile.tools.helpers else None
    return ToTextLine(context.unless_kept(source, ""), "document", known, context.kept(source), tool)
