"""Handles that the gateway wrote for a host that shows no images: through the proxy its model sees them."""

import base64
import json

import pytest

from gateway.config.builtin_profiles import builtin_profiles, model_profiles
from gateway.config.model_proxy_settings import HistorySettings
from gateway.config.store_settings import StoreSettings
from gateway.content.shaping import Shaper
from gateway.content.shaping.repair_request import Repairer
from gateway.content.store import MemoryStore
from gateway.core.model_apis.requests.find_lines import handles_in
from gateway.core.model_apis.requests.result_formats import envelope_of
from gateway.errors import MediaError

pytestmark = pytest.mark.anyio


class NoWorkers:
    """For media that fits as it is."""

    async def run(self, effect):
        raise MediaError("there are no workers here")


@pytest.fixture
def store():
    return MemoryStore(StoreSettings())


@pytest.fixture
def repairer(store):
    return Repairer(store, NoWorkers(), HistorySettings())


def chat(*contents):
    tools = [{"role": "tool", "tool_call_id": f"c{n}", "content": content} for n, content in enumerate(contents)]
    return {"model": "gpt-5", "messages": tools}


async def repaired(repairer, request, profile="openai_chat", **options):
    body = json.dumps(request).encode()
    answer = await repairer.repair(body, "openai_chat", lambda _: model_profiles()[profile], **options)
    return answer, json.loads(answer.body)["messages"]


def images(messages):
    parts = [part for message in messages if isinstance(message["content"], list) for part in message["content"]]
    return [part["image_url"]["url"].partition(",")[2] for part in parts if part["type"] == "image_url"]


async def as_host(store, result, host):
    """What the gateway gives a host for a result."""
    shaped = await Shaper(store, NoWorkers(), max_blocks=100).shape(result, builtin_profiles()[host], owner="local")
    return shaped.result


@pytest.mark.parametrize("printed", [json.dumps, lambda result: result["content"][0]["text"]])
async def test_what_the_gateway_named_for_a_host_is_seen(store, repairer, picture, printed):
    red = picture("red")
    result = {"content": [{"type": "text", "text": "a chart"}, {"type": "image", "data": red, "mimeType": "image/png"}]}
    said = printed(await as_host(store, result, "cline"))
    assert "handle" in said
    answer, messages = await repaired(repairer, chat(said))
    assert images(messages) == [red]
    assert "a chart" in messages[0]["content"]
    again, _ = await repaired(repairer, json.loads(answer.body))
    assert not again.changes


@pytest.mark.parametrize(
    "words",
    [
        "saved as content://{}, look at it",
        "[link a chart <content://{}> (image/png, 2 KB)]",
        '[image 3: image/png, 40x30, 100 bytes; open it with gateway_view, handle "{}"]',
        "[image 3: image/png, 40x30, 100 bytes; handle {}]",
    ],
)
async def test_lines_and_uris_become_the_image(store, repairer, picture, words):
    red = picture("red")
    kept = await store.put(base64.b64decode(red), owner="local", media_type="image/png")
    answer, messages = await repaired(repairer, chat("before\n" + words.format(kept.handle)))
    assert images(messages) == [red]
    assert messages[0]["content"].startswith("before")
    again, _ = await repaired(repairer, json.loads(answer.body))
    assert not again.changes


async def test_content_of_somebody_else_stays_a_line(store, repairer, picture):
    kept = await store.put(base64.b64decode(picture("red")), owner="other", media_type="image/png")
    answer, _ = await repaired(repairer, chat(f"[image 1: image/png; handle {kept.handle}]"), owner="local")
    assert not answer.changes
    mine, messages = await repaired(repairer, chat(f"[image 1: image/png; handle {kept.handle}]"), owner="other")
    assert mine.changes
    assert images(messages) == [picture("red")]


async def test_content_that_is_gone_or_that_the_model_cannot_be_shown_stays_a_line(store, repairer):
    packed = await store.put(b"PK\x03\x04 and more", owner="local", media_type="application/zip")
    lines = ["[image 1: image/png; handle img_000000000000]", f"[document 1: a.zip; handle {packed.handle}]"]
    answer, _ = await repaired(repairer, chat(*lines))
    assert not answer.changes


async def test_captions_of_images_that_are_shown_already_are_not_opened(store, repairer, picture):
    kept = await store.put(base64.b64decode(picture("red")), owner="local", media_type="image/png")
    zoom = f'for details call gateway_view with handle "{kept.handle}"'
    caption = f"[image 1: 40x30, shown at 20x15, multiply coordinates by 2.00 for the original; {zoom}]"
    image = {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{picture('blue')}"}}
    follows = {"role": "user", "content": [image]}
    answer, _ = await repaired(repairer, {"model": "gpt-5", "messages": [*chat(caption)["messages"], follows]})
    assert not answer.changes


def test_text_handles_and_policy_lines_are_not_opened():
    for words in (
        '[… 1,000 of 2,000 characters left out here; read on with gateway_read, handle "txt_000000000000", offset 3 …]',
        "[image: image/png, 2 KB (of an older result, left out here); handle img_000000000000]",
        "img_000000000000",
    ):
        assert handles_in(envelope_of(words)) == ()


def observed(told, *, called="Calling tools:\n[{'id': 'c0', 'function': {'name': 'chart', 'arguments': {}}}]"):
    """A step of smolagents' ToolCallingAgent, which writes calls and results as text."""
    text = {"type": "text", "text": told}
    assistant = {"role": "assistant", "content": [{"type": "text", "text": called}]}
    return {"model": "gpt-5", "messages": [assistant, {"role": "user", "content": [text]}]}


async def test_what_smolagents_observed_is_the_result_of_a_tool(store, repairer, picture):
    red = picture("red")
    result = {"content": [{"type": "text", "text": "a chart"}, {"type": "image", "data": red, "mimeType": "image/png"}]}
    said = (await as_host(store, result, "smolagents"))["content"][0]["text"]
    answer, messages = await repaired(repairer, observed(f"Observation:\n{said}"))
    assert images(messages) == [red]
    assert messages[1]["content"][0]["text"].startswith("Observation:\na chart")
    again, _ = await repaired(repairer, json.loads(answer.body))
    assert not again.changes
