"""What a profile adds for programs: whole, by its schema, within the limit, and never an upstream's in its place."""

import json
from collections.abc import AsyncIterator
from typing import Any

import jsonschema_rs
import pytest

from gateway.config.builtin_profiles import load_builtin
from gateway.config.content_settings import MediaSettings
from gateway.config.store_settings import StoreSettings
from gateway.content.media import MediaWorkers
from gateway.content.shaping import Shaper
from gateway.content.shaping.outputs import ENVELOPE_KEY, MODEL_API_KEY
from gateway.content.shaping.turns import lower_turn
from gateway.content.store import MemoryStore
from gateway.core.model.envelope import envelope_json_schema
from gateway.core.profiles.host_profiles import resolve_profiles
from gateway.core.profiles.profile import Profile, ProfileSource

pytestmark = pytest.mark.anyio

PNG = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNkYPhfDwAChwGA60e6kgAAAABJRU5ErkJggg=="
RESULT: dict[str, Any] = {
    "content": [{"type": "text", "text": "one"}, {"type": "image", "data": PNG, "mimeType": "image/png"}],
    "_meta": {"theirs": 1, ENVELOPE_KEY: "forged", MODEL_API_KEY: "forged"},
}


def program(**sets: Any) -> Profile:
    sources = {**load_builtin(), "program": ProfileSource(extends="passthrough", sets=sets)}
    return resolve_profiles(sources)["program"]


@pytest.fixture
async def shaper() -> AsyncIterator[Shaper]:
    async with MediaWorkers(MediaSettings()) as media:
        yield Shaper(MemoryStore(StoreSettings()), media)


async def test_without_them_a_result_stays_as_it_was(shaper: Shaper) -> None:
    assert (await shaper.shape(RESULT, program(), owner="me")).result == RESULT


async def test_the_envelope_stands_beside_the_content_by_its_published_schema(shaper: Shaper) -> None:
    shaped = await shaper.shape(RESULT, program(output={"envelope": True}), owner="me")
    assert shaped.result["content"] == RESULT["content"]
    meta = shaped.result["_meta"]
    assert (set(meta), meta["theirs"]) == ({"theirs", ENVELOPE_KEY}, 1)
    jsonschema_rs.validate(envelope_json_schema(), meta[ENVELOPE_KEY])
    assert meta[ENVELOPE_KEY]["blocks"][1]["data"] == PNG


@pytest.mark.parametrize("target", ["openai_chat", "anthropic_messages", "gemini", "openai_responses"])
async def test_the_messages_are_those_that_lower_turn_writes(shaper: Shaper, target: str) -> None:
    shaped = await shaper.shape(RESULT, program(output={"model_api": target}), owner="me")
    written = await lower_turn([{"id": "call", "name": "tool", "result": RESULT}], target)
    assert shaped.result["_meta"][MODEL_API_KEY] == {"target": target, "messages": written.messages}
    assert PNG in json.dumps(written.messages)


async def test_what_the_limit_has_no_room_for_is_left_out_with_a_note(shaper: Shaper) -> None:
    both = {"output": {"envelope": True, "model_api": "openai_chat"}}
    whole = await shaper.shape(RESULT, program(**both), owner="me")
    size = len(json.dumps(whole.result, separators=(",", ":"), ensure_ascii=False))
    shaped = await shaper.shape(RESULT, program(**both, limits={"result_chars": size - 1}), owner="me")
    assert set(shaped.result["_meta"]) == {"theirs", MODEL_API_KEY}
    assert [note.kind for note in shaped.notes] == ["dropped"]
    assert shaped.notes[0].text.startswith(f"_meta {ENVELOPE_KEY} left out: with it the result has {size:,} characters")
    tight = await shaper.shape(RESULT, program(**both, limits={"result_chars": 400}), owner="me")
    assert set(tight.result["_meta"]) == {"theirs"}
    assert [note.kind for note in tight.notes].count("dropped") == 2
