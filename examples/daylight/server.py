"""The daylight server: one tool with a page, and one that only the page calls.

The SDK's `Apps` writes what the extension requires (https://github.com/modelcontextprotocol/ext-apps): the tool names
its page in `_meta.ui.resourceUri`, and the page is a resource of the type `text/html;profile=mcp-app`. The model reads
the content, and the page reads the structured content: each is complete by itself.
"""

from pathlib import Path
from typing import Annotated

from mcp.server.apps import Apps
from mcp.server.mcpserver import MCPServer
from mcp_types import CallToolResult, TextContent, ToolAnnotations
from pydantic import BaseModel, Field

from . import sun

PAGE = "ui://daylight/page.html"
PURE = ToolAnnotations(read_only_hint=True, idempotent_hint=True, open_world_hint=False)

Latitude = Annotated[float, Field(ge=-90, le=90, description="Degrees, north is positive.")]
Month = Annotated[int, Field(ge=1, le=12, description="The number of the month.")]

apps = Apps()
apps.add_html_resource(
    PAGE,
    (Path(__file__).parent / "page.html").read_text("utf-8"),
    title="Hours of daylight",
    prefers_border=True,
)


class Year(BaseModel):
    """The hours of daylight in the middle of each month."""

    latitude: float
    months: tuple[str, ...]
    hours: tuple[float, ...]


class Days(BaseModel):
    """The hours of daylight of each day of a month."""

    month: str
    hours: tuple[float, ...]


@apps.tool(resource_uri=PAGE, title="Hours of daylight", annotations=PURE)
def daylight(latitude: Latitude = 52.5) -> Annotated[CallToolResult, Year]:
    """Show the hours of daylight at a latitude through the year."""
    year = Year(latitude=latitude, months=sun.MONTHS, hours=tuple(sun.year(latitude)))
    by_month = ", ".join(f"{month} {hours:.1f}" for month, hours in zip(year.months, year.hours, strict=True))
    text = f"Hours of daylight at {latitude:g}° in the middle of each month: {by_month}."
    return CallToolResult(
        content=[TextContent(type="text", text=text)], structured_content=year.model_dump(mode="json")
    )


@apps.tool(resource_uri=PAGE, visibility=["app"], title="Days of a month", annotations=PURE)
def days_of_month(latitude: Latitude = 52.5, month: Month = 6) -> Days:
    """Return the hours of daylight of each day of a month. Only the page calls this tool."""
    return Days(month=sun.MONTHS[month - 1], hours=tuple(sun.month(latitude, month)))


server = MCPServer(
    "daylight",
    title="Hours of daylight",
    version="1.0.0",
    instructions="Shows the hours of daylight at a latitude, as text and on a page.",
    log_level="WARNING",
    extensions=[apps],
)


def main() -> None:
    """Serve over stdin and stdout until stdin is closed."""
    server.run("stdio")
