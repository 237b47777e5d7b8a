"""The documents server: texts, PDF files and covers as embedded resources, as links, and as resources to be read.

The same bytes can reach a host in three ways. An embedded resource carries them inside the result. A resource link
names an address that the host may read later, with resources/read. And resources/list and the templates offer what
there is without any tool. Few hosts let their model read resources, so a tool that returns links alone is of use to
few: this server offers all three.
"""

from base64 import b64encode
from functools import partial
from typing import Annotated, Literal

from mcp.server.mcpserver import MCPServer
from mcp.server.mcpserver.exceptions import ResourceNotFoundError, ToolError
from mcp.server.mcpserver.resources import FunctionResource
from mcp_types import (
    BlobResourceContents,
    CallToolResult,
    EmbeddedResource,
    ResourceLink,
    TextContent,
    TextResourceContents,
    ToolAnnotations,
)
from pydantic import BaseModel, Field

from ..serving import serve
from . import library
from .library import Document, UnknownDocument
from .pdf import pages, pdf

PORT = 8701

server = MCPServer(
    "documents",
    title="A small library",
    version="1.0.0",
    instructions=(
        "Four short documents: clouds, knots, lighthouse, sourdough. Search them, read them as Markdown or PDF, look "
        "at their covers. Every tool works without arguments."
    ),
    log_level="WARNING",
)

PURE = ToolAnnotations(read_only_hint=True, idempotent_hint=True, open_world_hint=False)
"""What is true of every tool here: it changes nothing, gives the same again, and reaches nothing outside."""

Form = Literal["text", "pdf", "cover"]
MEDIA_TYPES: dict[Form, str] = {"text": "text/markdown", "pdf": "application/pdf", "cover": "image/png"}
ENDINGS: dict[Form, str] = {"text": ".md", "pdf": ".pdf", "cover": ".png"}
Name = Annotated[str, Field(max_length=60, description="A document: clouds, knots, lighthouse or sourdough.")]


def find(name: str) -> Document:
    """A document. An unknown name is a ToolError that names those that there are."""
    try:
        return library.document(name)
    except UnknownDocument as error:
        raise ToolError(str(error)) from error


def address(document: Document, form: Form) -> str:
    """Where a document can be read as a resource."""
    return f"library://{document.name}/{form}"


def content(document: Document, form: Form) -> str | bytes:
    """A document as text, or as the bytes of its PDF or cover."""
    if form == "text":
        return document.markdown
    if form == "pdf":
        return pdf(document)
    # Pillow takes its time to import, and is needed for covers only.
    from .cover import cover as draw

    return draw(document)


def embedded(uri: str, media_type: str, inside: str | bytes) -> CallToolResult:
    """A result of one embedded resource: text as text, bytes as a blob."""
    if isinstance(inside, str):
        resource = TextResourceContents(uri=uri, mime_type=media_type, text=inside)
    else:
        resource = BlobResourceContents(uri=uri, mime_type=media_type, blob=b64encode(inside).decode("ascii"))
    return CallToolResult(content=[EmbeddedResource(type="resource", resource=resource)])


@server.tool(title="Search the library", annotations=PURE)
def search(
    query: Annotated[
        str, Field(min_length=1, max_length=200, description="Words to look for; beginnings of words count.")
    ] = "rain",
    most: Annotated[int, Field(ge=1, le=20, description="How many paragraphs to return.")] = 5,
) -> CallToolResult:
    """Find paragraphs with the words of a query; those with most of them come first."""
    hits = library.search(query, most)
    if not hits:
        found = f"Nothing found for {query!r}. The library has: {', '.join(library.documents())}."
    else:
        found = "\n\n".join(f"{hit.document.name} / {hit.section.heading}\n{hit.paragraph}" for hit in hits)
    return CallToolResult(content=[TextContent(type="text", text=found)])


@server.tool(title="Read a document as PDF", annotations=PURE)
def read_pdf(
    document: Name = "clouds",
    page: Annotated[int, Field(ge=0, le=1_000, description="One page, counted from 1; 0 for the whole document.")] = 0,
) -> CallToolResult:
    """Read a document, or one page of it, as a PDF whose text can be selected: an embedded resource with bytes."""
    found = find(document)
    try:
        file = pdf(found, page or None)
    except IndexError as error:
        raise ToolError(str(error)) from error
    uri = address(found, "pdf") + (f"/{page}" if page else "")
    return embedded(uri, "application/pdf", file)


@server.tool(title="Read a document as Markdown", annotations=PURE)
def read_markdown(document: Name = "sourdough") -> CallToolResult:
    """Read a document as Markdown: an embedded resource with text."""
    found = find(document)
    return embedded(address(found, "text"), MEDIA_TYPES["text"], content(found, "text"))


@server.tool(title="Look at a cover", annotations=PURE)
def cover(document: Name = "lighthouse") -> CallToolResult:
    """The cover of a document, 600 x 800 pixels: a PNG inside an embedded resource, not an image block."""
    found = find(document)
    return embedded(address(found, "cover"), MEDIA_TYPES["cover"], content(found, "cover"))


@server.tool(title="Link to a document", annotations=PURE)
def link_to(
    document: Name = "knots",
    form: Annotated[Form, Field(description="What the link leads to: `pdf`, `text` or `cover`.")] = "pdf",
) -> CallToolResult:
    """A link that can be read with resources/read, instead of the document itself."""
    found = find(document)
    inside = content(found, form)
    link = ResourceLink(
        type="resource_link",
        uri=address(found, form),
        name=found.name + ENDINGS[form],
        title=found.title,
        description=f"{found.title}, {found.words} words",
        mime_type=MEDIA_TYPES[form],
        size=len(inside.encode() if isinstance(inside, str) else inside),
    )
    return CallToolResult(content=[link])


class SectionFacts(BaseModel):
    """A line of a table of contents."""

    heading: str
    words: int


class DocumentFacts(BaseModel):
    """What can be counted in a document."""

    name: str
    title: str
    words: int
    minutes: int = Field(description="How long it takes to read.")
    pages: int = Field(description="Pages of the PDF.")
    sections: tuple[SectionFacts, ...]


class Statistics(BaseModel):
    """The documents with their tables of contents, and their sums."""

    documents: tuple[DocumentFacts, ...]
    words: int
    minutes: int


@server.tool(title="Count words and sections", annotations=PURE)
def statistics(
    document: Annotated[str, Field(max_length=60, description="One document; left out: all of them.")] = "",
) -> Annotated[CallToolResult, Statistics]:
    """Tables of contents and word counts: structured content alone, no text at all."""
    chosen = (find(document),) if document else tuple(library.documents().values())
    facts = tuple(
        DocumentFacts(
            name=one.name,
            title=one.title,
            words=one.words,
            minutes=one.minutes,
            pages=len(pages(one)),
            sections=tuple(SectionFacts(heading=part.heading, words=part.words) for part in one.sections),
        )
        for one in chosen
    )
    sums = Statistics(documents=facts, words=sum(one.words for one in facts), minutes=sum(one.minutes for one in facts))
    return CallToolResult(content=[], structured_content=sums.model_dump(mode="json"))


@server.tool(title="List every word in its place", annotations=PURE)
def word_index(
    characters: Annotated[int, Field(ge=1_000, le=2_500_000, description="The most characters to return.")] = 2_000_000,
) -> CallToolResult:
    """A concordance: every occurrence of every word with the text around it. Two megabytes of text, unless limited."""
    return CallToolResult(content=[TextContent(type="text", text=library.concordance(characters))])


def resource(document: str, form: Form) -> str | bytes:
    """A document for resources/read. An unknown name is the protocol's own error for a resource that is not there."""
    try:
        return content(library.document(document), form)
    except UnknownDocument as error:
        raise ResourceNotFoundError(str(error)) from error


@server.resource("library://{document}/text", title="A document as Markdown", mime_type=MEDIA_TYPES["text"])
def text_resource(document: str) -> str | bytes:
    """The Markdown text of a document."""
    return resource(document, "text")


@server.resource("library://{document}/pdf", title="A document as PDF", mime_type=MEDIA_TYPES["pdf"])
def pdf_resource(document: str) -> str | bytes:
    """A document as a PDF file."""
    return resource(document, "pdf")


@server.resource("library://{document}/cover", title="The cover of a document", mime_type=MEDIA_TYPES["cover"])
def cover_resource(document: str) -> str | bytes:
    """The cover of a document as a PNG picture."""
    return resource(document, "cover")


@server.resource("library://{document}/pdf/{page}", title="A page as PDF", mime_type=MEDIA_TYPES["pdf"])
def page_resource(document: str, page: int) -> bytes:
    """One page of a document, counted from 1, as a PDF file."""
    try:
        return pdf(library.document(document), page)
    except (UnknownDocument, IndexError) as error:
        raise ResourceNotFoundError(str(error)) from error


def list_documents() -> None:
    """Offer each document in resources/list, as text and as PDF: templates alone are found by few clients."""
    forms: tuple[Form, ...] = ("text", "pdf")
    for document in library.documents().values():
        for form in forms:
            server.add_resource(
                FunctionResource(
                    uri=address(document, form),
                    name=f"{document.name} ({form})",
                    title=document.title,
                    description=f"{document.title}, {document.words} words",
                    mime_type=MEDIA_TYPES[form],
                    fn=partial(content, document, form),
                )
            )


list_documents()


def main() -> None:
    """Serve over Streamable HTTP at /mcp until interrupted."""
    serve("documents", "/mcp", PORT, lambda host: server.streamable_http_app(host=host))
