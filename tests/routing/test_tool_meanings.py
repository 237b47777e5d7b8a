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
from gateway.config.tool_search_settings import ToolSearchSettings
from gateway.config.upstream_settings import ToolsSettings
from gateway.core.model.embedded import Embedded
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
        self.model = "tiny"
        self.more_dimensions = 0
        self.changes = 0
        """How many dimensions each answer has more than the one before."""
        self.answers = math.inf
        """How many requests are answered; the rest wait."""

    async def embed(self, request: Request) -> Response:
        asked = json.loads(await request.body())
        self.asked.append(asked)
        self.keys.append(request.headers.get("authorization", ""))
        if self.reply is not None:
            return self.reply
        self.answers -= 1
        while self.answers < 0:  # noqa: ASYNC110 - until the client is gone
            await anyio.sleep(0.05)
        self.more_dimensions += self.changes
        more = [0.01] * self.more_dimensions
        rows = [{"index": at, "embedding": vector(text) + more} for at, text in enumerate(asked["input"])]
        return JSONResponse({"data": rows[::-1], "model": self.model})

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


async def embedded(settings: EmbeddingsSettings, *texts: str) -> tuple[list[Any], str]:
    some: list[Embedded] = []
    await EmbeddingsClient(settings).embed(texts, some.append)
    return list(some[0].vectors.values()), some[0].model


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


async def test_what_was_embedded_before_the_time_was_over_is_kept(server: Server) -> None:
    tools = catalogue({f"tool_{number}": f"Does {number}." for number in range(150)})
    one = search(server, timeout=2.0)
    server.answers = 2
    assert await one.best(tools, "zzz", 5) == ([], 0)
    assert [len(asked["input"]) for asked in server.asked] == [64, 64, 23]
    server.answers = math.inf
    one.reconfigure(ToolSearchSettings(mode="always", embeddings=server.settings(timeout=60.0)))
    names, _ = await one.best(tools, "picture", 5)
    assert names
    assert [len(asked["input"]) for asked in server.asked] == [64, 64, 23, 23]


@pytest.mark.parametrize("change", [{"model": "huge"}, {"more_dimensions": 1}])
async def test_another_model_behind_the_same_address_embeds_all_tools_again(
    server: Server, change: Mapping[str, Any], caplog: pytest.LogCaptureFixture
) -> None:
    one, tools = search(server), catalogue()
    await one.best(tools, "combine", 5)
    for name, value in change.items():
        setattr(server, name, value)
    names, _ = await one.best(tools, "photo", 5)
    assert names[0] == "dev__take_screenshot"
    assert [len(asked["input"]) for asked in server.asked] == [4, 1, 4]
    dimensions = 3 + server.more_dimensions
    assert f"vectors of {server.model} ({dimensions} numbers), before with those of tiny (3 numbers)" in caplog.text
    await one.best(tools, "folder", 5)
    assert len(server.asked[-1]["input"]) == 1


async def test_a_server_that_keeps_changing_its_model_is_left_alone(
    server: Server, caplog: pytest.LogCaptureFixture
) -> None:
    many = {f"tool_{number}": f"Does {number}." for number in range(150)}
    server.changes = 1
    assert (await search(server).best(catalogue(many | TOOLS), "folder", 5))[0] == ["dev__list_files"]
    assert "vectors of one model and then of another" in caplog.text


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
        await embedded(server.settings(), "a", "b", "c", "d")
    one = search(server)
    with caplog.at_level(logging.WARNING):
        assert (await one.best(catalogue(), "folder of files", 5))[0] == ["dev__list_files"]
    assert why.split(":")[0] in caplog.text
    asked = len(server.asked)
    await one.best(catalogue(), "folder", 5)
    assert len(server.asked) == asked  # it is left alone for a while


async def test_a_server_that_is_not_there_or_too_slow_is_said(server: Server) -> None:
    with pytest.raises(EmbeddingsUnavailable, match="cannot be asked"):
        await embedded(EmbeddingsSettings(url="http://127.0.0.1:9/v1", model="x"), "a")
    with pytest.raises(EmbeddingsUnavailable, match="did not answer within"):
        await embedded(server.settings(timeout=0.000_001), "a")


async def test_changed_settings_ask_the_other_server(server: Server) -> None:
    one = ToolSearch(ToolSearchSettings(mode="always"), EmbeddingsClient)
    assert (await one.best(catalogue(), "combine", 5))[0] == []
    one.reconfigure(ToolSearchSettings(mode="always", embeddings=server.settings()))
    assert (await one.best(catalogue(), "combine", 5))[0][0] == "dev__merge_branches"
    one.reconfigure(ToolSearchSettings(mode="always"))
    assert (await one.best(catalogue(), "combine", 5))[0] == []


async def test_vectors_have_length_1(server: Server) -> None:
    ((one,), model) = await embedded(server.settings(), "files and folders")
    assert model == "tiny"
    assert math.isclose(math.hypot(*one), 1, rel_tol=1e-6)


def test_two_rankings_become_one() -> None:
    assert fused(["a", "b"], ["c", "a"]) == ["a", "c", "b"]
    assert fused([], ["x"]) == ["x"]
    assert FIND["name"] == "gateway_find_tools"
