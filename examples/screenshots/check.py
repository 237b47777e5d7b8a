"""Takes twenty screenshots from a script, has them compared, and shows two: through a gateway, as two kinds of hosts.

Everything is real: the server, the gateway before it, the sandbox, and an MCP client, each a process.
"""

import sys
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

import anyio
from mcp import Client, StdioServerParameters
from mcp_types import CallToolResult, TextContent

import gateway
from gateway.testing import assert_seen

from ..checking import ROOT, decoded, picture, run
from .server import CHANGED, SIZE, drawn

GATEWAY = str(Path(gateway.__file__).parent.parent)
"""Run the gateway that is imported here, installed or not."""

SCRIPT = Path(__file__).with_name("compare_pages.py")

CONFIG = """
[code_mode]
enabled = true

[upstreams.browser]
command = "{python}"
args = ["-m", "{package}"]
cwd = "{root}"
env = {{ PYTHONPATH = "{gateway}" }}
"""


@asynccontextmanager
async def gateway_as(host: str) -> AsyncGenerator[Client]:
    """A gateway with code mode before the server, which shapes its results for a host, and a client of it."""
    with TemporaryDirectory() as folder:
        config = Path(folder) / "mcp-gateway.toml"
        values = {"python": sys.executable, "root": str(ROOT), "gateway": GATEWAY}
        escaped = {key: value.replace("\\", "\\\\") for key, value in values.items()}
        config.write_text(CONFIG.format(package=__package__, **escaped), encoding="utf-8")
        arguments = ["-m", "gateway", "serve", "--config", str(config), "--profile", host, "--log-level", "error"]
        command = StdioServerParameters(command=sys.executable, args=arguments, cwd=ROOT, env={"PYTHONPATH": GATEWAY})
        async with Client(command) as client:
            yield client


async def scripted(client: Client) -> CallToolResult:
    """The result of the script, once its functions are there: the server may still be starting."""
    with anyio.fail_after(60):
        while True:
            tools = {tool.name: tool for tool in (await client.list_tools()).tools}
            if "browser__compare(first: Media, second: Media)" in (tools["gateway_run"].description or ""):
                return await client.call_tool("gateway_run", {"code": SCRIPT.read_text("utf-8")})
            await anyio.sleep(0.1)


def texts(result: CallToolResult) -> str:
    """All texts of a result."""
    return "\n".join(block.text for block in result.content if isinstance(block, TextContent))


async def check() -> None:
    """All checks."""
    async with gateway_as("claude-code") as client:
        result = await scripted(client)
        assert f"page {CHANGED}: " in texts(result), texts(result)
        assert texts(result).count("has changed") == 1, texts(result)
        assert_seen(result, host="claude-code", images=2)
        images = [index for index, block in enumerate(result.content) if block.type == "image"]
        for index, site in zip(images, ("old", "new"), strict=True):
            shown, right = picture(result, index), decoded(drawn(site, CHANGED), "image/png")
            assert shown.size == SIZE, shown.size
            assert shown.convert("RGB").tobytes() == right.tobytes(), f"this is not the {site} page"
    async with gateway_as("cline") as client:  # its model sees no pictures of tools: it gets their handles
        result = await scripted(client)
        assert f"page {CHANGED}: " in texts(result), texts(result)
        assert_seen(result, host="cline", images=0)


if __name__ == "__main__":
    run(check, "screenshots")
