"""Handles in a history become media, in the form of each API, and what cannot is noted."""

import base64
import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import gateway
from gateway.config.builtin_profiles import model_profiles
from gateway.config.store_settings import StoreSettings
from gateway.content.shaping.turns import lower_turn
from gateway.content.store import MemoryStore
from gateway.core.model.turn import Media
from gateway.core.model_apis.registry import APIS
from gateway.core.model_apis.requests.handle_mentions import mentions, with_media
from gateway.core.model_apis.requests.handles_in_text import handles_in_text, handles_in_value
from gateway.errors import InvalidRequest, ProfileError
from gateway.testing.model_apis import refusals, seen
from gateway.testing.model_apis.histories import history
from tests.core.model_apis import cases

pytestmark = pytest.mark.anyio
MADE = vars(cases)
TARGETS = sorted(model_profiles())
PNG = base64.b64decode(MADE["PNG"])
CALLS = [{"id": "call00000", "name": "first"}, {"id": "call00001", "name": "second"}]


@pytest.fixture
def store() -> MemoryStore:
    return MemoryStore(StoreSettings(), key=b"k" * 32)


async def kept(store: MemoryStore, content: bytes = PNG, media_type: str = "image/png", owner: str = "local") -> str:
    return (await store.put(content, owner=owner, media_type=media_type)).handle


def line(handle: str) -> str:
    return f"[image 1: image/png, 40x30 (this host shows none); handle {handle}]"


async def told(target: str, words: str) -> dict[str, Any]:
    """A request in which the first of two tools says these words."""
    results = [{"content": [{"type": "text", "text": words}]}, {"content": [{"type": "text", "text": "other"}]}]
    calls = [{**call, "result": result} for call, result in zip(CALLS, results, strict=True)]
    return history(target, CALLS, (await lower_turn(calls, target)).messages)


def key(target: str) -> str:
    own = {"gemini": "contents", "gemini_2_5": "contents", "gemini_interactions": "input", "openai_responses": "input"}
    return own.get(target, "messages")


@pytest.mark.parametrize("target", TARGETS)
async def test_an_image_that_a_tool_s_words_name_is_seen(target: str, store: MemoryStore) -> None:
    handle = await kept(store)
    request = await told(target, line(handle))
    resolved = await gateway.resolve_messages(request[key(target)], target, store)
    expanded = {**request, key(target): resolved.messages}
    assert refusals(target, expanded) == ()
    assert [one.content for one in seen(target, expanded)] == [PNG]
    assert [note.kind for note in resolved.notes] == ["rescued"]
    again = await gateway.resolve_messages(resolved.messages, target, store)
    assert again.messages == resolved.messages
    assert sum(old is new for old, new in zip(request[key(target)], resolved.messages, strict=False)) >= 1


CAPTIONS = [
    '[image 1: 80x60, shown at 40x30, multiply coordinates by 2.00; for details call gateway_view with handle "{}"]',
    "[image 1: 40x30, first of 3 frames; whole under handle {}]",
    "[image 1: 40x30; its handle for tools is {}]",
]


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("caption", CAPTIONS)
async def test_an_image_that_is_shown_is_not_put_in_again(target: str, caption: str, store: MemoryStore) -> None:
    """What is shown need not be what is kept: it was scaled, or is the first frame of it."""
    said = {"type": "text", "text": caption.format(await kept(store))}
    blocks = [said, {"type": "image", "data": MADE["BLUE"], "mimeType": "image/png"}]
    turn = await lower_turn([{**CALLS[0], "result": {"content": blocks}}], target)
    request = history(target, CALLS[:1], turn.messages)
    resolved = await gateway.resolve_messages(request[key(target)], target, store)
    assert resolved.messages == request[key(target)]
    assert resolved.notes == ()


@pytest.mark.parametrize("caption", CAPTIONS[:2])
async def test_an_image_whose_caption_is_all_that_is_left_is_seen(caption: str, store: MemoryStore) -> None:
    request = await told("openai_chat", caption.format(await kept(store)))
    # Pictures of another turn are not this caption's.
    picture = {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{MADE['BLUE']}"}}
    later = [{"role": "assistant", "content": "I see."}, {"role": "user", "content": [picture]}]
    resolved = await gateway.resolve_messages([*request["messages"], *later], "openai_chat", store)
    shown = [one.content for one in seen("openai_chat", {**request, "messages": resolved.messages})]
    assert shown == [PNG, base64.b64decode(MADE["BLUE"])]


@pytest.mark.parametrize("target", TARGETS)
async def test_a_user_may_name_a_uri(target: str, store: MemoryStore) -> None:
    handle = await kept(store)
    request = await told(target, "nothing")
    asked = json.loads(json.dumps(request[key(target)]).replace("Please look.", f"Look at content://{handle}"))
    expanded = {**request, key(target): (await gateway.resolve_messages(asked, target, store)).messages}
    assert refusals(target, expanded) == ()
    assert [one.content for one in seen(target, expanded)] == [PNG]


@pytest.mark.parametrize(
    "part",
    [
        {"type": "image", "source": {"kind": "image", "handle_id": "HANDLE", "mime_type": "image/png"}},
        {"kind": "image", "id": "HANDLE", "byte_size": 3},
        {"type": "image_url", "image_url": {"url": "content://HANDLE"}},
        {"handle": "HANDLE"},
    ],
)
@pytest.mark.parametrize(
    "target", ["openai_chat", "openai_responses", "anthropic_messages", "gemini", "bedrock_converse"]
)
async def test_a_handle_object_is_replaced_everywhere_and_shown_once(
    target: str, part: dict[str, Any], store: MemoryStore
) -> None:
    handle = await kept(store)
    made = json.loads(json.dumps(part).replace("HANDLE", handle))
    name = "parts" if target == "gemini" else "content"
    messages = [{"role": "user", name: [made]}, {"role": "user", name: [made]}]
    resolved = await gateway.resolve_messages(messages, target, store)
    assert made not in [one for message in resolved.messages for one in message[name]]
    request = {key(target): resolved.messages, **({"max_tokens": 9} if target == "anthropic_messages" else {})}
    assert refusals(target, {"model": "m", **request}) == ()
    assert [one.content for one in seen(target, request)] == [PNG]
    assert messages[0][name] == [made]


async def test_what_cannot_be_read_is_noted_and_stays(store: MemoryStore) -> None:
    foreign = await kept(store, owner="someone else")
    messages = [
        {"role": "user", "content": f"content://{foreign} and content://img_000000000000"},
        {"role": "user", "content": [{"kind": "image", "handle_id": "img_000000000001"}]},
    ]
    resolved = await gateway.resolve_messages(messages, "openai_chat", store)
    assert resolved.messages[0] is messages[0]
    assert resolved.messages[1]["content"][0] == {
        "type": "text",
        "text": "[content://img_000000000001: it cannot be read]",
    }
    assert [note.kind for note in resolved.notes] == ["failed"] * 3
    assert foreign in resolved.notes[0].text


async def test_what_the_api_does_not_take_stays_words_with_a_note(store: MemoryStore) -> None:
    sound = await kept(store, base64.b64decode(MADE["WAV"]), "audio/wav")
    words = await kept(store, b"only text", "text/plain")
    messages = [{"role": "user", "content": f"content://{sound} content://{words}"}]
    resolved = await gateway.resolve_messages(messages, "anthropic_messages", store)
    assert resolved.messages == messages
    assert {sound, words} <= {word for note in resolved.notes for word in note.text.split()}


async def test_a_large_image_is_fitted_and_a_blind_model_gets_none(store: MemoryStore) -> None:
    large = await kept(store, base64.b64decode(MADE["picture"]("PNG", (3_000, 40))))
    messages = [{"role": "user", "content": f"content://{large}"}]
    resolved = await gateway.resolve_messages(messages, "anthropic_messages", store)
    assert max(MADE["Image"].open(_bytes(resolved.messages)).size) == 2_000
    blind = await gateway.resolve_messages(messages, "openai_chat", store, model="gpt-3.5-turbo")
    assert blind.messages == messages
    assert blind.notes


def _bytes(messages: list[Any]) -> Any:
    return MADE["io"].BytesIO(base64.b64decode(messages[0]["content"][-1]["source"]["data"]))


async def test_media_of_a_handle_follows_a_reply_where_roles_have_to_alternate(store: MemoryStore) -> None:
    request = {**await told("vllm", line(await kept(store))), "model": "ministral-3-8b-instruct-2512"}
    done = await gateway.resolve_messages(request["messages"], "vllm", store, model=request["model"])
    assert [one["role"] for one in done.messages[2:]] == ["tool", "tool", "assistant", "user"]
    assert refusals("vllm", {**request, "messages": done.messages}) == ()


async def test_media_of_parallel_tools_follows_all_of_their_messages(store: MemoryStore) -> None:
    handle, other = await kept(store), await kept(store, base64.b64decode(MADE["BLUE"]))
    results = [{"content": [{"type": "text", "text": line(one)}]} for one in (handle, other)]
    calls = [{**call, "result": result} for call, result in zip(CALLS, results, strict=True)]
    turn = (await lower_turn(calls, "openai_chat")).messages
    resolved = await gateway.resolve_messages([*turn, {"role": "assistant", "content": "I see"}], "openai_chat", store)
    assert [message["role"] for message in resolved.messages] == ["tool", "tool", "user", "assistant"]
    assert [part.get("text") for part in resolved.messages[2]["content"]] == [f"[{handle}]", None, f"[{other}]", None]


@pytest.mark.parametrize("target", ["anthropic_messages", "gemini", "gemini_2_5", "mistral", "openai_chat", "ollama"])
@pytest.mark.parametrize("is_error", [False, True])
async def test_several_handles_keep_their_order(target: str, is_error: bool, store: MemoryStore) -> None:
    pictures = [base64.b64decode(MADE["picture"]("PNG", (8 + number, 8))) for number in range(4)]
    handles = [await kept(store, picture) for picture in pictures]
    results = [
        {"content": [{"type": "text", "text": " ".join(map(line, two))}], "isError": is_error}
        for two in (handles[:2], handles[2:])
    ]
    calls = [{**call, "result": result} for call, result in zip(CALLS, results, strict=True)]
    request = history(target, CALLS, (await lower_turn(calls, target)).messages)
    expanded = {**request, key(target): (await gateway.resolve_messages(request[key(target)], target, store)).messages}
    assert refusals(target, expanded) == ()
    assert [one.content for one in seen(target, expanded)] == pictures


async def test_messages_that_are_no_list_and_targets_that_are_none_are_refused(store: MemoryStore) -> None:
    with pytest.raises(InvalidRequest):
        await gateway.resolve_messages({"role": "user"}, "openai_chat", store)  # type: ignore[arg-type]
    with pytest.raises(ProfileError):
        await gateway.resolve_messages([], "openai", store)


@pytest.mark.parametrize(
    ("text", "found"),
    [
        (line("img_7h3k2m9q4w8x"), ("img_7h3k2m9q4w8x",)),
        ('[image 1: x; open it with gateway_view, handle "img_7h3k2m9q4w8x"]', ("img_7h3k2m9q4w8x",)),
        (json.dumps('[a: b; handle "doc_7h3k2m9q4w8x"]'), ("doc_7h3k2m9q4w8x",)),
        ("content://aud_7h3k2m9q4w8x, content://aud_7h3k2m9q4w8x", ("aud_7h3k2m9q4w8x",)),
        ('{"photo": {"kind": "image", "handle_id": "img_7h3k2m9q4w8x"}}', ("img_7h3k2m9q4w8x",)),
        ('{"kind": "image", "id": "img_7h3k2m9q4w8x"}', ("img_7h3k2m9q4w8x",)),
        ("[img_7h3k2m9q4w8x]", ()),
        ("content://img_7h3k2m9q4w8xx", ()),
        ("handle with care", ()),
    ],
)
def test_handles_are_found_where_a_gateway_writes_them(text: str, found: tuple[str, ...]) -> None:
    assert handles_in_text(text) == found
    assert handles_in_value({"deep": [{"text": text}]}) == found


JSON = st.recursive(
    st.none() | st.booleans() | st.text(max_size=8) | st.sampled_from(["content://img_7h3k2m9q4w8x", "user", "tool"]),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["role", "type", "content", "parts", "text", "output", "toolResult", "functionResponse"]),
            inner,
            max_size=4,
        )
    ),
    max_leaves=12,
)


@settings(max_examples=200, deadline=None)
@given(st.lists(JSON, max_size=4), st.sampled_from(TARGETS))
def test_no_history_makes_finding_raise(messages: list[Any], target: str) -> None:
    before = json.dumps(messages)
    profile = model_profiles()[target]
    named = mentions(messages, profile)
    parts = {one.handle: (Media("image", "image/png", MADE["PNG"], "image 1"),) for one in named}
    with_media(messages, profile, named, parts, APIS[profile.writing])
    assert json.dumps(messages) == before
