"""Long histories: the newest media in full, older as lines, each picture once, and cuts that stay where they are."""

import base64
import json
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

from gateway.config.builtin_profiles import model_profiles
from gateway.config.model_proxy_settings import HistorySettings
from gateway.config.store_settings import StoreSettings
from gateway.content.shaping.effect_cache import RememberingMedia
from gateway.content.shaping.repair_request import Repairer
from gateway.content.store import MemoryStore, fetch_bytes
from gateway.core.model.effects import (
    AudioTarget,
    ConvertAudio,
    Converted,
    Crop,
    DocumentRead,
    Failed,
    FitImage,
    Fitted,
    ImageTarget,
    Probe,
    Probed,
    ReadDocument,
    Rendered,
    RenderPages,
)
from gateway.core.model.media_types import PixelSize
from gateway.core.model_apis.requests.history_media import HistoryLimits, Weight, first_in_full
from gateway.errors import MediaError

pytestmark = pytest.mark.anyio


def picture(number: int, edge: int = 8) -> str:
    import io

    buffer = io.BytesIO()
    Image.new("RGB", (edge + number, edge), (number, 9, 9)).save(buffer, "PNG")
    return base64.b64encode(buffer.getvalue()).decode()


def result(number: int, data: str) -> list[dict]:
    use = {"type": "tool_use", "id": f"c{number}", "name": "snap", "input": {}}
    image = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": data}}
    answer = {"type": "tool_result", "tool_use_id": f"c{number}", "content": [image]}
    return [{"role": "assistant", "content": [use]}, {"role": "user", "content": [answer]}]


def conversation(pictures: list[str]) -> dict:
    return {"messages": [message for number, data in enumerate(pictures) for message in result(number, data)]}


class NoWorkers:
    async def run(self, effect):
        raise MediaError("there are no workers here")


def repairer(**history):
    return Repairer(MemoryStore(StoreSettings(), key=bytes(32)), NoWorkers(), HistorySettings(**history))


async def repaired(request, by, **profile):
    chosen = model_profiles()["anthropic_messages"].model_copy(update=profile)
    answer = await by.repair(json.dumps(request).encode(), "anthropic_messages", lambda _: chosen)
    return answer, json.loads(answer.body)["messages"]


def shown(messages) -> list[bool]:
    """For each result, whether its image goes on."""
    blocks = [message["content"][0]["content"][0] for message in messages if message["role"] == "user"]
    return [block["type"] == "image" for block in blocks]


async def test_the_newest_results_go_on_in_full_and_older_ones_as_a_line_with_a_handle():
    by = repairer(results=3)
    answer, messages = await repaired(conversation([picture(n) for n in range(7)]), by)
    assert shown(messages) == [False] * 3 + [True] * 4
    line = messages[1]["content"][0]["content"][0]["text"]
    assert line.startswith("[image: image/png, 8x8, ")
    handle = line.rpartition(" ")[2].rstrip("]")
    assert await fetch_bytes(by.store, handle, owner="local") == base64.b64decode(picture(0))
    again, _ = await repaired({"messages": messages}, by)
    assert not again.changes
    assert len(answer.changes) == 3


async def test_the_cut_stays_where_it_is_for_several_turns_so_that_prompt_caches_survive():
    by = repairer(results=4)
    rounds = [(await repaired(conversation([picture(n) for n in range(count)]), by))[1] for count in range(1, 25)]
    kept = [messages[: len(before)] == before for before, messages in pairwise(rounds)]
    assert kept.count(False) == 5
    assert all(4 <= sum(shown(messages)) < 8 for messages in rounds[3:])


async def test_bytes_are_limited_too():
    pictures = [picture(n) for n in range(10)]
    most = sum(len(base64.b64decode(data)) for data in pictures[:4])
    _, messages = await repaired(conversation(pictures), repairer(results=0, bytes=most))
    assert 1 <= sum(shown(messages)) <= 4
    assert shown(messages)[-1]


async def test_the_same_picture_goes_on_once_and_later_ones_say_whose_it_is():
    same = picture(1)
    answer, messages = await repaired(conversation([same, picture(2), same]), repairer())
    assert shown(messages) == [True, True, False]
    line = messages[-1]["content"][0]["content"][0]["text"]
    assert line.endswith("the same as in the result of snap, call c0]")
    assert not (await repaired({"messages": messages}, repairer()))[0].changes
    assert len(answer.changes) == 1


async def test_after_a_cut_the_first_of_equal_pictures_that_is_left_is_whole():
    same = picture(1)
    pictures = [same, picture(2), picture(3), same]
    _, messages = await repaired(conversation(pictures), repairer(results=2))
    assert shown(messages) == [False, False, True, True]


async def test_the_apis_count_of_images_is_kept_and_the_users_own_are_counted():
    rules = model_profiles()["anthropic_messages"].image.model_copy(update={"max_count": 5})
    request = conversation([picture(n) for n in range(6)])
    mine = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": picture(99)}}
    request["messages"].insert(0, {"role": "user", "content": [mine, mine]})
    _, messages = await repaired(request, repairer(results=0), image=rules)
    assert messages[0] == request["messages"][0]
    assert sum(shown(messages[1:])) <= 3
    assert shown(messages[1:])[-1]


async def test_the_apis_size_of_a_request_is_kept():
    request = conversation([picture(n, 400) for n in range(10)])
    most = len(json.dumps(request)) * 2 // 3
    answer, messages = await repaired(request, repairer(results=0, bytes=0), max_request_bytes=most)
    assert len(answer.body) <= most
    assert any(shown(messages))


class Counting:
    """Has one outcome for every effect of a type, and says which effects there were."""

    def __init__(self, **outcomes):
        self.outcomes = outcomes
        self.done = []

    async def run(self, effect):
        self.done.append(effect)
        return self.outcomes[type(effect).__name__]


PICTURE = Fitted("x" * 40, "image/png", PixelSize(1, 1), PixelSize(2, 2))


async def test_pictures_that_were_fitted_are_remembered():
    counting = Counting(FitImage=PICTURE)
    remembering = RememberingMedia(counting, max_chars=2_100)
    for number, content in enumerate((b"a", b"b", b"a", b"c", b"a", b"b")):
        await remembering.run(FitImage(str(number), content, "image/png", ImageTarget()))
    assert [effect.data for effect in counting.done] == [b"a", b"b", b"c", b"b"]


async def test_a_picture_is_another_one_cropped_or_for_another_target_or_as_bytes_that_read_like_its_base64():
    counting = Counting(FitImage=PICTURE)
    remembering = RememberingMedia(counting)
    effects = [
        FitImage("", "YQ==", "image/png", ImageTarget()),
        FitImage("", b"YQ==", "image/png", ImageTarget()),
        FitImage("", "YQ==", "image/gif", ImageTarget()),
        FitImage("", "YQ==", "image/png", ImageTarget(max_edge=5)),
        FitImage("", "YQ==", "image/png", ImageTarget(), Crop(0, 0, 1, 1)),
    ]
    for effect in effects * 2:
        await remembering.run(effect)
    assert counting.done == effects


async def test_every_kind_of_work_is_remembered_but_not_what_failed_in_part():
    counting = Counting(
        ReadDocument=DocumentRead(1, ("words",)),
        RenderPages=Rendered((Failed("too slow"),)),
        ConvertAudio=Converted("", "audio/wav", 1.0, 1.0),
        Probe=Probed(),
    )
    remembering = RememberingMedia(counting)
    effects = [
        ReadDocument("read", b"a", 1, 9),
        ReadDocument("read more", b"a", 2, 9),
        RenderPages("pages", b"a", (1,), ImageTarget()),
        ConvertAudio("sound", b"a", "audio/wav", AudioTarget()),
        Probe("probe", b"a", "audio/wav"),
    ]
    for effect in effects * 2:
        await remembering.run(effect)
    assert counting.done == [*effects, effects[2]]


LIMITS = st.none() | st.integers(0, 40)


@given(st.lists(st.builds(Weight, st.integers(0, 5), st.integers(0, 20)), max_size=30), LIMITS, LIMITS, LIMITS, LIMITS)
def test_limits_hold_and_a_longer_history_never_shows_more_of_its_beginning(weights, results, chars, images, size):
    limits = HistoryLimits(results, chars, images, size)
    cuts = [first_in_full(weights[:count], limits) for count in range(len(weights) + 1)]
    assert all(before <= after for before, after in pairwise(cuts))
    left = weights[cuts[-1] :]
    if size is not None:
        assert sum(weight.chars for weight in left) <= size
    if len(left) > 1:
        assert chars is None or sum(weight.chars for weight in left) <= chars
        assert images is None or sum(weight.images for weight in left) <= images
    if results and chars is images is size is None:
        assert len(left) >= min(results, len(weights))
        assert len(left) < 2 * results
