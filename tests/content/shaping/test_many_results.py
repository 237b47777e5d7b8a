"""Requests with thousands of tool results: linear in their number, and worked on beside the event loop."""

import base64
import gc
import io
import json
import threading
import time
from collections.abc import Callable
from typing import Any

import pytest
from PIL import Image

from gateway.config.builtin_profiles import model_profiles
from gateway.config.model_proxy_settings import HistorySettings
from gateway.config.store_settings import StoreSettings
from gateway.content.shaping import repair_request, settle
from gateway.content.shaping.repair_request import RepairedRequest, Repairer
from gateway.content.store import MemoryStore
from gateway.core.model_apis.requests.request_edits import with_copies
from gateway.errors import MediaError

RESULTS = 3_000


class NoWorkers:
    """For media that fits as it is."""

    async def run(self, effect: Any) -> Any:
        raise MediaError("there are no workers here")


def request(in_turn: int) -> bytes:
    """A Chat Completions request whose results are JSON with a picture; `in_turn` calls in each message."""
    picture = io.BytesIO()
    Image.new("RGB", (8, 8), (1, 2, 3)).save(picture, "PNG")
    data = base64.b64encode(picture.getvalue()).decode()
    result = json.dumps({"content": [{"type": "image", "data": data, "mimeType": "image/png"}]})
    messages: list[dict[str, Any]] = []
    for first in range(0, RESULTS, in_turn):
        numbers = range(first, first + in_turn)
        function = {"name": "look", "arguments": "{}"}
        calls = [{"id": f"c{number}", "type": "function", "function": function} for number in numbers]
        messages.append({"role": "assistant", "content": None, "tool_calls": calls})
        messages += [{"role": "tool", "tool_call_id": f"c{number}", "content": result} for number in numbers]
    return json.dumps({"model": "gpt-5", "messages": messages}).encode()


async def repaired(body: bytes) -> RepairedRequest:
    repairer = Repairer(MemoryStore(StoreSettings()), NoWorkers(), HistorySettings())
    return await repairer.repair(body, "openai_chat", lambda _: model_profiles()["openai_chat"])


@pytest.mark.anyio
@pytest.mark.parametrize("in_turn", [1, RESULTS])
async def test_what_depends_on_their_number_is_done_in_threads(in_turn: int, monkeypatch: pytest.MonkeyPatch) -> None:
    at: dict[str, set[threading.Thread]] = {}

    def watched(module: Any, name: str) -> None:
        actual: Callable[..., Any] = getattr(module, name)

        def call(*given: Any) -> Any:
            at.setdefault(name, set()).add(threading.current_thread())
            return actual(*given)

        monkeypatch.setattr(module, name, call)

    for name in ("_read", "_naming", "_parted", "_written"):
        watched(repair_request, name)
    watched(settle, "assemble")
    answer = await repaired(request(in_turn))
    assert len(answer.changes) == RESULTS
    here = threading.current_thread()
    shared = {name for name, threads in at.items() if here in threads}
    # A turn of one call is assembled where it is: the loop has its turn between two of them.
    assert shared == ({"assemble"} if in_turn == 1 else set())
    assert len(at) == 5


def test_the_containers_of_many_places_are_copied_in_linear_time() -> None:
    def seconds(count: int) -> float:
        value = [{"content": [number]} for number in range(count)]
        wheres = [(number, "content") for number in range(count)]
        gc.disable()  # what it takes depends on everything else that is in memory
        began = time.thread_time()
        copied = with_copies(value, wheres)
        took = time.thread_time() - began
        gc.enable()
        assert copied == value
        assert all(new["content"] is not old["content"] for new, old in zip(copied, value, strict=True))
        return took

    # Eight times as many take about eight times as long; it were 64 times if each looked through all of them.
    assert min(seconds(16_000) for _ in range(3)) < 24 * max(min(seconds(2_000) for _ in range(3)), 1e-3)
