"""Real clients, each listing the tools and calling one whose picture must arrive, over every transport they have."""

import base64
import io
import sys
from collections.abc import Callable, Generator
from pathlib import Path
from typing import Any

import pytest
from PIL import Image

TOOL = "files__read_media_file"
MODERN, HANDSHAKE = "2026-07-28", "2025-11-25"

# Client, transport, how it is told to open, and the revision that comes of it where the client tells.
CASES = [
    ("python_sdk", "stdio", "auto", MODERN),
    ("python_sdk", "stdio", "legacy", HANDSHAKE),
    ("python_sdk", "stdio", MODERN, MODERN),
    ("python_sdk", "http", "auto", MODERN),
    ("python_sdk", "http", "legacy", HANDSHAKE),
    ("python_sdk", "http", MODERN, MODERN),
    ("python_sdk", "sse", "legacy", HANDSHAKE),
    ("typescript_sdk", "stdio", "auto", MODERN),
    ("typescript_sdk", "stdio", "legacy", HANDSHAKE),
    ("typescript_sdk", "stdio", MODERN, MODERN),
    ("typescript_sdk", "http", "auto", MODERN),
    ("typescript_sdk", "http", "legacy", HANDSHAKE),
    ("typescript_sdk", "http", MODERN, MODERN),
    ("typescript_sdk", "sse", "legacy", HANDSHAKE),
    ("inspector", "stdio", "legacy", None),
    ("inspector", "http", MODERN, None),
    ("inspector", "sse", "legacy", None),
    ("fastmcp", "stdio", "auto", MODERN),
    ("fastmcp", "http", "auto", MODERN),
    ("fastmcp", "sse", "auto", HANDSHAKE),
    ("ai_sdk", "stdio", "auto", MODERN),
    ("ai_sdk", "http", "auto", MODERN),
    ("ai_sdk", "sse", "auto", HANDSHAKE),
    ("langchain", "stdio", "auto", None),
    ("langchain", "http", "auto", None),
    ("langchain", "sse", "auto", None),
    ("pydantic_ai", "stdio", "auto", None),
    ("pydantic_ai", "http", "auto", None),
    ("pydantic_ai", "sse", "auto", None),
    ("openai_agents", "stdio", "auto", None),
    ("openai_agents", "http", "auto", None),
    ("openai_agents", "sse", "auto", None),
]


@pytest.fixture(scope="module")
def command(on_stdio: Any, files: dict[str, Any]) -> list[str]:
    """How to start a gateway on stdio."""
    return on_stdio({"files": files})


@pytest.fixture(scope="module")
def gateway(served: Any, files: dict[str, Any]) -> Generator[str]:
    """The address of a gateway over HTTP."""
    with served({"files": files}) as address:
        yield address


@pytest.fixture
def job(request: pytest.FixtureRequest, folder: Path) -> Callable[[str], dict[str, Any]]:
    """The job of reading the picture over a transport."""

    def make(transport: str) -> dict[str, Any]:
        if transport == "stdio":
            place = {"command": request.getfixturevalue("command")}
        else:
            place = {"url": request.getfixturevalue("gateway") + {"http": "/mcp", "sse": "/sse"}[transport]}
        return {"transport": transport, "tool": TOOL, "arguments": {"path": str(folder / "picture.png")}, **place}

    return make


def check(outcome: Any, folder: Path) -> None:
    """The tools are there, and the picture, to the pixel, once: the server sends it twice."""
    assert TOOL in outcome.tools
    [(media_type, data)] = outcome.images
    arrived, sent = Image.open(io.BytesIO(base64.b64decode(data))), Image.open(folder / "picture.png")
    assert (media_type, arrived.format, arrived.size) == ("image/png", "PNG", sent.size)
    assert arrived.convert("RGB").tobytes() == sent.convert("RGB").tobytes()
    assert not any(data[:40] in text for text in outcome.texts)


@pytest.mark.parametrize(("client", "transport", "mode", "revision"), CASES)
def test_a_client_lists_the_tools_and_gets_a_picture(run, job, folder, client, transport, mode, revision) -> None:
    outcome = run(client, mode=mode, **job(transport))
    check(outcome, folder)
    assert outcome.revision == revision


def test_the_ai_sdk_survives_a_gateway_that_starts_after_its_patience_has_ended(run, job, folder) -> None:
    # It waits one second for the answer to server/discover, then sends initialize; both are read at once.
    late = job("stdio")
    late["command"] = [sys.executable, str(Path(__file__).parent / "late_start.py"), *late["command"]]
    outcome = run("ai_sdk", **late)
    check(outcome, folder)
    assert outcome.revision == HANDSHAKE
