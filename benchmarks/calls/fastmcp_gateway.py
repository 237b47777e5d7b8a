"""FastMCP's `create_proxy`, in an environment of its own, where nothing of this project can be imported.

    python fastmcp_gateway.py (target | connected) (stdio | PORT) ERA (URL | COMMAND ARGS...)

`target`: it is given where the upstream is, and connects again for each request, as its documentation shows first;
`connected`: it is given a client that is connected already.
"""

# FastMCP is not in the environment that the types are checked in.
# pyright: reportMissingImports=false, reportUnknownVariableType=false, reportUnknownMemberType=false
# pyright: reportUnknownArgumentType=false, reportUnknownParameterType=false

import asyncio
import sys
from typing import Any

from fastmcp import Client
from fastmcp.client.transports import StdioTransport
from fastmcp.server import create_proxy


async def serve(proxy: Any, front: str) -> None:
    """Until killed, or until the input ends."""
    if front == "stdio":
        await proxy.run_stdio_async(show_banner=False, log_level="WARNING")
    else:
        await proxy.run_http_async(show_banner=False, port=int(front), log_level="WARNING")


async def main(given: str, front: str, era: str, *target: str) -> None:
    """Build the proxy and serve it."""
    mode = era if era.startswith("2026") else "legacy"
    upstream: Any = target[0] if target[0].startswith("http") else StdioTransport(target[0], list(target[1:]))
    if given == "target":
        await serve(create_proxy(upstream, mode=mode), front)
        return
    async with Client(upstream, mode=mode) as client:
        await serve(create_proxy(client), front)


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
