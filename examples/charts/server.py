"""The charts server: every way in which an MCP server returns a picture, each from a tool that is of use.

A tool that returns a `CallToolResult` decides on every block itself; nothing is added or converted. `Annotated[
CallToolResult, Model]` publishes the model as the tool's output schema and checks the structured content with it.
Pillow is imported inside the tools: a host that only lists them does not wait for it.
"""

from base64 import b64encode
from collections.abc import Sequence
from typing import Annotated, Literal

from mcp.server.mcpserver import MCPServer
from mcp.server.mcpserver.exceptions import ToolError
from mcp_types import CallToolResult, ContentBlock, ImageContent, TextContent, ToolAnnotations
from pydantic import BaseModel, Field

from . import data
from .data import BadData, Chart, Series, amount

server = MCPServer(
    "charts",
    title="Charts and pictures",
    version="1.0.0",
    instructions=(
        "Draws charts from numbers you give, or from a bundled table of monthly mean temperatures of eight cities. "
        "Every tool works without arguments."
    ),
    log_level="WARNING",
)

PURE = ToolAnnotations(read_only_hint=True, idempotent_hint=True, open_world_hint=False)
"""Annotations of every tool here: it changes nothing, is repeatable, and reaches nothing outside."""

Title = Annotated[str, Field(max_length=120, description="The heading of the chart; a fitting one if left out.")]
Label = Annotated[str, Field(max_length=80)]
Labels = Annotated[tuple[Label, ...], Field(max_length=240, description="One label for each value, in order.")]
Values = Annotated[
    tuple[float, ...], Field(max_length=240, description="The numbers to draw. Left out: bundled temperatures.")
]
Unit = Annotated[str, Field(max_length=20, description="The unit of the values, for the axis: `°C`, `kg`, `€`.")]
Cities = Annotated[
    tuple[str, ...],
    Field(
        max_length=8,
        min_length=1,
        description=(
            "Cities of the bundled table, if no values are given: Cairo, Lisbon, Montreal, Nairobi, Reykjavik, "
            "Santiago, Singapore, Ulaanbaatar."
        ),
    ),
]
City = Annotated[str, Field(description="A city of the bundled table, such as Lisbon or Reykjavik.")]


def text(written: str) -> TextContent:
    """A text block."""
    return TextContent(type="text", text=written)


def image(file: bytes, media_type: str = "image/png") -> ImageContent:
    """An image block."""
    return ImageContent(type="image", data=b64encode(file).decode("ascii"), mime_type=media_type)


def result(*blocks: ContentBlock) -> CallToolResult:
    """A result of exactly these blocks."""
    return CallToolResult(content=list(blocks))


def chart_of(
    kind: data.Kind, title: str, labels: Sequence[str], values: Sequence[float], unit: str, cities: Sequence[str]
) -> Chart:
    """The chart that was asked for. What cannot be drawn is a ToolError whose text tells the model what to change."""
    try:
        if values or labels:
            given = Series("values", tuple(values))
            return Chart(kind, title or "Values", unit, tuple(labels), (given,))
        if kind == "pie":
            return data.temperature_bands(title)
        return data.of_cities(cities, kind, title)
    except BadData as error:
        raise ToolError(str(error)) from error


@server.tool(title="Draw a chart", annotations=PURE)
def draw_chart(
    kind: Annotated[data.Kind, Field(description="`line`, `bar` or `pie`.")] = "line",
    title: Title = "",
    labels: Labels = (),
    values: Values = (),
    unit: Unit = "",
    cities: Cities = ("Montreal", "Lisbon", "Santiago"),
) -> CallToolResult:
    """Draw a line, bar or pie chart as a PNG, with a summary in words.

    Give `labels` and `values`, or `cities` of the bundled table of monthly mean temperatures.
    """
    from . import plot

    chart = chart_of(kind, title, labels, values, unit, cities)
    return result(text(chart.summary()), image(plot.draw(chart)))


@server.tool(title="Draw a chart as SVG", annotations=PURE)
def vector_chart(
    kind: Annotated[Literal["bar", "line"], Field(description="`bar` or `line`.")] = "bar",
    title: Title = "",
    labels: Labels = (),
    values: Values = (),
    unit: Unit = "",
    cities: Cities = ("Reykjavik", "Nairobi"),
) -> CallToolResult:
    """Draw a bar or line chart as SVG: small, sharp at any size, its text searchable. Many hosts cannot show SVG."""
    from . import vector

    return result(image(vector.svg(chart_of(kind, title, labels, values, unit, cities)), "image/svg+xml"))


class SeriesData(BaseModel):
    """One line or group of bars of a chart, with what is usually asked about it."""

    name: str
    values: tuple[float, ...]
    lowest: float
    highest: float
    mean: float


class ChartData(BaseModel):
    """The numbers behind a chart."""

    title: str
    unit: str
    labels: tuple[str, ...]
    series: tuple[SeriesData, ...]


@server.tool(title="Draw a chart and return its data", annotations=PURE)
def chart_with_data(
    kind: Annotated[data.Kind, Field(description="`bar`, `line` or `pie`.")] = "bar",
    title: Title = "",
    labels: Labels = (),
    values: Values = (),
    unit: Unit = "",
    cities: Cities = ("Ulaanbaatar",),
) -> Annotated[CallToolResult, ChartData]:
    """Draw a chart for people (a PNG block) and return its numbers for programs (structured content)."""
    from . import plot

    chart = chart_of(kind, title, labels, values, unit, cities)
    series = tuple(
        SeriesData(
            name=one.name,
            values=one.values,
            lowest=min(one.values),
            highest=max(one.values),
            mean=round(sum(one.values) / len(one.values), 6),
        )
        for one in chart.series
    )
    numbers = ChartData(title=chart.title, unit=chart.unit, labels=chart.labels, series=series)
    return CallToolResult(content=[image(plot.draw(chart))], structured_content=numbers.model_dump(mode="json"))


@server.tool(title="Compare two cities", annotations=PURE)
def compare(first: City = "Reykjavik", second: City = "Singapore") -> CallToolResult:
    """Compare the year of two cities: a paragraph and a chart for each, in turn (text, image, text, image)."""
    from . import plot

    blocks: list[ContentBlock] = []
    for position, city in enumerate((first, second), start=1):
        chart = chart_of("line" if position == 1 else "bar", "", (), (), "", (city,))
        blocks.append(text(f"{position}. {chart.series[0].summary(chart.labels, chart.unit)}"))
        blocks.append(image(plot.draw(chart, 720, 450)))
    return result(*blocks)


@server.tool(title="Check a series for bad data", annotations=PURE)
def check_data(
    labels: Labels = (),
    values: Annotated[
        tuple[float | str | None, ...],
        Field(
            max_length=240,
            description="Readings in order; null or text where there is no number. Left out: a faulty weather day.",
        ),
    ] = (),
    title: Title = "",
    unit: Unit = "",
) -> CallToolResult:
    """Look for missing values, values that are not numbers, and values far from their neighbours.

    Bad data is an error result with the list of faults and a chart that marks them; good data a chart without marks.
    """
    from . import plot

    if not values and not labels:
        labels, values = data.station()
        title, unit = title or "Weather station: air temperature, one day", unit or "°C"
    try:
        readings = data.check(labels, values)
    except BadData as error:
        raise ToolError(str(error)) from error
    faults = [reading for reading in readings if reading.fault]
    chart = image(plot.draw_check(readings, title or "Checked data", unit))
    if not faults:
        return result(text(f"All {len(readings)} values are good."), chart)
    lines = [f"{len(faults)} of {len(readings)} values are bad; the chart marks them:"]
    for reading in faults:
        shown = "no number" if reading.value is None else amount(reading.value, unit)
        lines.append(f"- {reading.label}: {shown} ({reading.fault})")
    return CallToolResult(content=[text("\n".join(lines)), chart], is_error=True)


class Picture(BaseModel):
    """An image block, as structured content."""

    type: Literal["image"]
    data: str
    mimeType: str  # the name that a content block has on the wire


class PictureContent(BaseModel):
    """The content of the result once more."""

    content: tuple[Picture, ...]


@server.tool(title="A heat map of the year, returned twice", annotations=PURE)
def picture_twice(
    cities: Cities = ("Cairo", "Lisbon", "Montreal", "Nairobi", "Reykjavik", "Santiago", "Singapore", "Ulaanbaatar"),
) -> Annotated[CallToolResult, PictureContent]:
    """Draw the temperatures of cities and months as a heat map.

    The picture stands in the content and, dumped as it is, in the structured content: as server-filesystem and others
    return pictures. Shown as it comes, it costs a model twice, the second time as base64 text.
    """
    from . import plot

    chart = chart_of("line", "", (), (), "", cities)
    block = image(plot.draw_heat_map([series.name for series in chart.series]))
    twin = block.model_dump(mode="json", by_alias=True, exclude_none=True)
    return CallToolResult(content=[block], structured_content={"content": [twin]})


@server.tool(title="Paint a landscape", annotations=PURE)
def landscape(
    hour: Annotated[
        Literal["dawn", "noon", "dusk", "night"], Field(description="The light: `dawn`, `noon`, `dusk` or `night`.")
    ] = "dusk",
    seed: Annotated[int, Field(ge=0, le=1_000_000, description="Another number, other mountains.")] = 7,
    width: Annotated[int, Field(ge=320, le=2_400, description="Width in pixels; the height is 5/8 of it.")] = 1_280,
    quality: Annotated[int, Field(ge=30, le=95, description="JPEG quality.")] = 88,
) -> CallToolResult:
    """Paint mountains above a lake with the light of an hour, as a JPEG with the grain of a photograph."""
    from . import scenes

    return result(image(scenes.landscape(width, width * 5 // 8, hour, seed, quality), "image/jpeg"))


@server.tool(title="Make a weather sticker", annotations=PURE)
def sticker(
    weather: Annotated[
        Literal["sun", "cloud", "rain", "snow", "storm"], Field(description="What the sticker shows.")
    ] = "sun",
    caption: Annotated[
        str, Field(max_length=28, description="A few words on its ribbon; empty for none.")
    ] = "Fine day",
) -> CallToolResult:
    """Make a round weather sticker, 512 x 512 pixels, as a lossless WebP with a transparent background."""
    from . import scenes

    return result(image(scenes.sticker(weather, caption.strip()), "image/webp"))


@server.tool(title="Draw a wall map", annotations=PURE)
def poster(
    title: Annotated[str, Field(min_length=1, max_length=60, description="The name of the island.")] = "Isle of Tarn",
    seed: Annotated[int, Field(ge=0, le=1_000_000, description="Another number, another island.")] = 4,
) -> CallToolResult:
    """Draw a wall map of an invented island as a PNG of 4,000 x 3,000 pixels: more than most models can be sent."""
    from . import poster as wall_map

    return result(image(wall_map.poster(title, seed)))


@server.tool(title="Take a screenshot", annotations=PURE)
def screenshot(
    seed: Annotated[int, Field(ge=0, le=1_000_000, description="Another number, other text and another photo.")] = 7,
) -> CallToolResult:
    """Take a screenshot of an invented desktop as a PNG of 2,560 x 1,600 pixels: text of 10 points beside a photo."""
    from . import desktop

    return result(image(desktop.screenshot(seed)))


def main() -> None:
    """Serve over stdin and stdout until stdin is closed."""
    server.run("stdio")
