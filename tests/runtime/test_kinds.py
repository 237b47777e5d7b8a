"""Links read, files written, descriptions made and pages shown by a running gateway with a real upstream."""

import re
import sys
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import pytest

from gateway.config.schema import Settings
from gateway.core.model.caller import Caller
from gateway.runtime import Gateway, run_gateway

pytestmark = pytest.mark.anyio

ROOT = Path(__file__).parents[2]
SERVER = ROOT / "tests" / "servers" / "kinds_stdio.py"
HOST = Caller(revision="2025-11-25", client_name="some-host", capabilities={"roots": {}})


class AHost:
    """A host whose workspace is one folder."""

    party = "one"
    connection = None
    bounds_waiting = False

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    async def ask(self, method: str, params: Any) -> dict[str, Any]:
        assert method == "roots/list"
        return {"roots": [{"uri": self.folder.as_uri()}]}

    async def tell(self, method: str, params: Any) -> None:
        pass

    async def let_go(self) -> None:
        pass


@asynccontextmanager
async def opened(sets: dict[str, Any], **sections: Any) -> AsyncGenerator[Gateway]:
    values = {
        "gateway": {"profile": "mine"},
        "profiles": {"mine": {"extends": "default", "sets": sets}},
        "upstreams": {"kinds": {"command": sys.executable, "args": [str(SERVER)], "env": {"PYTHONPATH": str(ROOT)}}},
        **sections,
    }
    with anyio.fail_after(120):
        async with run_gateway(Settings.model_validate(values)) as gateway:
            assert await gateway.upstreams.settled(60)
            yield gateway


async def call(gateway: Gateway, tool: str, host: Any = None, **arguments: Any) -> list[dict[str, Any]]:
    asked = {"name": tool, "arguments": arguments}
    return (await gateway.router.respond("tools/call", asked, HOST, host=host))["content"]


async def test_a_link_is_read_from_its_upstream_and_shown() -> None:
    async with opened({"link.show": "inline"}) as gateway:
        words, image = await call(gateway, "kinds__link")
    assert "[image 1: resource <made://shot.png>]" in words["text"]
    assert image["mimeType"] == "image/png"


async def test_a_document_is_text_and_its_pages_are_looked_at_by_handle() -> None:
    async with opened({"document.show": "text"}) as gateway:
        (words,) = await call(gateway, "kinds__document")
        assert "[page 1 of 1]\nwords of the first page" in words["text"]
        (handle,) = re.findall(r'handle "(\w+)"', words["text"])
        shown = await call(gateway, "gateway_view", handle=handle, page=1)
    assert [block["type"] for block in shown] == ["text", "image"]


async def test_a_document_is_a_file_in_the_hosts_workspace_until_the_end(tmp_path: Path) -> None:
    async with opened({"document.show": "file"}, files={"roots": True}) as gateway:
        (words,) = await call(gateway, "kinds__document", AHost(tmp_path))
        (path,) = re.findall(r"saved as ([^;]+);", words["text"])
        assert Path(path).read_bytes().startswith(b"%PDF-")
        assert Path(path).is_relative_to(tmp_path.resolve() / ".mcp-gateway")
    assert list(tmp_path.iterdir()) == []


async def test_a_tool_describes_what_the_host_shows_not() -> None:
    arguments = {"image": "{data}", "kind": "{type}"}
    describe = {"tool": "kinds__describe", "arguments": arguments}
    async with opened({"image.show": "line"}, describe=describe) as gateway:
        (words,) = await call(gateway, "kinds__picture")
    assert re.match(r"\[image 1, described by kinds__describe \(.*\): image/png of \d+ letters\]", words["text"])


async def test_a_description_that_nobody_can_make_is_the_plain_line() -> None:
    async with opened({"image.show": "line"}, describe={"tool": "gone__describe"}) as gateway:
        (words,) = await call(gateway, "kinds__picture")
    assert words["text"].startswith("[image 1: image/png, 1x1, ")
