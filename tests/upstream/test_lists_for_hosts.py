"""Which host waits for lists of its own: not the one that the upstream is being opened for."""

import os
from pathlib import Path
from typing import Any

import anyio
import anyio.to_thread
import pytest

from gateway.core.model.caller import Caller
from gateway.upstream import Catalogues, Upstreams, UpstreamState
from gateway.upstream.catalogues import RememberedLists

pytestmark = pytest.mark.anyio

UI = {"extensions": {"io.modelcontextprotocol/ui": {}}}
SHOWS = Caller(revision="2025-11-25", client_name="shows", session="shows-1", capabilities=UI)


async def test_known_lists_are_there_at_once_for_the_host_that_the_upstream_is_opened_for(
    stdio: Any, changes: Any, tmp_path: Path
) -> None:
    """As on stdio: what has changed since is announced to it anyway."""
    go = tmp_path / "go"
    os.mkfifo(go)
    settings = stdio("apps", "apps-if-declared", "slow-if-able", env={"GO": str(go)})
    catalogues = Catalogues(tmp_path / "catalogues")
    known = {"name": "known", "inputSchema": {"type": "object"}}
    catalogues.keep(
        settings, RememberedLists(tools=(known,), era="handshake", revision="2025-11-25", eras=("handshake",))
    )
    came: list[Caller] = []
    upstreams = Upstreams(
        {"raw": settings}, on_change=changes, catalogues=catalogues, expected=lambda: came[0] if came else None
    )
    with anyio.fail_after(60):
        came.append(SHOWS)
        async with upstreams:
            raw = upstreams["raw"]
            await raw.prepare(SHOWS, 50)
            assert raw.state is UpstreamState.STARTING
            assert raw.lists_for(SHOWS).tools == (known,)
            await anyio.to_thread.run_sync(go.write_bytes, b"")
            await changes.until(lambda: ("raw", "tools") in changes.all)
            assert "board" in {tool["name"] for tool in raw.lists_for(SHOWS).tools}
