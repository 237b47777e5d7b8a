"""The length of sound and documents, found out by real media workers, and what it costs; hostile files as well."""

import wave
from base64 import b64encode
from collections.abc import AsyncGenerator
from io import BytesIO
from typing import Any

import pytest
from PIL import Image

import gateway
from gateway.config.builtin_profiles import builtin_profiles, token_formulas
from gateway.config.content_settings import MediaSettings
from gateway.config.store_settings import StoreSettings
from gateway.content.media import MediaWorkers
from gateway.content.shaping import Shaped, Shaper
from gateway.content.shaping.result_costs import result_costs
from gateway.content.store import MemoryStore
from gateway.core.profiles.profile import Profile
from gateway.core.tokens import content_of_result, count_content

pytestmark = pytest.mark.anyio
_PASS = builtin_profiles()["passthrough"]
GEMINI = _PASS.model_copy(update={"tokens": _PASS.tokens.model_copy(update={"formulas": ("gemini",)})})


@pytest.fixture(scope="module")
async def workers() -> AsyncGenerator[MediaWorkers]:
    async with MediaWorkers(MediaSettings()) as media:
        yield media


@pytest.fixture
def shaper(workers: MediaWorkers) -> Shaper:
    return Shaper(MemoryStore(StoreSettings()), workers, measures=True)


def pdf(pages: int) -> bytes:
    written = BytesIO()
    first, *more = [Image.new("1", (100, 100))] * pages
    first.save(written, "PDF", save_all=True, append_images=more)
    return written.getvalue()


def sound(seconds: int) -> bytes:
    written = BytesIO()
    with wave.open(written, "wb") as file:
        file.setnchannels(1)
        file.setsampwidth(1)
        file.setframerate(1_000)
        file.writeframes(bytes(1_000 * seconds))
    return written.getvalue()


def embedded(content: bytes, media_type: str = "application/pdf") -> dict[str, Any]:
    return {
        "type": "resource",
        "resource": {"uri": "file:///a", "mimeType": media_type, "blob": b64encode(content).decode()},
    }


def heard(content: bytes) -> dict[str, Any]:
    return {"type": "audio", "data": b64encode(content).decode(), "mimeType": "audio/wav"}


def budgeted(most: int) -> Profile:
    return GEMINI.model_copy(update={"tokens": GEMINI.tokens.model_copy(update={"max_result": most})})


async def shaped(shaper: Shaper, *content: Any, profile: Profile = GEMINI) -> Shaped:
    return await shaper.shape({"content": list(content)}, profile, owner="ann")


async def test_pages_and_seconds_are_counted_by_the_formula(shaper: Shaper) -> None:
    (cost,) = result_costs(await shaped(shaper, embedded(pdf(3)), heard(sound(60))), GEMINI, None)
    assert (cost.sent.others, cost.sent.guessed, cost.sent.unknown) == (3 * 560 + 60 * 32, 0, 0)
    assert cost.given == cost.sent


@pytest.mark.parametrize(
    "content",
    [
        pytest.param(pdf(3)[:-200] + bytes(200_000), id="cut off"),
        pytest.param(b"%PDF-1.7\n" + b"<<" * 100_000, id="nested"),
        pytest.param(b"%PDF-1.7\n1 0 obj<</Type/Pages/Count 2000000000>>endobj" + bytes(150_000), id="claims pages"),
    ],
)
async def test_a_document_that_cannot_be_read_is_guessed_from_its_bytes_and_said_to_be(
    shaper: Shaper, content: bytes
) -> None:
    (cost,) = result_costs(await shaped(shaper, embedded(content), heard(sound(60))), GEMINI, None)
    assert cost.sent.guessed == 1
    assert 560 < cost.sent.others < 10_000  # with the sound beside it


async def test_a_document_over_the_budget_is_named_and_one_within_it_is_sent(shaper: Shaper) -> None:
    long, short = embedded(pdf(20)), embedded(pdf(1))
    result = (await shaped(shaper, long, short, heard(sound(30)), profile=budgeted(2_000))).result
    named, sent, played = result["content"]
    assert named["type"] == "text"
    assert "its 11,200 tokens are more than the 2,000 of this result have room for" in named["text"]
    assert (sent, played["type"]) == (short, "audio")


async def test_only_the_first_of_many_are_measured(shaper: Shaper) -> None:
    many = [heard(sound(number)) for number in range(1, 31)]
    (cost,) = result_costs(await shaped(shaper, *many), GEMINI, None)
    assert cost.sent.guessed == 10


async def test_nothing_is_measured_where_nothing_is_counted(workers: MediaWorkers) -> None:
    done = await shaped(Shaper(MemoryStore(StoreSettings()), workers), embedded(pdf(3)))
    assert (done.effects, done.lengths) == ((), {})


async def test_a_turn_counts_pages_too(workers: MediaWorkers) -> None:
    calls = [{"id": "c0", "name": "look", "result": {"content": [embedded(pdf(5))]}}]
    most = 5 * 258 + 100
    whole = await gateway.lower_turn(calls, "gemini", model="gemini-2.5-pro", max_tokens=most, media=workers)
    cut = await gateway.lower_turn(calls, "gemini", model="gemini-2.5-pro", max_tokens=most - 200, media=workers)
    assert "application/pdf" in str(whole.messages)
    assert "its 1,290 tokens are more than" in str(cut.messages)


async def test_what_is_counted_of_a_result_without_lengths_is_a_guess() -> None:
    count = count_content(content_of_result({"content": [embedded(pdf(3))]}), token_formulas()["gemini"])
    assert (count.guessed, count.others) == (1, 560)
