"""The store of a running gateway: it outlives the gateway, and a gateway outlives its store."""

import re
import sys
from contextlib import asynccontextmanager
from pathlib import Path

import anyio
import pytest

from gateway.config.schema import Settings
from gateway.config.store_settings import StoreSettings
from gateway.config.upstream_settings import UpstreamSettings
from gateway.core.model.caller import Caller
from gateway.errors import StoreUnavailable
from gateway.runtime import run_gateway

pytestmark = pytest.mark.anyio

SERVERS = Path(__file__).parents[1] / "servers"
TEXT_ONLY = Caller(revision="2025-11-25", client_name="cline", profile="cline")
SEEING = Caller(revision="2025-11-25", client_name="claude-code")


@asynccontextmanager
async def opened(url, **store):
    pictures = UpstreamSettings(command=sys.executable, args=(str(SERVERS / "pictures_stdio.py"),))
    settings = Settings(upstreams={"one": pictures}, store=StoreSettings(url=url, **store))
    with anyio.fail_after(60):
        async with run_gateway(settings) as gateway:
            assert await gateway.upstreams.settled(30)
            yield gateway


async def call(gateway, name, caller, **arguments):
    return await gateway.router.respond("tools/call", {"name": name, "arguments": arguments}, caller)


def text_of(result):
    return "".join(block.get("text", "") for block in result["content"])


async def test_a_handle_from_before_a_restart_opens_what_it_named(tmp_path):
    url = (tmp_path / "store").as_uri()
    async with opened(url) as gateway:
        line = text_of(await call(gateway, "one__picture", TEXT_ONLY))
        handle = re.search(r"img_[0-9a-z]{12}", line)[0]
        assert gateway.store.usage[1] == 1
    async with opened(url) as gateway:
        shown = await call(gateway, "gateway_view", SEEING, handle=handle)
        assert "image" in [block["type"] for block in shown["content"]]
        listed = await gateway.router.respond("resources/list", {}, SEEING)
        assert f"content://{handle}" in [resource["uri"] for resource in listed["resources"]]


async def test_a_gateway_whose_store_is_down_starts_and_answers_without_it(tmp_path):
    (tmp_path / "store").write_bytes(b"a file, and no folder")
    async with opened((tmp_path / "store").as_uri()) as gateway:
        result = await call(gateway, "one__picture", TEXT_ONLY)
        assert not result.get("isError")
        assert "[image 1: image/png" in text_of(result)
        assert "img_" not in text_of(result)
        viewed = await call(gateway, "gateway_view", SEEING, handle="img_7h3k2m9q4w8x")
        assert viewed["isError"]
        assert "the store file://" in text_of(viewed)
        assert (await gateway.router.respond("tools/list", {}, SEEING))["tools"]
        listed = await gateway.router.respond("resources/list", {}, SEEING)
        assert not [one for one in listed["resources"] if one["uri"].startswith("content://")]
        with pytest.raises(StoreUnavailable):
            await gateway.router.respond("resources/read", {"uri": "content://img_7h3k2m9q4w8x"}, SEEING)


async def test_bounds_are_taken_over_and_the_place_is_not(tmp_path):
    url = (tmp_path / "store").as_uri()
    async with opened(url) as gateway:
        await call(gateway, "one__picture", TEXT_ONLY)
        new = StoreSettings(url=(tmp_path / "elsewhere").as_uri(), max_bytes=1)
        difference = gateway.apply(gateway.settings.model_copy(update={"store": new}))
        assert difference.applied == ("store.max_bytes",)
        assert difference.restart_needed == ("store.url",)
        assert (gateway.settings.store.url, gateway.settings.store.max_bytes) == (url, 1)
        assert "img_" not in text_of(await call(gateway, "one__picture", TEXT_ONLY))
