"""Descriptions: by a program, a tool and a model, within limits, made once for equal content."""

import json
import sys
from collections.abc import Mapping
from typing import Any

import anyio
import httpx2
import pytest

from gateway.config.describe_settings import DescribeModel, DescribeSettings
from gateway.content.describe import Describer, open_describer
from gateway.content.describe.commands import describe_with_command
from gateway.content.describe.models import describe_with_model
from gateway.content.shaping import CallersTools
from gateway.core.model.effects import ConvertAudio, Converted, FitImage, Fitted
from gateway.core.model.media_types import PixelSize
from gateway.errors import MediaError, UpstreamTimeout

pytestmark = pytest.mark.anyio


class Media:
    """Fits everything to four letters of base64."""

    async def run(self, effect: Any) -> Any:
        match effect:
            case FitImage(target=target):
                return Fitted("cGlj", target.types[0], PixelSize(1, 1), PixelSize(2, 2))
            case ConvertAudio(target=target):
                return Converted("c25k", target.types[0], 1.0, 1.0)
            case _:
                raise AssertionError("nothing else is asked for")


async def no_tool(upstream: str, tool: str, arguments: Mapping[str, Any]) -> Mapping[str, Any]:
    raise AssertionError("no tool is called")


def python(script: str) -> tuple[str, ...]:
    return (sys.executable, "-c", script)


# -- the describer ---------------------------------------------------------------------------------


async def test_equal_content_is_described_once_even_at_the_same_time() -> None:
    made: list[bytes] = []
    begun = anyio.Event()

    async def describe(content: bytes, media_type: str, tools: Any) -> str:
        made.append(content)
        begun.set()
        await anyio.lowlevel.checkpoint()
        return f" a picture of {content.decode()}\n"

    describer = Describer(describe, "eyes", DescribeSettings())
    with anyio.fail_after(10):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(describer.describe, b"cats", "image/png")
            await begun.wait()
            tasks.start_soon(describer.describe, b"cats", "image/png")
        described = await describer.describe(b"cats", "image/png")
        await describer.describe(b"dogs", "image/png")
    assert (described.text, described.by) == ("a picture of cats", "eyes")
    assert made == [b"cats", b"dogs"]


async def test_only_so_many_are_made_at_once_and_kept_in_mind() -> None:
    running = most = made = 0

    async def describe(content: bytes, media_type: str, tools: Any) -> str:
        nonlocal running, most, made
        running, made = running + 1, made + 1
        most = max(most, running)
        await anyio.lowlevel.checkpoint()
        running -= 1
        return "words"

    describer = Describer(describe, "eyes", DescribeSettings(at_once=2, remembered=1))
    with anyio.fail_after(10):
        async with anyio.create_task_group() as tasks:
            for number in range(6):
                tasks.start_soon(describer.describe, bytes([number]), "image/png")
        assert (most, made) == (2, 6)
        await describer.describe(bytes([0]), "image/png")
    assert made == 7


async def test_what_takes_too_long_or_says_nothing_fails_and_is_tried_again() -> None:
    answers: list[str | None] = [None, "  ", "x" * 50]

    async def describe(content: bytes, media_type: str, tools: Any) -> str:
        answer = answers.pop(0)
        if answer is None:
            await anyio.sleep_forever()
        return answer or ""

    describer = Describer(describe, "eyes", DescribeSettings(timeout=0.05, max_chars=40))
    with anyio.fail_after(10):
        with pytest.raises(MediaError, match=r"eyes took longer than 0\.05 s"):
            await describer.describe(b"", "image/png")
        with pytest.raises(MediaError, match="eyes returned no description"):
            await describer.describe(b"", "image/png")
        assert (await describer.describe(b"", "image/png")).text == "x" * 38 + " …"


async def test_what_a_tool_said_in_the_session_of_one_caller_is_not_told_to_another() -> None:
    asked: list[str] = []

    def tools(owner: str) -> CallersTools:
        async def call(upstream: str, tool: str, arguments: Mapping[str, Any]) -> Mapping[str, Any]:
            asked.append(f"{upstream} {tool} for {owner}")
            return {"content": [{"type": "text", "text": f"seen by {owner}"}]}

        return CallersTools(owner, call)

    async def nobodys(upstream: str, tool: str, arguments: Mapping[str, Any]) -> Mapping[str, Any]:
        return {"content": [{"type": "text", "text": "seen by nobody"}]}

    async with open_describer(DescribeSettings(tool="vision__look"), Media(), nobodys) as describer:
        assert describer is not None
        said = [(await describer.describe(b"", "image/png", tools(owner))).text for owner in ("ann", "bob", "ann")]
        assert said == ["seen by ann", "seen by bob", "seen by ann"]
        assert asked == ["vision look for ann", "vision look for bob"]
        assert (await describer.describe(b"", "image/png")).text == "seen by nobody"


# -- a program -------------------------------------------------------------------------------------


async def test_a_program_gets_bytes_and_type_and_says_words() -> None:
    script = "import os, sys; print(os.environ['MCP_GATEWAY_MEDIA_TYPE'], len(sys.stdin.buffer.read()))"
    settings = DescribeSettings(command=python(script))
    with anyio.fail_after(60):
        async with open_describer(settings, Media(), no_tool) as describer:
            assert describer is not None
            described = await describer.describe(bytes(300_000), "image/webp")
    assert described.text == "image/webp 300000"
    assert described.by == sys.executable.rsplit("/", 1)[-1]


@pytest.mark.parametrize(
    ("command", "cause"),
    [
        (python("import sys; sys.exit('no model\\x1b[31m here')"), r"exit code 1: no model \[31m here"),
        (("/does/not/exist",), "could not be started"),
        (python("while True: print('x' * 65536)"), "wrote more than"),
    ],
)
async def test_a_program_that_fails_says_why(command: tuple[str, ...], cause: str) -> None:
    with anyio.fail_after(60), pytest.raises(MediaError, match=cause):
        await describe_with_command(command, b"bytes", "image/png")


async def test_a_program_that_reads_nothing_may_still_answer() -> None:
    with anyio.fail_after(60):
        assert (await describe_with_command(python("print('hm')"), bytes(5_000_000), "image/png")).strip() == "hm"


async def test_a_program_that_complains_at_length_may_still_answer() -> None:
    chatty = "import sys; sys.stderr.write('progress ' * 500_000); print('hm')"
    with anyio.fail_after(60):
        assert (await describe_with_command(python(chatty), b"", "image/png")).strip() == "hm"


async def test_a_program_that_never_ends_is_ended() -> None:
    with anyio.move_on_after(0.3) as scope:
        await describe_with_command(python("import time; time.sleep(600)"), b"", "image/png")
    assert scope.cancelled_caught


# -- a tool ----------------------------------------------------------------------------------------


async def test_a_tool_is_given_what_its_arguments_name() -> None:
    called: list[tuple[str, str, Mapping[str, Any]]] = []

    async def call(upstream: str, tool: str, arguments: Mapping[str, Any]) -> Mapping[str, Any]:
        called.append((upstream, tool, arguments))
        return {"content": [{"type": "text", "text": "one"}, {"type": "image"}, {"type": "text", "text": "two"}]}

    arguments = {"url": "{uri}", "b64": "{data}", "kind": "{type}", "ask": "{prompt}", "other": "{x}"}
    settings = DescribeSettings(tool="my-vision__look__at", arguments=arguments, prompt="What? {data}")
    async with open_describer(settings, Media(), call) as describer:
        assert describer is not None
        described = await describer.describe(b"tiff", "image/tiff")
    assert (described.text, described.by) == ("one\ntwo", "my-vision__look__at")
    given = {
        "url": "data:image/png;base64,cGlj",
        "b64": "cGlj",
        "kind": "image/png",
        "ask": "What? {data}",
        "other": "{x}",
    }
    assert called == [("my-vision", "look__at", given)]


async def test_a_tool_that_fails_is_a_failed_description() -> None:
    answers: list[Any] = [
        {"content": [{"type": "text", "text": "no credit"}], "isError": True},
        UpstreamTimeout("vision", "took longer than 30 s"),
    ]

    async def call(upstream: str, tool: str, arguments: Mapping[str, Any]) -> Mapping[str, Any]:
        answer = answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer

    async with open_describer(DescribeSettings(tool="vision__look"), Media(), call) as describer:
        assert describer is not None
        with pytest.raises(MediaError, match="vision__look failed: no credit"):
            await describer.describe(b"", "image/png")
        with pytest.raises(MediaError, match="took longer"):
            await describer.describe(b"", "image/png")


# -- a model ---------------------------------------------------------------------------------------

CHAT = DescribeModel(url="https://api.example/v1", model="see-1", api_key="k3y")
MESSAGES = DescribeModel(api="anthropic_messages", url="https://api.example", model="see-2", api_key="k3y")


def answering(answer: Any, status: int = 200) -> tuple[httpx2.AsyncClient, list[httpx2.Request]]:
    asked: list[httpx2.Request] = []

    def handle(request: httpx2.Request) -> httpx2.Response:
        asked.append(request)
        content = answer if isinstance(answer, bytes) else json.dumps(answer).encode()
        return httpx2.Response(status, content=content)

    return httpx2.AsyncClient(transport=httpx2.MockTransport(handle)), asked


async def test_an_openai_compatible_model_sees_the_picture() -> None:
    client, asked = answering({"choices": [{"message": {"content": "A cat."}}]})
    async with client:
        words = await describe_with_model(client, CHAT, "What is it?", Media(), b"svg", "image/svg+xml")
    (request,) = asked
    assert words == "A cat."
    assert str(request.url) == "https://api.example/v1/chat/completions"
    assert request.headers["authorization"] == "Bearer k3y"
    parts = json.loads(request.content)["messages"][0]["content"]
    assert parts == [
        {"type": "image_url", "image_url": {"url": "data:image/png;base64,cGlj"}},
        {"type": "text", "text": "What is it?"},
    ]


async def test_an_openai_compatible_model_hears_the_sound() -> None:
    client, asked = answering({"choices": [{"message": {"content": [{"type": "text", "text": "A bell."}]}}]})
    async with client:
        assert await describe_with_model(client, CHAT, "?", Media(), b"", "audio/flac") == "A bell."
    part = json.loads(asked[0].content)["messages"][0]["content"][0]
    assert part == {"type": "input_audio", "input_audio": {"data": "c25k", "format": "wav"}}


@pytest.mark.parametrize("url", ["https://api.example", "https://api.example/v1/"])
async def test_anthropic_is_asked_in_its_own_form(url: str) -> None:
    client, asked = answering({"content": [{"type": "text", "text": "A dog."}]})
    settings = MESSAGES.model_copy(update={"url": url})
    async with client:
        assert await describe_with_model(client, settings, "?", Media(), b"", "image/png") == "A dog."
        with pytest.raises(MediaError, match="takes no audio"):
            await describe_with_model(client, settings, "?", Media(), b"", "audio/wav")
    (request,) = asked
    assert str(request.url) == "https://api.example/v1/messages"
    assert (request.headers["x-api-key"], request.headers["anthropic-version"]) == ("k3y", "2023-06-01")
    body = json.loads(request.content)
    assert body["max_tokens"] > 0
    assert body["messages"][0]["content"][0]["source"]["data"] == "cGlj"


@pytest.mark.parametrize(
    ("answer", "status", "cause"),
    [
        ({"error": "no such key"}, 401, "answered 401: .*no such key"),
        ({"choices": []}, 200, "in a form that is not openai_chat"),
        ([], 200, "in a form that is not"),
        (b"<html>", 200, "in a form that is not"),
        (b"x" * 5_000_000, 200, "is too large"),
    ],
)
async def test_a_model_api_that_fails_says_why_and_no_key(answer: Any, status: int, cause: str) -> None:
    client, _ = answering(answer, status)
    async with client:
        with pytest.raises(MediaError, match=cause) as raised:
            await describe_with_model(client, CHAT, "?", Media(), b"", "image/png")
    assert "k3y" not in str(raised.value)


async def test_nothing_describes_unless_it_was_asked_for() -> None:
    async with open_describer(DescribeSettings(), Media(), no_tool) as describer:
        assert describer is None


@pytest.mark.parametrize(
    ("values", "cause"),
    [
        ({"tool": "a__b", "command": ["x"]}, "give one of"),
        ({"tool": "vision"}, "as <upstream>__<tool>"),
        ({"model": {"url": "https://x"}}, "name the model"),
        ({"model": {"url": "ftp://x", "model": "m"}}, "base url"),
    ],
)
def test_settings_that_cannot_be_meant_are_refused(values: dict[str, Any], cause: str) -> None:
    with pytest.raises(ValueError, match=cause):
        DescribeSettings.model_validate(values)
