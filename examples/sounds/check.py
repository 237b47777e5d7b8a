"""Starts the sounds server over HTTP+SSE, calls every tool, and listens to what comes back. Exit 0 if all is well."""

from __future__ import annotations  # array takes its parameter at run time only from Python 3.12 on

import json
import wave
from array import array
from base64 import b64decode
from io import BytesIO
from itertools import pairwise

from mcp import Client
from mcp.client.sse import sse_client
from mcp_types import AudioContent, CallToolResult

from ..checking import check_tools, kinds, near, picture, refused, run, started, structured, words

TOOLS = {"play_tone", "play_chord", "play_melody", "waveform", "list_sounds"}


async def check() -> None:
    """All checks, on one connection."""
    async with started(f"{__package__}") as url, Client(sse_client(url), mode="legacy") as client:
        await check_tools(client, TOOLS)
        results = {name: await client.call_tool(name, {}) for name in sorted(TOOLS)}
        assert not any(result.is_error for result in results.values())
        for name in ("play_tone", "play_chord", "play_melody"):
            assert kinds(results[name]) == ["text", "audio/wav"]
        check_sounds(results)
        check_picture(results["waveform"])
        check_listing(results["list_sounds"])
        await check_arguments(client)


def check_sounds(results: dict[str, CallToolResult]) -> None:
    """The sounds last as long, and are as high, as the text beside them says."""
    assert words(results["play_tone"]).startswith("A4, 440.0 Hz: 1.00 s, bell, WAV")
    tone = samples(results["play_tone"])
    assert len(tone) == 22_050
    assert max(map(abs, tone)) == 27_852
    assert words(results["play_chord"]).startswith("C4 major (261.6, 329.6, 392.0 Hz): 2.00 s")
    assert len(samples(results["play_chord"])) == 44_100
    assert words(results["play_melody"]).startswith("Ode to Joy (Beethoven, 1824), 15 notes: 7.27 s")
    assert abs(len(samples(results["play_melody"])) / 22_050 - 7.27) < 0.01


def check_picture(result: CallToolResult) -> None:
    """The picture has its size, and a wave in the middle of it."""
    assert kinds(result) == ["image/png"]
    image = picture(result)
    assert image.size == (1_000, 460)
    blue = sum(1 for x in range(60, 970) if near(image.getpixel((x, 162)), (29, 79, 140), 24))
    assert blue > 400, "there is no wave along the middle line"


def check_listing(result: CallToolResult) -> None:
    """The structured content, and its twin in text."""
    assert kinds(result) == ["text"]
    listing = structured(result)
    assert json.loads(words(result)) == listing
    assert listing["instruments"] == ["sine", "organ", "bell", "strings"]
    assert [one["name"] for one in listing["melodies"]] == [
        "ode-to-joy",
        "frere-jacques",
        "greensleeves",
        "westminster",
    ]


async def check_arguments(client: Client) -> None:
    """Arguments are used, and wrong ones refused with a reason."""
    high = samples(await client.call_tool("play_tone", {"note": "A5", "seconds": 0.5, "instrument": "sine"}))
    rises = sum(1 for before, after in pairwise(high) if before < 0 <= after)
    assert abs(rises - 440) <= 2, f"half a second of A5 has {rises} waves, not 440"
    own = await client.call_tool("play_melody", {"notes": "C4 R E4:0.5", "tempo": 60})
    assert words(own).startswith("Melody, 3 notes: 2.50 s")
    drawn = await client.call_tool("waveform", {"notes": "A4", "instrument": "organ"})
    assert picture(drawn).size == (1_000, 460)
    # The longest sound that can be made still fits into one event of a client with the usual limit of 1 MiB.
    longest = await client.call_tool("play_tone", {"seconds": 15, "instrument": "sine"})
    assert len(samples(longest)) == 15 * 22_050
    await refused(client, "play_tone", {"note": "H4"}, "'H4' is not a note")
    await refused(client, "play_tone", {"note": "C9"}, "the ends of a piano")
    await refused(client, "play_tone", {"seconds": 60}, "less than or equal to 15")
    await refused(client, "play_melody", {"notes": "C4 X4"}, "note 2: 'X4' is not a note")
    await refused(client, "play_melody", {"notes": "C4:16 C4:16", "tempo": 60}, "at most 15")
    await refused(client, "play_chord", {"kind": "jazzy"}, "'major', 'minor'")


def samples(result: CallToolResult) -> array[int]:
    """The samples of the WAV file in the second block."""
    block = result.content[1]
    assert isinstance(block, AudioContent)
    assert block.mime_type == "audio/wav"
    with wave.open(BytesIO(b64decode(block.data, validate=True))) as file:
        assert (file.getnchannels(), file.getsampwidth(), file.getframerate()) == (1, 2, 22_050)
        return array("h", file.readframes(file.getnframes()))


if __name__ == "__main__":
    run(check, "sounds")
