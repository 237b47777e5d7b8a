"""A conversation on every model API: the stand-in of each accepts what the toolset writes, and sees the picture."""

import copy
from typing import Any

import anyio
import pytest

from gateway.config.builtin_profiles import model_profiles
from gateway.testing.model_apis import conversation, refusals, seen
from gateway.testing.model_apis.histories import history
from gateway.testing.model_apis.replies.write_reply import Asked
from gateway.testing.model_apis.scripts import LookingModel, Reply, ToolCall
from gateway.testing.model_apis.server import OPENAI_CHAT, WRITERS

pytestmark = pytest.mark.anyio
CALLS = (ToolCall("one__picture", {}, "c00000000"), ToolCall("one__fail", {}, "c00000001"))
PLACES = {"gemini": "contents", "gemini_2_5": "contents", "gemini_interactions": "input", "openai_responses": "input"}
TARGETS = [name for name, profile in sorted(model_profiles().items()) if profile.vision]


def completed(target: str, reply: Reply) -> Any:
    return WRITERS.get(target, OPENAI_CHAT).whole(reply, Asked(1, "m", {}))


def asked(target: str) -> dict[str, Any]:
    """A request with the tools, and nothing in it yet but what the user says."""
    request = history(target, [{"id": call.id, "name": call.name} for call in CALLS], [])
    place = PLACES.get(target, "messages")
    return {**request, place: request[place][:1]}


@pytest.mark.parametrize("target", TARGETS)
async def test_a_loop_shows_its_model_the_picture(in_process: Any, target: str) -> None:
    with anyio.fail_after(60):
        async with in_process() as gw:
            tools = gw.toolset(api=target)
            assert await tools.schemas()
            first = completed(target, Reply(text="Let me look.", calls=CALLS))
            assert tools.tool_call_count(first) == 2
            responded = await tools.respond(copy.deepcopy(first))
            request, place = asked(target), PLACES.get(target, "messages")
            request[place] += list(responded)
            assert refusals(target, request) == ()
            (picture,) = seen(target, request)
            assert picture.content.startswith(b"\x89PNG")
            read = conversation(target, request)
            assert read is not None
            last = completed(target, LookingModel()(read))
            assert not tools.has_tool_calls(last)
            said = await tools.respond(last)
            assert "I see 1 image: image/png" in str(said)
            assert said.results == ()
            request[place] += [*said, request[place][0]]
            assert refusals(target, request) == ()
