"""Lines of event streams, mended on their way to the SDK's parser."""

import json
from collections.abc import AsyncIterator

import httpx2
import pytest
from pydantic_core import from_json

from gateway.upstream.transports.event_stream import MendedEvents
from gateway.upstream.transports.messages import mended

pytestmark = pytest.mark.anyio


class Chunks(httpx2.AsyncByteStream):
    def __init__(self, chunks: list[bytes]) -> None:
        self._chunks = chunks

    async def __aiter__(self) -> AsyncIterator[bytes]:
        for chunk in self._chunks:
            yield chunk

    async def aclose(self) -> None:
        """Nothing is open."""


async def events(chunks: list[bytes], limit: int = 1_000_000) -> list[tuple[str, str, str]]:
    headers, request = {"content-type": "text/event-stream"}, httpx2.Request("POST", "http://x/")
    response = httpx2.Response(200, headers=headers, stream=Chunks(chunks), request=request)
    response.stream = MendedEvents(response, limit)
    return [(event.event, event.data, event.id) async for event in httpx2.EventSource(response, max_event_size=limit)]


STREAM = (
    b'event: message\nid: 1\ndata: {"a": 1}\n\n: ping\n\nid: 2\nretry: 5\ndata: {"b":\ndata:  2}\n\ndata:\nid: 3\n\n'
)
EXPECTED = [("message", '{"a": 1}', "1"), ("message", '{"b":\n 2}', "2"), ("message", "", "3")]


@pytest.mark.parametrize("end", [b"\n", b"\r\n", b"\r"])
@pytest.mark.parametrize("size", [1, 2, 3, 7, 1_000])
async def test_events_stay_as_they_came_wherever_they_are_cut(end: bytes, size: int) -> None:
    stream = STREAM.replace(b"\n", end)
    assert await events([stream[at : at + size] for at in range(0, len(stream), size)]) == EXPECTED


async def test_what_the_sdk_cannot_parse_is_mended() -> None:
    deep = "[" * 5_000 + "]" * 5_000
    for wrong in (r'{"a": "\ud800", "b": 1}', f'{{"a": {deep}, "b": 1}}', f'{{"a": {"9" * 5_000}, "b": 1}}'):
        with pytest.raises(ValueError):
            from_json(wrong)
        ((_, data, _),) = await events([f"data: {wrong}\n\n".encode()])
        assert from_json(data)["b"] == 1


async def test_an_event_over_the_limit_is_refused_as_before() -> None:
    with pytest.raises(httpx2.SSEError, match="exceeded"):
        await events([b"data: "] + [b"x" * 1_000] * 20, limit=10_000)


async def test_a_stream_that_ends_within_a_line_loses_nothing_more() -> None:
    assert await events([b'data: {"a": 1}\n\ndata: {"b"']) == [("message", '{"a": 1}', "")]


@pytest.mark.parametrize(
    "sound",
    [b'{"a": 1}', b"not json", b"", b"[" * 1_000, json.dumps({"a": "x" * 100_000, "b": "\ud83d\ude00"}).encode()],
)
async def test_a_sound_message_and_what_is_not_json_are_not_touched(sound: bytes) -> None:
    assert mended(sound) is sound


@pytest.mark.parametrize("number", ["1e400", "9" * 400, "9" * 5_000, "NaN", '"1"', "null", "true"])
async def test_progress_that_the_sdk_would_fall_over_says_nothing(number: str) -> None:
    told = b'{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":1,"progress":%s}}'
    value = from_json(mended(told % number.encode()))
    assert value["params"] == {}
    assert mended(told % b"0.5") == told % b"0.5"
