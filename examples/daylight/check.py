"""Start the daylight server over stdio, read its page, and call its tools. Exit with 0 if everything is correct."""

import re
import sys

from mcp import Client, StdioServerParameters
from mcp.server.apps import APP_MIME_TYPE
from mcp_types import TextResourceContents

from ..checking import ROOT, check_tools, kinds, refused, run, structured, words
from .server import PAGE

UI = {"daylight": {"resourceUri": PAGE}, "days_of_month": {"resourceUri": PAGE, "visibility": ["app"]}}


async def check() -> None:
    """Run all checks on one connection."""
    command = StdioServerParameters(command=sys.executable, args=["-m", f"{__package__}"], cwd=ROOT)
    async with Client(command) as client:
        await check_tools(client, set(UI))
        tools = (await client.list_tools()).tools
        assert {tool.name: (tool.meta or {}).get("ui") for tool in tools} == UI
        await check_year(client)
        await check_month(client)
        await check_page(client)


async def check_year(client: Client) -> None:
    """Check that the model's text and the page's data agree."""
    result = await client.call_tool("daylight", {})
    assert kinds(result) == ["text"]
    year = structured(result)
    assert (year["latitude"], len(year["months"]), len(year["hours"])) == (52.5, 12, 12)
    assert words(result).startswith("Hours of daylight at 52.5° in the middle of each month: January 7.")
    assert all(
        f"{month} {hours:.1f}" in words(result) for month, hours in zip(year["months"], year["hours"], strict=True)
    )
    pole = structured(await client.call_tool("daylight", {"latitude": 90}))
    assert (min(pole["hours"]), max(pole["hours"])) == (0, 24)
    await refused(client, "daylight", {"latitude": 91}, "less than or equal to 90")


async def check_month(client: Client) -> None:
    """Check the tool that only the page calls."""
    days = structured(await client.call_tool("days_of_month", {"latitude": 0, "month": 2}))
    assert days == {"month": "February", "hours": [12] * 28}
    june = structured(await client.call_tool("days_of_month", {}))["hours"]
    assert max(june) == june[20], "the longest day is not 21 June"


async def check_page(client: Client) -> None:
    """Check that the page has the right type, loads nothing from other servers, and calls an existing tool."""
    [page] = (await client.read_resource(PAGE)).contents
    assert isinstance(page, TextResourceContents)
    assert page.mime_type == APP_MIME_TYPE
    assert not re.search(r"(src|href)=|https?://|@import", page.text), "it loads something"
    assert set(re.findall(r'name: "([a-z_]+)", arguments', page.text)) == {"days_of_month"}


if __name__ == "__main__":
    run(check, "daylight")
