"""Turns and requests with content at a provider: by its id where the API takes one, fetched and inlined elsewhere."""

import asyncio
import base64
import io
import json
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from functools import partial
from typing import Any

import anyio
import httpx2
import pytest
from PIL import Image

import gateway
from gateway.config.content_settings import MediaSettings
from gateway.config.model_proxy_settings import HistorySettings, ModelProxySettings
from gateway.config.store_settings import StoreSettings
from gateway.content.media import MediaWorkers
from gateway.content.shaping.repair_request import Repairer
from gateway.content.store import MemoryStore
from gateway.errors import UnsupportedContent
from gateway.serving.http import Listening, serve
from gateway.serving.model_proxy import proxy_app
from gateway.testing.model_apis import refusals
from gateway.testing.model_apis.server import model_server

pytestmark = pytest.mark.anyio

PDF = b"%PDF-1.4\n" + b"0" * 3_000


def png(edge: int = 64) -> bytes:
    out = io.BytesIO()
    Image.effect_noise((edge, edge), 90).convert("RGB").save(out, "PNG")
    return out.getvalue()


def result(*blocks: Any) -> dict[str, Any]:
    return {"content": [{"type": "text", "text": "Here."}, *blocks]}


def image(content: bytes) -> dict[str, Any]:
    return {"type": "image", "data": base64.b64encode(content).decode(), "mimeType": "image/png"}


def pdf() -> dict[str, Any]:
    blob = base64.b64encode(PDF).decode()
    return {"type": "resource", "resource": {"uri": "file:///report.pdf", "mimeType": "application/pdf", "blob": blob}}


def link(uri: str, media_type: str) -> dict[str, Any]:
    return {"type": "resource_link", "uri": uri, "name": "theirs", "mimeType": media_type}


def call(*blocks: Any) -> list[dict[str, Any]]:
    return [{"id": "call_1", "name": "draw", "result": result(*blocks)}]


def kinds(notes: Any) -> list[str]:
    return [note.kind for note in notes]


@pytest.mark.parametrize(
    ("target", "block", "shape"),
    [
        ("openai_responses", image(png()), {"type": "input_image", "file_id": "file-0001"}),
        ("openai_responses", pdf(), {"type": "input_file", "file_id": "file-0001"}),
        ("anthropic_messages", image(png()), {"type": "file", "file_id": "file_0001"}),
        ("anthropic_messages", pdf(), {"type": "file", "file_id": "file_0001"}),
        ("openai_chat", pdf(), {"file_id": "file-0001"}),
        ("gemini_interactions", image(png()), {"uri": "https://generativelanguage.googleapis.com/v1beta/files/g0001"}),
        ("fal", image(png()), {"url": "{url}/fal/files/f0001"}),
    ],
)
async def test_large_content_is_uploaded_once_and_sent_by_its_id(providers, target, block, shape):
    async with providers() as running, running.files(upload_above=1_000) as files:
        turns = [await gateway.lower_turn(call(block), target, files=files) for _ in range(2)]
        wanted = json.loads(json.dumps(shape).replace("{url}", running.url))
        assert _holds(turns[0].messages, wanted), turns[0].messages
        assert turns[0].messages == turns[1].messages
        assert running.uploads() == 1
        assert "converted" in kinds(turns[0].notes)
        assert "base64" not in json.dumps(turns[0].messages)


def _holds(value: Any, wanted: dict[str, Any]) -> bool:
    if isinstance(value, dict):
        if all(value.get(key) == item for key, item in wanted.items()):
            return True
        return any(_holds(item, wanted) for item in value.values())
    return isinstance(value, list) and any(_holds(item, wanted) for item in value)


async def test_an_uploaded_turn_is_what_the_api_accepts(providers):
    async with providers() as running, running.files(upload_above=0) as files:
        for target, field in (("openai_responses", "input"), ("anthropic_messages", "messages")):
            turn = await gateway.lower_turn(call(image(png()), pdf()), target, files=files)
            first: list[Any] = {
                "openai_responses": [
                    {"role": "user", "content": "draw"},
                    {"type": "function_call", "call_id": "call_1", "name": "draw", "arguments": "{}"},
                ],
                "anthropic_messages": [
                    {"role": "user", "content": "draw"},
                    {
                        "role": "assistant",
                        "content": [{"type": "tool_use", "id": "call_1", "name": "draw", "input": {}}],
                    },
                ],
            }[target]
            request = {"model": "m", "max_tokens": 10, field: [*first, *turn.messages]}
            if target == "openai_responses":
                del request["max_tokens"]
            assert refusals(target, request) == ()


async def test_small_content_and_apis_without_files_get_the_bytes(providers):
    async with providers() as running, running.files(upload_above=1_000_000) as files:
        small = await gateway.lower_turn(call(image(png())), "openai_responses", files=files)
        assert running.uploads() == 0
        assert "data:image/png;base64," in json.dumps(small.messages)
    async with providers() as running, running.files(upload_above=0) as files:
        turn = await gateway.lower_turn(call(image(png())), "groq", files=files)
        assert "data:image/png;base64," in json.dumps(turn.messages)
        assert running.uploads() == 0


async def test_an_upload_that_fails_costs_a_note_and_the_bytes_go_inside(providers):
    async with providers(key="wrong") as running, running.files(upload_above=0) as files:
        turn = await gateway.lower_turn(call(image(png())), "openai_responses", files=files)
        assert "data:image/png;base64," in json.dumps(turn.messages)
        [told] = [note.text for note in turn.notes if note.kind == "failed"]
        assert told.startswith("image 1 stays inside the request: OpenAI Files answered 401")


async def test_content_whose_only_copy_is_at_another_provider_is_fetched_and_inlined(providers):
    picture = png()
    async with providers() as running, running.files() as files:
        uri = await files.upload("openai-file", picture, media_type="image/png")
        next(iter(running.server.files.values())).made_by_model = True
        turn = await gateway.lower_turn(call(link(uri, "image/png")), "anthropic_messages", files=files)
        source = {"type": "base64", "media_type": "image/png", "data": base64.b64encode(picture).decode()}
        assert _holds(turn.messages, source), turn.messages
        assert any("fetched from its provider" in note.text for note in turn.notes)


async def test_content_of_another_provider_is_uploaded_where_it_is_large(providers):
    async with providers() as running, running.files(upload_above=100) as files:
        uri = await files.upload("openai-file", PDF, media_type="application/pdf")
        next(iter(running.server.files.values())).made_by_model = True
        turn = await gateway.lower_turn(call(link(uri, "application/pdf")), "anthropic_messages", files=files)
        assert _holds(turn.messages, {"type": "file", "file_id": "file_0002"}), turn.messages


async def test_a_provider_that_gives_nothing_back_costs_a_note_and_the_line_stays(providers):
    async with providers() as running, running.files() as files:
        uri = await files.upload("openai-file", png(), media_type="image/png")
        turn = await gateway.lower_turn(call(link(uri, "image/png")), "anthropic_messages", files=files)
        assert uri in json.dumps(turn.messages)
        assert any("Not allowed to download" in note.text for note in turn.notes if note.kind == "failed")
        with pytest.raises(UnsupportedContent, match="Not allowed to download"):
            await gateway.lower_turn(
                call(link(uri, "image/png")), "anthropic_messages", files=files, on_unsupported="error"
            )


async def test_without_files_a_foreign_one_is_a_note_too():
    turn = await gateway.lower_turn(call(link("openai-file:file-1", "image/png")), "anthropic_messages")
    assert "openai-file:file-1" in json.dumps(turn.messages)
    assert any("cannot read" in note.text for note in turn.notes)


async def test_a_file_of_the_same_provider_goes_by_its_id_untouched(providers):
    async with providers() as running, running.files() as files:
        turn = await gateway.lower_turn(
            call(link("anthropic-file:file_9", "image/png")), "anthropic_messages", files=files
        )
        assert _holds(turn.messages, {"type": "file", "file_id": "file_9"})
        assert running.server.requests == []


async def test_the_proxy_uploads_what_is_large_once_for_all_requests(providers, monkeypatch):
    behind = model_server()
    content = [{"type": "image", "data": base64.b64encode(png()).decode(), "mimeType": "image/png"}]
    request = {
        "model": "gpt-5.5",
        "input": [
            {"role": "user", "content": "draw"},
            {"type": "function_call", "call_id": "call_1", "name": "draw", "arguments": "{}"},
            {"type": "function_call_output", "call_id": "call_1", "output": json.dumps({"content": content})},
        ],
    }
    async with providers() as running, _served(behind) as address, MediaWorkers(MediaSettings()) as media:
        for name, value in running.environ.items():
            monkeypatch.setenv(name, value)
        settings = ModelProxySettings(to=f"{address}/v1", upload_above=1_000)
        app = proxy_app(settings, Repairer(MemoryStore(StoreSettings()), media, HistorySettings()))
        async with app.router.lifespan_context(app), httpx2.AsyncClient(transport=httpx2.ASGITransport(app)) as client:
            for _ in range(2):
                answer = await client.post("http://127.0.0.1/v1/responses", json=request)
                assert answer.status_code == 200, answer.text
        assert running.uploads() == 1
    sent = [recorded.json for recorded in behind.requests]
    assert sent[0] == sent[1]
    assert _holds(sent[0], {"type": "input_image", "file_id": "file-0001"}), sent[0]


@asynccontextmanager
async def _served(app: Any) -> AsyncGenerator[str]:
    bound = asyncio.Queue[int]()
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(partial(serve, app, Listening("127.0.0.1", 0, "test"), on_bound=bound.put_nowait))
        yield f"http://127.0.0.1:{await bound.get()}"
        tasks.cancel_scope.cancel()
