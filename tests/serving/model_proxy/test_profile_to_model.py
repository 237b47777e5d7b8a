"""The whole path: a host's profile, the request that its client makes of the result, and a proxy over the same store.

Documents whose pages a host got as images: the model is given the pages, and the document only where they are lost.
Pictures that a client loses: its profile names them, so that the proxy can put them back.
"""

import base64
import io
import json
from collections.abc import AsyncIterator, Mapping
from typing import Any

import httpx2
import pytest
from PIL import Image

from gateway import lower_turn, resolve_messages
from gateway.config.builtin_profiles import load_builtin
from gateway.config.content_settings import MediaSettings
from gateway.content.media import MediaWorkers
from gateway.content.shaping import Shaper
from gateway.core.profiles.host_profiles import resolve_profiles
from gateway.testing.model_apis import conversation, refusals
from gateway.testing.model_apis.histories import history
from gateway.testing.model_apis.server import model_server

pytestmark = pytest.mark.anyio

CALLS = [{"id": "call00000", "name": "report"}]
PATHS = {
    "openai_chat": "/v1/chat/completions",
    "openai_responses": "/v1/responses",
    "anthropic_messages": "/v1/messages",
    "gemini": "/v1beta/models/gemini-3-pro:generateContent",
}
KEYS = {"openai_responses": "input", "gemini": "contents", "gemini_interactions": "input"}
BUILTIN = resolve_profiles(load_builtin())
DEFAULT = BUILTIN["default"]
DROP_PICTURES = ["openai-agents", "openai-agents-chat", "smolagents"]
"""Profiles of clients that were measured to lose pictures, at least on some model APIs: see `captured/`."""
PROFILES = {
    "all pages": {"show": "pages"},
    "some pages": {"show": "pages", "max_pages": 2},
    "a scan, whose text nobody can read": {"show": "text"},
}


def scan(*colours: str) -> bytes:
    """A PDF of pages without text, each of one colour."""
    first, *more = [Image.new("RGB", (60, 40), colour) for colour in colours]
    buffer = io.BytesIO()
    first.save(buffer, "PDF", save_all=True, append_images=more)
    return buffer.getvalue()


PDF = scan("red", "green", "blue")


@pytest.fixture(scope="module")
async def media() -> AsyncIterator[MediaWorkers]:
    async with MediaWorkers(MediaSettings()) as workers:
        yield workers


async def content(store: Any, media: Any, document: Mapping[str, Any], **rules: Any) -> list[dict[str, Any]]:
    """The result of a tool that returns the PDF, as the gateway gives it to a host of this profile."""
    update = {"document": DEFAULT.document.model_copy(update=dict(document))}
    profile = DEFAULT.model_copy(update={**update, **rules})
    blob = {"uri": "scan://report.pdf", "blob": base64.b64encode(PDF).decode(), "mimeType": "application/pdf"}
    result = {"content": [{"type": "resource", "resource": blob}]}
    shaped = await Shaper(store, media).shape(result, profile, owner="local")
    return shaped.result["content"]


async def request_of(api: str, *results: list[dict[str, Any]]) -> dict[str, Any]:
    """What a client sends its model of these results, one turn each."""
    key = KEYS.get(api, "messages")
    request: dict[str, Any] = {}
    for blocks in results:
        turn = await lower_turn([{**CALLS[0], "result": {"content": blocks}}], api)
        made = history(api, CALLS, turn.messages)
        request = {**made, key: [*request.get(key, []), *made[key]]}
    return request


def without_images(blocks: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [block for block in blocks if block["type"] == "text"]


def seen(api: str, request: Any) -> list[str]:
    """The media types of what the model sees."""
    named = {"model": "gemini-3-pro"} if api == "gemini" else {}
    assert refusals(api, {**request, **named}) == ()
    read = conversation(api, {**request, **named})
    assert read is not None
    return [str(item.media_type) for item in read.media if item.seen is not None]


async def through(running: Any, server: Any, api: str, request: dict[str, Any]) -> Any:
    async with httpx2.AsyncClient(timeout=30) as client:
        response = await client.post(running.url + PATHS[api], json=request)
    assert response.status_code == 200, response.text
    return server.requests[-1].json


PAGES = pytest.mark.parametrize("document", PROFILES.values(), ids=list(PROFILES))
MOVED = pytest.mark.parametrize("order", ["kept", "text-first"])


@pytest.mark.parametrize("api", PATHS)
@PAGES
@MOVED
async def test_pages_that_are_shown_stay_alone(before: Any, media: Any, api: str, document: Any, order: str):
    server = model_server()
    async with before(server) as running:
        blocks = await content(running.store, media, document, order=order)
        request = await request_of(api, blocks)
        pages = seen(api, request)
        assert len(pages) == document.get("max_pages", 3)
        arrived = await through(running, server, api, request)
        assert seen(api, arrived) == pages
        assert "application/pdf" not in pages


@pytest.mark.parametrize("api", PATHS)
@PAGES
@MOVED
async def test_a_document_whose_pages_the_client_drops_is_opened(
    before: Any, media: Any, api: str, document: Any, order: str
):
    server = model_server()
    async with before(server) as running:
        blocks = await content(running.store, media, document, order=order)
        request = await request_of(api, without_images(blocks))
        arrived = await through(running, server, api, request)
        assert seen(api, arrived) == ["application/pdf"]
        said = json.dumps(arrived)
        assert "as images; " not in said
        (kept,) = await running.store.list(owner="local")
        assert kept.handle in said
        again = await through(running, server, api, arrived)
        assert seen(api, again) == ["application/pdf"]


async def test_pages_of_an_older_result_that_a_client_leaves_out_stay_left_out(before: Any, media: Any):
    server = model_server()
    async with before(server) as running:
        blocks = await content(running.store, media, PROFILES["all pages"])
        picture = [{"type": "text", "text": "[image 1: 60x40]"}, blocks[-1]]
        request = await request_of("openai_chat", without_images(blocks), [*without_images(blocks), *picture])
        arrived = await through(running, server, "openai_chat", request)
        assert seen("openai_chat", arrived) == ["image/png"]


@pytest.mark.parametrize("api", [*PATHS, "bedrock_converse", "mistral", "ollama", "vllm", "gemini_interactions"])
@PAGES
@MOVED
async def test_a_history_with_pages_is_not_given_the_document(
    before: Any, media: Any, api: str, document: Any, order: str
):
    async with before(model_server()) as running:
        blocks = await content(running.store, media, document, order=order)
        request = await request_of(api, blocks, [{"type": "text", "text": "Nothing."}])
        messages = request[KEYS.get(api, "messages")]
        resolved = await resolve_messages(messages, api, running.store)
        assert resolved.messages == messages
        assert resolved.notes == ()


@pytest.mark.parametrize("api", [*PATHS, "bedrock_converse"])
@PAGES
async def test_a_history_that_lost_the_pages_is_given_the_document(before: Any, media: Any, api: str, document: Any):
    async with before(model_server()) as running:
        blocks = without_images(await content(running.store, media, document))
        request = await request_of(api, blocks, [{"type": "text", "text": "Nothing."}])
        messages = request[KEYS.get(api, "messages")]
        resolved = await resolve_messages(messages, api, running.store)
        assert resolved.messages != messages
        assert [note.kind for note in resolved.notes] == ["rescued"]
        again = await resolve_messages(resolved.messages, api, running.store)
        assert again.messages == resolved.messages


@pytest.mark.parametrize("profile", DROP_PICTURES)
async def test_a_picture_that_a_client_is_known_to_lose_is_put_back(
    before: Any, media: Any, picture: Any, profile: str
):
    """No tool takes content here, which would name handles in every profile (`handles = "useful"`)."""
    server = model_server()
    async with before(server) as running:
        image = {"type": "image", "data": picture("red"), "mimeType": "image/png"}
        result = {"content": [{"type": "text", "text": "A chart."}, image]}
        shaped = await Shaper(running.store, media).shape(result, BUILTIN[profile], owner="local")
        request = await request_of("openai_chat", without_images(shaped.result["content"]))
        assert seen("openai_chat", request) == []
        arrived = await through(running, server, "openai_chat", request)
        assert seen("openai_chat", arrived) == ["image/png"]
