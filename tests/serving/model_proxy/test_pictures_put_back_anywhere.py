"""Histories with lines in any place: each picture is seen once, the API takes the request, and repeating it is safe."""

import base64
import json
import random
from collections.abc import Callable
from typing import Any

import pytest

from gateway.config.builtin_profiles import model_profiles
from gateway.config.model_proxy_settings import HistorySettings
from gateway.config.store_settings import StoreSettings
from gateway.content.shaping.repair_request import Repairer
from gateway.content.store import MemoryStore
from gateway.errors import MediaError
from gateway.testing.model_apis import conversation, refusals

pytestmark = pytest.mark.anyio

COLOURS = ("red", "green", "blue", "yellow", "black")
LINES = ("[image 1: image/png, 40x30; handle {}]", "[image 2: image/png, 40x30 (not shown here); handle {}]")
AROUND = ("a\n{}\nb", "{}", "['x {}']", "Observation:\n{}")


class NoWorkers:
    """For media that fits as it is."""

    async def run(self, effect: Any) -> Any:
        raise MediaError("there are no workers here")


class History:
    """A history of a model API, made by chance from a seed; `used` are the handles that it names."""

    def __init__(self, api: str, seed: int, handles: list[str]) -> None:
        self.api, self.handles, self.used = api, handles, set[str]()
        self.chance = random.Random(seed)
        self.calls = 0
        self.messages: list[Any] = [{"role": "user", "content": self.content()}]
        for _ in range(self.chance.randrange(1, 5)):
            self.messages += self.chance.choice([self.called, self.observed])()

    def text(self) -> str:
        if self.chance.random() < 0.35:
            return "nothing"
        handle = self.chance.choice(self.handles)
        self.used.add(handle)
        return self.chance.choice(AROUND).format(self.chance.choice(LINES).format(handle))

    def content(self) -> Any:
        text, kind = self.text(), "input_text" if self.api == "openai_responses" else "text"
        return text if self.chance.random() < 0.5 else [{"type": kind, "text": one} for one in (text, "tail")]

    def observed(self) -> list[Any]:
        said = {"role": "assistant", "content": f"Observation: {self.text()}"}
        return [said, {"role": "user", "content": self.content()}]

    def called(self) -> list[Any]:
        ids = [f"c{self.calls + number}" for number in range(self.chance.choice([1, 1, 2]))]
        self.calls += len(ids)
        also = self.chance.random() < 0.5
        if self.api == "openai_chat":
            function = {"name": "snap", "arguments": "{}"}
            calls = [{"id": one, "type": "function", "function": function} for one in ids]
            results = [{"role": "tool", "tool_call_id": one, "content": self.content()} for one in ids]
            more = [{"role": "user", "content": self.content()}] if also else []
            return [{"role": "assistant", "content": None, "tool_calls": calls}, *results, *more]
        if self.api == "anthropic_messages":
            uses = [{"type": "tool_use", "id": one, "name": "snap", "input": {}} for one in ids]
            given = [{"type": "tool_result", "tool_use_id": one, "content": self.content()} for one in ids]
            texts = [{"type": "text", "text": self.text()}] if also else []
            return [{"role": "assistant", "content": uses}, {"role": "user", "content": [*given, *texts]}]
        made = [{"type": "function_call", "call_id": one, "name": "snap", "arguments": "{}"} for one in ids]
        return made + [{"type": "function_call_output", "call_id": one, "output": self.content()} for one in ids]

    @property
    def request(self) -> dict[str, Any]:
        if self.api == "openai_responses":
            return {"model": "gpt-5", "input": self.messages}
        if self.api == "openai_chat":
            return {"model": "gpt-5", "messages": self.messages}
        tools = [{"name": "snap", "input_schema": {"type": "object"}}]
        return {"model": "claude-sonnet-5", "max_tokens": 9, "tools": tools, "messages": self.messages}


@pytest.mark.parametrize("api", ["openai_chat", "openai_responses", "anthropic_messages"])
async def test_wherever_lines_stand(api: str, picture: Callable[[str], str]) -> None:
    store = MemoryStore(StoreSettings())
    contents = {}
    for colour in COLOURS:
        stored = await store.put(base64.b64decode(picture(colour)), owner="local", media_type="image/png")
        contents[stored.handle] = picture(colour)
    repairer = Repairer(store, NoWorkers(), HistorySettings(results=0))
    profile = model_profiles()[api]
    for seed in range(100):
        history = History(api, seed, list(contents))
        assert refusals(api, history.request) == ()
        repaired = await repairer.repair(json.dumps(history.request).encode(), api, lambda _: profile)
        request = json.loads(repaired.body)
        assert refusals(api, request) == (), seed
        read = conversation(api, request)
        assert read is not None
        shown = [media.data for media in read.media if media.seen is not None]
        assert sorted(shown) == sorted(contents[handle] for handle in history.used), seed
        again = await repairer.repair(repaired.body, api, lambda _: profile)
        assert again.changes == (), seed
