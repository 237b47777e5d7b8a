"""Starts the charts server over stdio, calls every tool, and looks at what comes back. Exit 0 if all is well."""

import sys
from base64 import b64decode
from xml.etree import ElementTree

from mcp import Client, StdioServerParameters
from mcp_types import CallToolResult, ImageContent

from ..checking import ROOT, check_tools, decoded, kinds, near, picture, refused, run, structured, words

TOOLS = {
    "draw_chart",
    "vector_chart",
    "chart_with_data",
    "compare",
    "check_data",
    "picture_twice",
    "landscape",
    "sticker",
    "poster",
    "screenshot",
}
BLUE = (47, 109, 181)


async def check() -> None:
    """All checks, on one connection."""
    command = StdioServerParameters(command=sys.executable, args=["-m", f"{__package__}"], cwd=ROOT)
    async with Client(command) as client:
        await check_tools(client, TOOLS)
        results = {name: await client.call_tool(name, {}) for name in sorted(TOOLS)}
        assert {name for name, result in results.items() if result.is_error} == {"check_data"}
        check_charts(results)
        check_structured(results)
        check_scenes(results)
        await check_arguments(client)
        again = await client.call_tool("landscape", {})
        assert again.content == results["landscape"].content, "the same call gave another picture"


def check_charts(results: dict[str, CallToolResult]) -> None:
    """The block kinds and pictures of the chart tools."""
    assert kinds(results["draw_chart"]) == ["text", "image/png"]
    assert "Lisbon: lowest 11.6 °C (Jan), highest 23.9 °C (Aug)" in words(results["draw_chart"])
    chart = picture(results["draw_chart"], 1)
    assert chart.size == (960, 600)
    assert near(chart.getpixel((46, 82)), BLUE), "the first mark of the legend is not blue"

    assert kinds(results["compare"]) == ["text", "image/png", "text", "image/png"]
    assert words(results["compare"], 0).startswith("1. Reykjavik")
    assert words(results["compare"], 2).startswith("2. Singapore")
    assert [picture(results["compare"], index).size for index in (1, 3)] == [(720, 450), (720, 450)]

    assert kinds(results["check_data"]) == ["text", "image/png"]
    assert words(results["check_data"]).startswith("6 of 48 values are bad")
    assert "04:30: 85 °C" in words(results["check_data"])
    assert picture(results["check_data"], 1).size == (960, 600)

    assert kinds(results["vector_chart"]) == ["image/svg+xml"]
    block = results["vector_chart"].content[0]
    assert isinstance(block, ImageContent)
    root = ElementTree.fromstring(b64decode(block.data, validate=True))  # noqa: S314 - it is our own
    bars = [element for element in root if element.tag.endswith("rect")]
    assert len(bars) == 1 + 2 * 12, "the SVG has not a bar for each month of two cities"


def check_structured(results: dict[str, CallToolResult]) -> None:
    """The tools with structured content beside the picture."""
    assert kinds(results["chart_with_data"]) == ["image/png"]
    numbers = structured(results["chart_with_data"])
    assert numbers["unit"] == "°C"
    assert len(numbers["labels"]) == 12
    assert numbers["series"][0]["name"] == "Ulaanbaatar"
    assert numbers["series"][0]["lowest"] == -21.6

    assert kinds(results["picture_twice"]) == ["image/png"]
    block, twin = results["picture_twice"].content[0], results["picture_twice"].structured_content
    assert isinstance(block, ImageContent)
    assert twin == {"content": [{"type": "image", "data": block.data, "mimeType": "image/png"}]}
    assert picture(results["picture_twice"]).width == 858


def check_scenes(results: dict[str, CallToolResult]) -> None:
    """The pictures that are not charts."""
    assert kinds(results["landscape"]) == ["image/jpeg"]
    view = picture(results["landscape"]).convert("RGB")
    assert view.size == (1_280, 800)
    assert len(set(view.resize((160, 100)).tobytes())) > 150, "the landscape has the tones of a drawing, not a photo"

    assert kinds(results["sticker"]) == ["image/webp"]
    badge = picture(results["sticker"])
    assert badge.size == (512, 512)
    assert badge.mode == "RGBA"
    assert near(badge.getpixel((0, 0)), (0, 0, 0, 0))
    assert near(badge.getpixel((256, 200)), (255, 214, 90, 255))

    assert kinds(results["poster"]) == ["image/png"]
    block = results["poster"].content[0]
    assert isinstance(block, ImageContent)
    file = b64decode(block.data, validate=True)
    assert decoded(file, "image/png").size == (4_000, 3_000)
    assert 100_000 < len(file) < 1_000_000, f"the poster has {len(file)} bytes"

    assert kinds(results["screenshot"]) == ["image/png"]
    block = results["screenshot"].content[0]
    assert isinstance(block, ImageContent)
    file = b64decode(block.data, validate=True)
    assert decoded(file, "image/png").size == (2_560, 1_600)
    assert 2_000_000 < len(file) < 5_000_000, f"the screenshot has {len(file)} bytes"


async def check_arguments(client: Client) -> None:
    """Own data is drawn, and what cannot be drawn is refused with a reason."""
    own = {"kind": "bar", "title": "Fruit", "labels": ["apples", "pears"], "values": [3, 1.5], "unit": "kg"}
    drawn = await client.call_tool("draw_chart", own)
    assert words(drawn).startswith("Fruit (bar chart")
    assert "highest 3 kg (apples)" in words(drawn)
    left, right = (picture(drawn, 1).getpixel((x, 500)) for x in (290, 705))
    assert near(left, BLUE), "the first bar is not where it should be"
    assert near(right, BLUE), "the second bar is not where it should be"
    for kind in ("pie", "line"):
        assert kinds(await client.call_tool("draw_chart", {**own, "kind": kind})) == ["text", "image/png"]
    good = {"labels": list("abcdef"), "values": [1, 2, 3, 3, 2, 1]}
    fine = await client.call_tool("check_data", good)
    assert not fine.is_error
    assert kinds(fine) == ["text", "image/png"]

    await refused(client, "draw_chart", {"labels": ["a", "b"], "values": [1]}, "2 labels but 1 values")
    await refused(client, "draw_chart", {"cities": ["Atlantis"]}, "choose from Cairo")
    await refused(client, "draw_chart", {"kind": "pie", "labels": ["a", "b"], "values": [1, -1]}, "no value may be neg")
    await refused(client, "draw_chart", {"kind": "radar"}, "'bar', 'line' or 'pie'")
    await refused(client, "draw_chart", {"labels": ["a"], "values": ["nan"]}, "finite numbers")
    await refused(client, "landscape", {"width": 20_000}, "less than or equal to 2400")
    await refused(client, "check_data", {"labels": ["a"], "values": [1]}, "give from 5")
    await refused(client, "no_such_tool", {}, "no_such_tool")


if __name__ == "__main__":
    run(check, "charts")
