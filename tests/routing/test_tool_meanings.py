"""Tools are found by what they mean, with a server of embeddings; without its answer, by their words."""

import json
import logging
import math
import socket
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Any

import anyio
import pytest
import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, RedirectResponse, Response
from starlette.routing import Route

from gateway.config.embeddings_settings import EmbeddingsSettings
from gateway.config.schema import ToolsSettings
from gateway.config.tool_search_settings import ToolSearchSettings
from gateway.core.profiles.profile import Profile
from gateway.core.tools.catalogue import OWN, Catalogue, build
from gateway.embeddings.client import EmbeddingsClient
from gateway.errors import EmbeddingsUnavailable
from gateway.routing.tool_meanings import fused
from gateway.routing.tool_search import FIND, SEARCH_TOOLS, ToolSearch

pytestmark = pytest.mark.anyio

TOOLS = {
    "merge_branches": "Joins a branch into another one.",
    "take_screenshot": "Takes a picture of the page.",
    "list_files": "Lists the files of a folder.",
}
MEANINGS = (("merge", "join", "combine", "lines"), ("picture", "screenshot", "photo"), ("files", "folder", "documents"))
"""Words of one meaning, each a dimension."""


class Server:
    """A server of embeddings whose vectors are counts of words of one meaning."""

    def __init__(self) -> None:
        self.asked: list[Mapping[str, Any]] = []
        self.keys: list[str] = []
        self.reply: Response | None = None
        self.url = ""

    async def embed(self, request: Request) -> Response:
        asked = json.loads(await request.body())
        self.asked.append(asked)
        self.keys.append(request.headers.get("authorization", ""))
        if self.reply is not None:
            return self.reply
        rows = [{"index": at, "embedding": vector(text)} for at, text in enumerate(asked["input"])]
        return JSONResponse({"data": rows[::-1], "model": asked["model"]})

    def settings(self, **more: Any) -> EmbeddingsSettings:
        return EmbeddingsSettings(**{"url": self.url, "model": "tiny", "timeout": 60.0} | more)


def vector(text: str) -> list[float]:
    return [sum(text.lower().count(word) for word in words) + 0.01 for words in MEANINGS]


@asynccontextmanager
async def serving(app: Starlette) -> AsyncGenerator[str]:
    server = uvicorn.Server(uvicorn.Config(app, log_config=None, access_log=False, lifespan="off"))
    with socket.create_server(("127.0.0.1", 0)) as listener:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(server.serve, [listener])
            yield f"http://127.0.0.1:{listener.getsockname()[1]}"
            server.should_exit = True


@pytest.fixture
async def server() -> AsyncGenerator[Server]:
    one = Server()
    async with serving(Starlette(routes=[Route("/v1/embeddings", one.embed, methods=["POST"])])) as address:
        one.url = f"{address}/v1/"
        yield one


def catalogue(tools: Mapping[str, str] = TOOLS) -> Catalogue:
    listed = [{"name": name, "description": text, "inputSchema": {"type": "object"}} for name, text in tools.items()]
    lists = {OWN: list(SEARCH_TOOLS), "dev": listed}
    return build(lists, {name: ToolsSettings() for name in lists}, "always", Profile(name="any"), "gateway")


def search(server: Server, **more: Any) -> ToolSearch:
    return ToolSearch(ToolSearchSettings(mode="always", embeddings=server.settings(**more)), EmbeddingsClient)


async def test_a_tool_is_found_by_what_it_means(server: Server) -> None:
    with_meaning, without = search(server, api_key="abc"), ToolSearch(ToolSearchSettings(mode="always"))
    tools = catalogue()
    assert await without.best(tools, "combine two lines", 5) == ([], 0)
    names, _ = await with_meaning.best(tools, "combine two lines", 5)
    assert names[0] == "dev__merge_branches"
    found = await with_meaning.find({"query": "a photo, please", "limit": 1}, tools)
    assert found["content"][0]["text"].splitlines()[1].startswith("dev__take_screenshot(")
    assert set(server.keys) == {"Bearer abc"}
    assert {asked["model"] for asked in server.asked} == {"tiny"}


async def test_each_text_is_sent_once_also_by_searches_at_the_same_time(server: Server) -> None:
    one, tools = search(server), catalogue({f"tool_{number}": f"Does {number}." for number in range(150)})
    async with anyio.create_task_group() as tasks:
        for query in ("first", "second", "third"):
            tasks.start_soon(one.best, tools, query, 5)
    sent = [text for asked in server.asked for text in asked["input"]]
    assert len(sent) == 150 + 3
    assert max(len(asked["input"]) for asked in server.asked) == 64
    await one.best(catalogue({"tool_1": "Does 1.", "new": "Is new."}), "fourth", 5)
    assert len(server.asked[-1]["input"]) == 2  # the new one and the query


BAD: Sequence[tuple[Response, str]] = (
    (Response("no such model", 404), "answers with HTTP 404: no such model"),
    (RedirectResponse("http://example.com/"), "answers with HTTP 307"),
    (Response("{", 200), "does not answer with a vector for each text"),
    (JSONResponse({"data": []}), "does not answer with a vector for each text"),
    (JSONResponse({"data": [{"index": 0, "embedding": [0, 0]}] * 4}), "does not answer with a vector for each text"),
    (JSONResponse({"data": [{"index": 7, "embedding": [1]}] * 4}), "does not answer with a vector for each text"),
    (JSONResponse({"data": [{"embedding": [1]}, {"embedding": ["x"]}] * 2}), "does not answer with a vector"),
    (Response('{"data": [' + ", ".join(['{"embedding": [1e999]}'] * 4) + "]}"), "does not answer with a vector"),
    (Response('{"data": [' + ", ".join(['{"embedding": [1.7e308, 1.7e308]}'] * 4) + "]}"), "does not answer"),
    (JSONResponse({"data": [{"embedding": [1]}] * 3 + [{"embedding": [1, 2]}]}), "vectors of different lengths"),
    (Response(b" " * (33 * 1024 * 1024)), "sends more than 34 MB at once"),
    (Response(b"[" * 1_000_000), "does not answer with a vector for each text"),
)


@pytest.mark.parametrize(("reply", "why"), BAD, ids=[f"{at}-{why[:20]}" for at, (_, why) in enumerate(BAD)])
async def test_what_is_no_answer_leaves_the_search_by_words(
    server: Server, reply: Response, why: str, caplog: pytest.LogCaptureFixture
) -> None:
    server.reply = reply
    with pytest.raises(EmbeddingsUnavailable, match="embeddings server .*" + why):
        await EmbeddingsClient(server.settings()).embed(["a", "b", "c", "d"])
    one = search(server)
    with caplog.at_level(logging.WARNING):
        assert (await one.best(catalogue(), "folder of files", 5))[0] == ["dev__list_files"]
    assert why.split(":")[0] in caplog.text
    asked = len(server.asked)
    await one.best(catalogue(), "folder", 5)
    assert len(server.asked) == asked  # it is left alone for a while


async def test_a_server_that_is_not_there_or_too_slow_is_said(server: Server) -> None:
    with pytest.raises(EmbeddingsUnavailable, match="cannot be asked"):
        await EmbeddingsClient(EmbeddingsSettings(url="http://127.0.0.1:9/v1", model="x")).embed(["a"])
    with pytest.raises(EmbeddingsUnavailable, match="did not answer within"):
        await EmbeddingsClient(server.settings(timeout=0.000_001)).embed(["a"])


async def test_changed_settings_ask_the_other_server(server: Server) -> None:
    one = ToolSearch(ToolSearchSettings(mode="always"), EmbeddingsClient)
    assert (await one.best(catalogue(), "combine", 5))[0] == []
    one.reconfigure(ToolSearchSettings(mode="always", embeddings=server.settings()))
    assert (await one.best(catalogue(), "combine", 5))[0][0] == "dev__merge_branches"
    one.reconfigure(ToolSearchSettings(mode="always"))
    assert (await one.best(catalogue(), "combine", 5))[0] == []


async def test_vectors_have_length_1(server: Server) -> None:
    (one,) = await EmbeddingsClient(server.settings()).embed(["files and folders"])
    assert math.isclose(math.hypot(*one), 1, rel_tol=1e-6)


def test_two_rankings_become_one() -> None:
    assert fused(["a", "b"], ["c", "a"]) == ["a", "c", "b"]
    assert fused([], ["x"]) == ["x"]
    assert FIND["name"] == "gateway_find_tools"
