"""What the checks of the examples share: starting the real server, and reading what it returns."""

import sys
import traceback
from base64 import b64decode
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager
from io import BytesIO
from pathlib import Path
from typing import Any, cast

import anyio
from anyio.streams.text import TextReceiveStream
from mcp import Client
from mcp_types import AudioContent, CallToolResult, ImageContent, TextContent
from PIL import Image

ROOT = Path(__file__).resolve().parent.parent
"""The folder in which `python -m` finds this package: the clone, or the place of an installed wheel."""

TIME_LIMIT = 120


@asynccontextmanager
async def started(module: str) -> AsyncGenerator[str]:
    """Start `python -m MODULE --port 0` and give its URL; afterwards it is stopped, and must stop in time."""
    command = [sys.executable, "-m", module, "--port", "0"]
    async with await anyio.open_process(command, cwd=ROOT, stdout=None) as process:
        if process.stderr is None:
            raise RuntimeError("the server was started without a pipe for its messages")
        messages = TextReceiveStream(process.stderr)
        heard = ""
        try:
            while "\n" not in heard:
                heard += await messages.receive()
            announced = heard.splitlines()[0]
            if not announced.startswith("listening on "):
                raise AssertionError(f"{module} said {announced!r} instead of where it listens")
            yield announced.removeprefix("listening on ")
        except anyio.EndOfStream:
            raise AssertionError(f"{module} ended at once: {heard}") from None
        finally:
            process.terminate()
            with anyio.CancelScope(shield=True), anyio.fail_after(10):
                await process.wait()


def run(check: Callable[[], Awaitable[None]], name: str) -> None:
    """Run a check within its time limit and say how it went; exit with 1, and a line for each failure, if it failed."""

    async def bounded() -> None:
        with anyio.fail_after(TIME_LIMIT):
            await check()

    failures: list[str] = []
    try:
        anyio.run(bounded)
    # The connection runs in task groups, so an assertion that fails inside it arrives in groups.
    except* AssertionError as group:
        failures = [
            f"{name}: {str(failure) or 'an assertion failed'} ({_place(failure)})" for failure in _leaves(group)
        ]
    if failures:
        sys.exit("\n".join(failures))
    print(f"{name}: all checks passed")


def _leaves(error: BaseException) -> Iterator[BaseException]:
    if isinstance(error, BaseExceptionGroup):
        for inner in cast("BaseExceptionGroup[BaseException]", error).exceptions:
            yield from _leaves(inner)
    else:
        yield error


def _place(error: BaseException) -> str:
    last = traceback.extract_tb(error.__traceback__)[-1]
    return f"{Path(last.filename).name}, line {last.lineno}: {last.line}"


def kinds(result: CallToolResult) -> list[str]:
    """The kinds of the blocks, in order: `text`, `image/png`, `audio/wav`, `resource`, `resource_link`."""
    return [
        block.mime_type if isinstance(block, ImageContent | AudioContent) else block.type for block in result.content
    ]


def words(result: CallToolResult, index: int = 0) -> str:
    """The text of a text block."""
    block = result.content[index]
    assert isinstance(block, TextContent), f"block {index} is {block.type}, not text"
    return block.text


def picture(result: CallToolResult, index: int = 0) -> Image.Image:
    """The picture of an image block, decoded to its last pixel."""
    block = result.content[index]
    assert isinstance(block, ImageContent), f"block {index} is {block.type}, not an image"
    return decoded(b64decode(block.data, validate=True), block.mime_type)


def decoded(file: bytes, media_type: str) -> Image.Image:
    """A picture from its file, which must be of the type that it is said to be."""
    image = Image.open(BytesIO(file))
    assert image.get_format_mimetype() == media_type, f"{media_type} is really {image.get_format_mimetype()}"
    image.load()
    return image


def structured(result: CallToolResult) -> dict[str, Any]:
    """The structured content, which must be an object."""
    found = result.structured_content
    assert isinstance(found, dict), f"the structured content is {found!r}"
    return cast("dict[str, Any]", found)


def near(colour: object, expected: tuple[int, ...], by: int = 6) -> bool:
    """Whether two colours differ by at most `by` in each channel."""
    channels = cast("tuple[int, ...]", colour if isinstance(colour, tuple) else (colour,))
    return all(abs(a - b) <= by for a, b in zip(channels, expected, strict=True))


async def refused(client: Client, tool: str, arguments: dict[str, object], because: str) -> None:
    """Assert that a call is an error result of one text block that contains `because`."""
    result = await client.call_tool(tool, arguments)
    assert result.is_error, f"{tool} took {arguments}"
    assert kinds(result) == ["text"], kinds(result)
    assert because in words(result), f"{tool} said {words(result)!r}, nothing about {because!r}"


async def check_tools(client: Client, expected: set[str]) -> None:
    """Assert that exactly these tools are offered, each described, with described arguments, none of them required."""
    tools = (await client.list_tools()).tools
    assert {tool.name for tool in tools} == expected, sorted(tool.name for tool in tools)
    for tool in tools:
        assert tool.title, f"{tool.name} has no title"
        assert tool.description, f"{tool.name} has no description"
        assert tool.annotations, f"{tool.name} has no annotations"
        assert tool.annotations.read_only_hint, f"{tool.name} is not marked as read-only"
        assert not tool.input_schema.get("required"), f"{tool.name} cannot be called with empty arguments"
        for name, schema in tool.input_schema["properties"].items():
            assert schema.get("description"), f"argument {name} of {tool.name} has no description"
