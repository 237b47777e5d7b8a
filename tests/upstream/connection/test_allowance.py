"""Lists without end: what is beyond the bound is left out and said, the rest is offered."""

import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import anyio
import pytest

from gateway.config.upstream_settings import UpstreamLimits, UpstreamSettings
from gateway.upstream import Upstream, Upstreams
from gateway.upstream.connection.allowance import MOST_ITEMS, MOST_PAGES, Allowance

pytestmark = pytest.mark.anyio

LISTS = """
import json, sys

PAGES = json.loads(sys.argv[1])

def answer(method, params):
    if method == "initialize":
        return {"protocolVersion": params["protocolVersion"], "serverInfo": {"name": "lists", "version": "1"},
                "capabilities": {"tools": {}, "prompts": {}, "resources": {}}}
    key = {"resources/templates/list": "resourceTemplates"}.get(method, method.partition("/")[0])
    pages, items, pad = PAGES.get(key, (1, 1, 0))
    page = int(params.get("cursor") or 0)
    listed = [{"name": f"{key}{page}_{n}", "uri": f"x://{page}/{n}", "uriTemplate": f"x://{page}/{n}/{{a}}",
               "description": "d" * pad, "inputSchema": {"type": "object"}} for n in range(items)]
    return {key: listed, **({"nextCursor": str(page + 1)} if page + 1 < pages else {})}

for line in sys.stdin:
    message = json.loads(line)
    if "id" in message:
        result = answer(message["method"], message.get("params") or {})
        print(json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": result}), flush=True)
"""


@asynccontextmanager
async def listing(pages: str, list_bytes: int) -> AsyncIterator[Upstream]:
    limits = UpstreamLimits(list_bytes=list_bytes)
    settings = UpstreamSettings(command=sys.executable, args=("-c", LISTS, pages), limits=limits)
    async with Upstreams({"x": settings}, on_change=lambda *_: None) as upstreams:
        assert await upstreams["x"].ready(30)
        yield upstreams["x"]


async def test_what_is_beyond_the_bound_is_left_out_and_said(caplog: pytest.LogCaptureFixture) -> None:
    async with listing('{"tools": [10, 1, 100000], "resources": [1000000, 1, 100000]}', 3_000_000) as upstream:
        assert len(upstream.tools()) == 10
        assert 15 < len(upstream.resources()) < 20
        assert len(upstream.prompts()) == len(upstream.templates()) == 1  # small ones have room yet
        (words,) = upstream.left_out
        assert words == (
            f"only the first {len(upstream.resources())} of its resources are offered: "
            "there are more bytes than limits.list_bytes allows for all its lists together"
        )
        assert caplog.text.count(words) == 1


async def test_pages_and_items_are_bounded_too() -> None:
    pages = f'{{"tools": [1000000, 1, 0], "prompts": [1, {MOST_ITEMS + 1}, 0]}}'
    async with listing(pages, 0) as upstream:
        assert len(upstream.tools()) == MOST_PAGES
        assert len(upstream.prompts()) == MOST_ITEMS
        assert [words.rpartition(": ")[2] for words in upstream.left_out] == [
            f"there are more than {MOST_PAGES} pages",
            f"there are more than {MOST_ITEMS:,} items",
        ]


async def test_lists_that_fit_are_whole_and_nothing_is_said() -> None:
    async with listing('{"tools": [3, 20, 100]}', 32 * 1024 * 1024) as upstream:
        assert len(upstream.tools()) == 60
        assert upstream.left_out == ()


async def test_what_a_page_says_of_itself_counts() -> None:
    allowance = Allowance(10_000)
    assert await allowance.take([{"name": "a"}], {"_meta": {"x": "y" * 5_000}})
    assert not allowance.is_over
    assert not await allowance.take([{"name": "b"}], {"_meta": {"x": "y" * 5_000}})
    assert allowance.is_over
    assert allowance.items == [{"name": "a"}]


async def test_others_have_their_turn_while_a_long_list_is_counted() -> None:
    turns = 0

    async def count() -> None:
        nonlocal turns
        while True:
            turns += 1
            await anyio.lowlevel.checkpoint()

    items: list[dict[str, Any]] = [{"name": "x" * 100_000}] * 1_000
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(count)
        assert await Allowance().take(items, {})
        tasks.cancel_scope.cancel()
    assert turns > 10
