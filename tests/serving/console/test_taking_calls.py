"""What is taken along from a call in the console: a test, the result, a tree."""

import json
import subprocess
import sys
from collections.abc import AsyncGenerator, Callable
from pathlib import Path
from typing import Any

import anyio
import pytest

from gateway.config.upstream_settings import UpstreamSettings
from gateway.serving.console.call_test import test_of_call as source_of
from gateway.serving.console.json_tree import DEEPEST, MOST_NODES, tree_of
from tests.serving.console.conftest import SERVERS, Shown, shown

pytestmark = pytest.mark.anyio


@pytest.fixture
async def console() -> AsyncGenerator[Shown]:
    """The console of a gateway with the server of pictures, which is ready."""
    server = {"command": sys.executable, "args": [str(SERVERS / "media_stdio.py")], "env": {"A_TOKEN": "env-secret"}}
    async with shown({"media": server}) as one:
        await one.enter()
        assert await one.gateway.upstreams["media"].ready(60)
        yield one


async def test_a_call_becomes_a_test_that_runs(console: Shown, tmp_path: Path) -> None:
    await console.call("media__picture", note='it\'s "quoted"', password="hunter22")
    call = await console.json("/calls/1")
    source = call["test"]
    assert "TOOL = 'picture'" in source
    assert "hunter22" not in source
    assert "env-secret" not in source
    assert repr(call["compared"]) in source
    (tmp_path / "test_it.py").write_text(source)
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--rootdir", str(tmp_path), "test_it.py"]
    ran = await anyio.to_thread.run_sync(
        lambda: subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=120, check=False)
    )
    assert f"{2 * len(call['compared'])} passed" in ran.stdout, ran.stdout + ran.stderr
    page = (await console.get("/calls/1")).text
    assert 'data-copy="as-test"' in page
    assert "hunter22" not in page


@pytest.mark.parametrize(
    ("tool", "arguments"),
    [
        ("plain", {"a": [1, None, True, 1.5, "\x1b[2J", "\ud800", "\u202e"]}),
        ('"""\nraise SystemExit\n"""', {'"""': "'''"}),
        ("<script>", {}),
        ("{name!r}", {"{x}": "{y}"}),
        ("x" * 10_000, {"a": "y" * 100_000}),
        ("\u0456\n\\", None),
    ],
)
def test_hostile_names_and_arguments_stay_data(tool: str, arguments: Any) -> None:
    over_http = UpstreamSettings(url="https://x.example/?k=v")
    for upstream in (UpstreamSettings(command="run", args=("a", "'\n")), over_http):
        source = source_of(upstream, tool, arguments, ["codex"], ("never",))
        names: dict[str, Any] = {"__name__": "made"}
        exec(compile(source, "made", "exec"), names)
        assert names["TOOL"] == tool
        assert names["ARGUMENTS"] == ({} if len(str(arguments)) > 20_000 else arguments or {})
        assert "k=v" not in source
        assert sum(name.startswith("test_") for name in names) == 2


def test_secrets_are_not_in_the_test() -> None:
    upstream = UpstreamSettings(command="run", args=("--key", "s3cret"))
    assert "s3cret" not in source_of(upstream, "x", {}, ["codex"], ("s3cret",))


async def test_the_result_is_saved_as_it_came(console: Shown) -> None:
    await console.call("media__both")
    answer = await console.get("/api/calls/1/result")
    assert answer.headers["content-disposition"] == 'attachment; filename="call-1.json"'
    result = answer.json()
    assert (result["structuredContent"], result["content"][1]["type"]) == ({"n": 1}, "image")
    for path in ("/api/calls/2/result", "/api/calls/99999999999999999999/result"):
        assert (await console.get(path)).status_code == 404


async def test_structured_content_is_shown_as_a_tree(scripted: Callable[[dict[str, Any]], dict[str, Any]]) -> None:
    hostile = {"<script>x</script>": ["<img src=x>", {"\u202e": None}], "big": 10**30}
    result = {"content": [{"type": "text", "text": "x"}], "structuredContent": hostile}
    script = {"tools": [{"name": "t", "inputSchema": {"type": "object"}}], "results": {"t": result}}
    async with shown({"s": scripted(script)}) as one:
        await one.enter()
        assert await one.gateway.upstreams["s"].ready(60)
        await one.call("s__t")
        part = (await one.json("/calls/1"))["parts"][1]
        assert (part["tree"]["count"], part["tree"]["children"][0]["form"]) == (2, "[]")
        page = (await one.get("/calls/1")).text
        assert "As a tree" in page
        assert "<script>x" not in page
        assert "<img src=x" not in page


async def test_a_tool_without_its_output_schema_is_not_blamed_for_it(console: Shown) -> None:
    await console.call("media__both")
    for host in ("claude-code", "claude-desktop"):
        seen = await console.json(f"/calls/1/seen/{host}")
        assert (seen["through"]["problems"], seen["through"]["tone"] in ("good", "kept")) == ([], True)


def test_trees_are_bounded() -> None:
    wide = tree_of({str(number): "x" * 1_000 for number in range(10_000)})
    assert wide is not None
    assert (wide["count"], len(wide["children"]) + wide["more"]) == (10_000, 10_000)
    assert len(wide["children"]) <= MOST_NODES
    assert len(json.dumps(wide)) < 200_000
    deep: Any = 1
    for _ in range(500):
        deep = [deep]
    node, depth = tree_of(deep), 0
    while node is not None and node.get("children"):
        node, depth = node["children"][0], depth + 1
    assert depth <= DEEPEST
    assert tree_of("text") is None
    assert tree_of([True, None, 1.5, float("nan"), 10**5_000]) is not None
