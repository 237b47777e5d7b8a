"""Real servers behind the gateway, and what the models of simulated hosts see of their results."""

import sys
from collections.abc import Callable, Generator, Mapping
from functools import cache
from pathlib import Path
from typing import Any

import anyio
import pytest
from mcp import Client

from gateway.cli.demo.clients import Stdio, StreamableHttp, connected
from gateway.hosts.simulators.hosts import FIRST, SIMULATORS
from gateway.hosts.simulators.seen import Seen
from gateway.hosts.simulators.verdict import judge_seen

pytestmark = pytest.mark.anyio

HOSTS = [host.name for host in FIRST if not host.for_people]
PATIENCE = 60

CASES: dict[str, tuple[str, dict[str, Any]]] = {
    "text and an image": ("everything__get-tiny-image", {}),
    "an annotated image": ("everything__get-annotated-message", {"messageType": "error", "includeImage": True}),
    "links": ("everything__get-resource-links", {"count": 2}),
    "an embedded blob": ("everything__get-resource-reference", {"resourceType": "Blob", "resourceId": 1}),
    "structured content": ("everything__get-structured-content", {"location": "New York"}),
    "a packed file": (
        "everything__gzip-file-as-resource",
        {"name": "a.gz", "data": "data:text/plain;base64,aGVsbG8=", "outputType": "resource"},
    ),
    "an image, and once more as structured content": ("files__read_media_file", {"path": "picture.png"}),
    "a sound, twice": ("files__read_media_file", {"path": "sound.wav"}),
    "a document that is called a stream of bytes": ("files__read_media_file", {"path": "page.pdf"}),
    "a text, twice": ("files__read_text_file", {"path": "notes.txt"}),
    "an error": ("files__read_text_file", {"path": "missing.txt"}),
}


@pytest.fixture(scope="module")
def gateway(served: Any, everything: dict[str, Any], files: dict[str, Any]) -> Generator[str]:
    """The address of a gateway in front of both servers for Node."""
    with served({"everything": everything, "files": files}) as address:
        yield address


def inside(folder: Path, arguments: Mapping[str, Any]) -> dict[str, Any]:
    """The arguments, with paths in `folder`."""
    return {name: str(folder / value) if name == "path" else value for name, value in arguments.items()}


async def asked(url: str, host: str, tool: str, arguments: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """A tool as a host is offered it, and its result."""
    with anyio.fail_after(PATIENCE):
        async with connected(StreamableHttp(url), SIMULATORS[host]) as connection:
            return (await connection.tools())[tool], await connection.call(tool, arguments)


async def asked_each_case(url: str, host: str, folder: Path) -> dict[str, tuple[dict[str, Any], dict[str, Any]]]:
    """By case, a tool as a host is offered it, and its result: all over one connection, as of a host at work."""
    with anyio.fail_after(PATIENCE):
        async with connected(StreamableHttp(url), SIMULATORS[host]) as connection:
            tools = await connection.tools()
            return {
                case: (tools[name], await connection.call(name, inside(folder, given)))
                for case, (name, given) in CASES.items()
            }


@pytest.fixture(scope="module")
def results(gateway: str, folder: Path) -> Callable[[str, str], dict[str, tuple[dict[str, Any], dict[str, Any]]]]:
    """`results(path, host)`: see `asked_each_case`. Each connection has servers of its own, so it is kept for all."""

    @cache
    def of(path: str, host: str) -> dict[str, tuple[dict[str, Any], dict[str, Any]]]:
        return anyio.run(asked_each_case, f"{gateway}{path}", host, folder)

    return of


@pytest.mark.parametrize("host", HOSTS)
@pytest.mark.parametrize("case", CASES)
def test_the_model_of_a_host_sees_all_that_it_can(results: Any, case: str, host: str) -> None:
    _, original = results("/mcp/passthrough", host)[case]
    tool, result = results("/mcp", host)[case]
    assert judge_seen(original, SIMULATORS[host].see(result, tool), SIMULATORS[host]).problems == ()


@pytest.mark.parametrize("host", HOSTS)
async def test_the_model_of_a_host_reads_an_embedded_text(gateway: str, host: str) -> None:
    # It tells the time, so no second result would be equal.
    given = {"resourceType": "Text", "resourceId": 1}
    tool, result = await asked(f"{gateway}/mcp", host, "everything__get-resource-reference", given)
    text = SIMULATORS[host].see(result, tool).text
    assert "demo://resource/dynamic/text/1" in text
    assert "This is a plaintext resource created at" in text


@pytest.mark.parametrize("case", ["text and an image", "an annotated image", "links", "a sound, twice"])
async def test_passing_through_changes_nothing(gateway, everything, files, folder, tmp_path, case) -> None:
    name, given = CASES[case]
    arguments = inside(folder, given)
    upstream, tool = name.split("__")
    server = {"everything": everything, "files": files}[upstream]
    direct = Stdio([server["command"], *server["args"]], {}, tmp_path, sys.stderr)
    with anyio.fail_after(PATIENCE):
        async with connected(direct, SIMULATORS["codex"]) as connection:
            original = await connection.call(tool, arguments)
    _, result = await asked(f"{gateway}/mcp/passthrough", "codex", name, arguments)
    assert result == original


async def test_a_server_is_told_no_variable_of_the_gateway_that_it_does_not_need(gateway: str) -> None:
    _, result = await asked(f"{gateway}/mcp", "codex", "everything__get-env", {})
    [block] = result["content"]
    assert '"PATH"' in block["text"]
    assert "SECRET_OF_THE_GATEWAY" not in block["text"]


@pytest.mark.parametrize("mode", ["legacy", "2026-07-28"])
async def test_the_progress_of_a_server_reaches_the_host(gateway: str, mode: Any) -> None:
    heard: list[tuple[float, float | None]] = []

    async def hear(progress: float, total: float | None, message: str | None) -> None:
        heard.append((progress, total))

    with anyio.fail_after(PATIENCE):
        async with Client(f"{gateway}/mcp", mode=mode) as client:
            tool, steps = "everything__trigger-long-running-operation", {"duration": 0.4, "steps": 4}
            result = await client.call_tool(tool, steps, progress_callback=hear)
    assert not result.is_error
    assert heard == [(step, 4) for step in (1, 2, 3, 4)]


@pytest.fixture(scope="module")
def python_gateway(served: Any, python_server: Any, repository: Path) -> Generator[str]:
    """The address of a gateway in front of both servers for Python, which speak the newest revision."""
    clock = python_server("mcp_server_time", "--local-timezone", "Europe/Berlin")
    git = python_server("mcp_server_git", "--repository", str(repository))
    with served({"clock": clock, "git": git}) as address:
        yield f"{address}/mcp"


@pytest.mark.parametrize("host", ["gemini-cli", "claude-code"])  # a handshake, and none
async def test_the_servers_in_python_answer_hosts_of_both_eras(python_gateway, repository, host) -> None:
    async def seen(name: str, **arguments: str) -> Seen:
        tool, result = await asked(python_gateway, host, name, arguments)
        return SIMULATORS[host].see(result, tool)

    noon = await seen("clock__convert_time", source_timezone="UTC", time="12:00", target_timezone="Asia/Tokyo")
    assert "T21:00:00+09:00" in noon.text
    assert "Count the pears" in (await seen("git__git_log", repo_path=str(repository))).text
    refused = await seen("git__git_log", repo_path="/somewhere/else")
    assert refused.flagged
    assert "/somewhere/else" in refused.text
