"""Starts the documents server over Streamable HTTP, calls every tool, reads its resources. Exit 0 if all is well."""

import re
import zlib
from base64 import b64decode

from mcp import Client, MCPError
from mcp.client.streamable_http import streamable_http_client
from mcp_types import BlobResourceContents, CallToolResult, EmbeddedResource, ResourceLink, TextResourceContents

from ..checking import check_tools, decoded, kinds, refused, run, started, structured, words

TOOLS = {"search", "read_pdf", "read_markdown", "cover", "link_to", "statistics", "word_index"}


async def check() -> None:
    """All checks, on one connection."""
    async with started(f"{__package__}") as url:
        # The client's own limit for one message is 1 MiB; the word index is twice that.
        transport = streamable_http_client(url, max_sse_event_size=8 * 1024 * 1024)
        async with Client(transport) as client:
            await check_tools(client, TOOLS)
            results = {name: await client.call_tool(name, {}) for name in sorted(TOOLS)}
            assert not any(result.is_error for result in results.values())
            check_texts(results)
            check_embedded(results)
            await check_links(client, results["link_to"])
            await check_arguments(client)


def check_texts(results: dict[str, CallToolResult]) -> None:
    """The tools that return words and numbers."""
    assert kinds(results["search"]) == ["text"]
    assert "clouds / How a cloud is made" in words(results["search"])

    assert kinds(results["statistics"]) == [], "statistics is structured content alone"
    facts = structured(results["statistics"])
    assert [one["name"] for one in facts["documents"]] == ["clouds", "knots", "lighthouse", "sourdough"]
    assert facts["words"] == sum(part["words"] for one in facts["documents"] for part in one["sections"])

    assert kinds(results["word_index"]) == ["text"]
    index = words(results["word_index"])
    assert 1_990_000 < len(index) <= 2_000_000, f"the word index has {len(index):,} characters"
    assert "\nanvil (clouds, word " in index


def check_embedded(results: dict[str, CallToolResult]) -> None:
    """The embedded resources: a PDF that can be read, Markdown, a picture."""
    uri, media_type, file = blob(results["read_pdf"])
    assert (uri, media_type) == ("library://clouds/pdf", "application/pdf")
    check_pdf(file, pages=2, beginning=b"(A Field Guide to Clouds)")

    assert kinds(results["read_markdown"]) == ["resource"]
    block = results["read_markdown"].content[0]
    assert isinstance(block, EmbeddedResource)
    assert isinstance(block.resource, TextResourceContents)
    assert block.resource.mime_type == "text/markdown"
    assert block.resource.text.startswith("# Keeping a Sourdough Starter\n")

    uri, media_type, file = blob(results["cover"])
    assert (uri, media_type) == ("library://lighthouse/cover", "image/png")
    picture = decoded(file, "image/png")
    assert picture.size == (600, 800)
    assert picture.getpixel((300, 460)) == (200, 68, 60), "the lighthouse is not red where it should be"


def check_pdf(file: bytes, pages: int, beginning: bytes) -> None:
    """The table leads to each object, there are so many pages, and the first text is this one."""
    assert file.startswith(b"%PDF-1.4\n")
    assert file.endswith(b"%%EOF\n")
    table = int(file.rsplit(b"startxref\n", 1)[1].split()[0])
    assert file[table:].startswith(b"xref\n0 ")
    places = [int(line.split()[0]) for line in file[table:].splitlines() if line.endswith(b" n ")]
    for number, place in enumerate(places, start=1):
        assert file[place:].startswith(b"%d 0 obj\n" % number), f"object {number} is not where the table says"
    assert file.count(b"/Type /Page ") == pages
    streams = [zlib.decompress(part.split(b"\nendstream")[0]) for part in file.split(b"stream\n")[1::2]]
    assert len(streams) == pages
    assert re.findall(rb"\(.*?\)", streams[0])[0] == beginning


async def check_links(client: Client, result: CallToolResult) -> None:
    """The link leads to what it says; resources are listed, offered as templates, and refused where there are none."""
    assert kinds(result) == ["resource_link"]
    link = result.content[0]
    assert isinstance(link, ResourceLink)
    assert (link.uri, link.name, link.mime_type) == ("library://knots/pdf", "knots.pdf", "application/pdf")
    (read,) = (await client.read_resource(link.uri)).contents
    assert isinstance(read, BlobResourceContents)
    assert read.mime_type == "application/pdf"
    assert len(b64decode(read.blob)) == link.size

    listed = (await client.list_resources()).resources
    assert len(listed) == 8
    for one in listed:
        (read,) = (await client.read_resource(one.uri)).contents
        assert read.mime_type == one.mime_type
    templates = {one.uri_template for one in (await client.list_resource_templates()).resource_templates}
    assert templates == {
        *(f"library://{{document}}/{form}" for form in ("text", "pdf", "cover")),
        "library://{document}/pdf/{page}",
    }
    (read,) = (await client.read_resource("library://knots/pdf/2")).contents
    assert isinstance(read, BlobResourceContents)
    assert b64decode(read.blob).startswith(b"%PDF-1.4")
    for missing in ("library://atlantis/text", "library://knots/pdf/9"):
        try:
            await client.read_resource(missing)
        except MCPError:
            continue
        raise AssertionError(f"{missing} was read, but is not there")


async def check_arguments(client: Client) -> None:
    """Arguments are used, and wrong ones refused with a reason."""
    uri, _, _ = blob(await client.call_tool("read_pdf", {"document": "Knots", "page": 2}))
    assert uri == "library://knots/pdf/2"
    short = words(await client.call_tool("word_index", {"characters": 5_000}))
    assert len(short) <= 5_000
    assert "more entries left out" in short
    assert "Nothing found" in words(await client.call_tool("search", {"query": "zeppelin"}))
    for form, name in (("text", "clouds.md"), ("cover", "clouds.png")):
        (link,) = (await client.call_tool("link_to", {"document": "clouds", "form": form})).content
        assert isinstance(link, ResourceLink)
        assert link.name == name
    await refused(client, "read_markdown", {"document": "atlantis"}, "choose from clouds, knots")
    await refused(client, "read_pdf", {"page": 7}, "clouds has 2 pages")
    await refused(client, "search", {"query": ""}, "at least 1 character")
    await refused(client, "link_to", {"form": "epub"}, "'text', 'pdf' or 'cover'")


def blob(result: CallToolResult) -> tuple[str, str | None, bytes]:
    """The address, media type and bytes of a result that is one embedded blob."""
    assert kinds(result) == ["resource"], kinds(result)
    block = result.content[0]
    assert isinstance(block, EmbeddedResource)
    assert isinstance(block.resource, BlobResourceContents)
    return block.resource.uri, block.resource.mime_type, b64decode(block.resource.blob, validate=True)


if __name__ == "__main__":
    run(check, "documents")
