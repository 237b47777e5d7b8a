"""Passes a picture of one server by its handle to the tool of another, through a gateway, as two kinds of hosts.

Everything is real: the charts server, this server, the gateway between them and an MCP client, each a process.
"""

import re
import sys
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

import anyio
from mcp import Client, StdioServerParameters
from mcp_types import CallToolResult, TextContent, Tool

import gateway
from gateway.testing import assert_seen

from ..checking import ROOT, near, picture, run
from .server import MARK

GATEWAY = str(Path(gateway.__file__).parent.parent)
"""Run the gateway that is imported here, installed or not."""

CONFIG = """
[upstreams.charts]
command = "{python}"
args = ["-m", "{package}.charts"]
cwd = "{root}"

[upstreams.photos]
command = "{python}"
args = ["-m", "{package}.analyze_photo"]
cwd = "{root}"
env = {{ PYTHONPATH = "{gateway}" }}
"""


@asynccontextmanager
async def gateway_as(host: str) -> AsyncGenerator[Client]:
    """A gateway before both servers, which shapes its results for a host, and a client of it."""
    package = f"{__package__}".rpartition(".")[0]
    with TemporaryDirectory() as folder:
        config = Path(folder) / "mcp-gateway.toml"
        values = {"python": sys.executable, "root": str(ROOT), "gateway": GATEWAY}
        escaped = {key: value.replace("\\", "\\\\") for key, value in values.items()}
        config.write_text(CONFIG.format(package=package, **escaped), encoding="utf-8")
        arguments = ["-m", "gateway", "serve", "--config", str(config), "--profile", host, "--log-level", "error"]
        environment = {"PYTHONPATH": GATEWAY}
        command = StdioServerParameters(command=sys.executable, args=arguments, cwd=ROOT, env=environment)
        async with Client(command) as client:
            yield client


async def analyzed(client: Client) -> tuple[str, CallToolResult]:
    """What a model would do: draw a chart, read the handle that the result names, and give it to the other tool."""
    described = (await tool(client, "photos__analyze_photo")).input_schema["properties"]["photo"]["description"]
    assert described.startswith("the photo to analyze for objects [Takes an image: its handle"), described
    chart = await client.call_tool("charts__draw_chart", {})
    named = re.search(r'handle (?:for tools is )?"?(img_\w{12})', texts(chart))
    assert named, f"no handle is named in {texts(chart)!r}"
    return named[1], await client.call_tool("photos__analyze_photo", {"photo": named[1]})


async def tool(client: Client, name: str) -> Tool:
    """Return a tool of the gateway. While its server is still starting, a host's first list lacks it."""
    with anyio.fail_after(60):
        while True:
            for each in (await client.list_tools()).tools:
                if each.name == name:
                    return each
            await anyio.sleep(0.1)


def texts(result: CallToolResult) -> str:
    """All texts of a result."""
    return "\n".join(block.text for block in result.content if isinstance(block, TextContent))


async def check() -> None:
    """All checks."""
    async with gateway_as("claude-code") as client:
        handle, result = await analyzed(client)
        assert f"Found one object in {handle}" in texts(result), texts(result)
        assert_seen(result, host="claude-code", images=1)
        images = [index for index, block in enumerate(result.content) if block.type == "image"]
        overlay = picture(result, images[0])
        assert overlay.size == (960, 600), overlay.size
        left, top, right, bottom = map(int, re.findall(r"\d+", texts(result).partition(" at ")[2])[:4])
        for corner in ((left, top), (right, top), (left, bottom), (right, bottom)):
            assert near(overlay.getpixel(corner), MARK), f"no frame at {corner}"
        await check_refusals(client, handle)
    async with gateway_as("cline") as client:
        handle, result = await analyzed(client)
        assert_seen(result, host="cline", images=0)
        named = re.search(r"\[image 1: image/png, 960x600, .*handle (img_\w{12})\]", texts(result))
        assert named, texts(result)
        assert named[1] != handle, "the overlay is named by the handle of the photo"


async def check_refusals(client: Client, handle: str) -> None:
    """An unknown handle is reported, and the tool is not called; the tool itself says what it cannot use."""
    wrong = await client.call_tool("photos__analyze_photo", {"photo": f"{handle[:-6]}000000"})
    assert wrong.is_error
    assert "analyze_photo was not called: photo: there is no content with the handle" in texts(wrong), texts(wrong)
    for arguments in ({"photo": "/etc/passwd"}, {}):
        wrong = await client.call_tool("photos__analyze_photo", arguments)
        assert wrong.is_error
        assert "photo: an image is required. Give the handle of one" in texts(wrong), texts(wrong)


if __name__ == "__main__":
    run(check, "analyze_photo")
