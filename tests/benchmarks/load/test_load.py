"""The load tool against real gateways, in small; what it prints; and what it says of servers that refuse."""

import asyncio
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from benchmarks.calls.driver import Address, HttpClient, Refused
from benchmarks.calls.processes import raw_upstream, running
from benchmarks.calls.wire import Era
from benchmarks.load.hosts import LoadHost, Target, close_hosts, open_hosts, run_hosts
from benchmarks.load.measured import Answers, Costs, Stage
from benchmarks.load.pattern import Behaviour
from benchmarks.load.report import filled, run_text, stages_table
from benchmarks.load.run import SETTING, Found, Options, a_gateway, run

pytestmark = pytest.mark.anyio
ROOT = Path(__file__).parents[3]
ABOUT = ["a run of a test"]


@pytest.mark.skipif(sys.platform != "linux", reason="memory is read from /proc")
async def test_a_tiny_run_has_every_figure(tmp_path: Path) -> None:
    tiny = Options(hosts=6, at_once=4, calls=24, seconds=1.0, upstreams=2, levels=(0.1,))
    found = await run(tiny, tmp_path)
    assert found.throughput > 10
    assert {cost.kind for cost in found.costs.kinds} == set(tiny.kinds)
    assert found.costs.of("photo").cpu > found.costs.of("text").cpu
    assert found.costs.of("photo").media_cpu > 0
    assert found.costs.idle_bytes > 30_000_000
    (stage,) = found.stages
    assert stage.answers.count > 0
    assert (stage.answers.refused, stage.answers.failed) == (0, {})
    assert 0 <= found.others <= 1
    assert stage.use is not None
    assert stage.use.peak_bytes > 30_000_000
    text = run_text(found, ABOUT)
    for title in ("What one core carries", "Hosts as they arrive", "A million calls", "100,000 hosts"):
        assert f"### {title}" in text or title in text
    page = filled("before\n<!-- load:begin (written by make load) -->\nold\n<!-- load:end -->\nafter\n", text)
    assert page.startswith("before\n")
    assert page.endswith("<!-- load:end -->\nafter\n")
    assert "old" not in page


async def test_gateways_that_run_already_share_the_hosts(tmp_path: Path) -> None:
    async with (
        raw_upstream(tmp_path) as upstream,
        running(a_gateway(1), SETTING, upstream, tmp_path) as one,
        running(a_gateway(2), SETTING, upstream, tmp_path) as other,
    ):
        urls = [f"http://127.0.0.1:{gateway.port}/mcp" for gateway in (one, other)]
        command = [sys.executable, "-m", "benchmarks.load", "--url", *urls[:1], "--tool", "u0__text", "--rate", "40"]
        command += ["--hosts", "8", "--seconds", "2", "--arguments", json.dumps({"note": "x"})]
        process = await asyncio.create_subprocess_exec(
            *command, cwd=ROOT, stdout=asyncio.subprocess.PIPE, env={**os.environ, "MCP_GATEWAY_TOKEN": "unused"}
        )
        said, _ = await process.communicate()
        assert process.returncode == 0, said
        assert b"| 40 calls/s |" in said
        hosts = await open_hosts(4, [Target.of_url(url) for url in urls], Behaviour(0.05, {"text": 1.0}), 2)
        answers = await run_hosts(hosts, 1.0)
        await close_hosts(hosts)
    assert answers.count > 4
    assert not answers.failed


def test_what_is_not_a_url_is_refused_in_words() -> None:
    command = [sys.executable, "-m", "benchmarks.load", "--url", "gateway"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 2
    assert "'gateway' is not the URL of a gateway" in done.stderr
    assert Target.of_url("https://gateway.example.com/x/mcp", "secret").at[:2] == ("gateway.example.com", 443)


async def test_a_host_that_is_refused_comes_back_when_it_was_told_to() -> None:
    asked = list[float]()

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = await reader.readuntil(b"\r\n\r\n")
        length = int(head.lower().split(b"content-length: ")[1].split(b"\r\n")[0])
        await reader.readexactly(length)
        asked.append(asyncio.get_running_loop().time())
        if len(asked) == 1:
            writer.write(b"HTTP/1.1 503 Full\r\nretry-after: 1\r\ncontent-length: 4\r\nconnection: close\r\n\r\nfull")
        else:
            body = b'{"jsonrpc":"2.0","id":1,"result":{"content":[]}}'
            writer.write(b"HTTP/1.1 200 OK\r\ncontent-length: %d\r\n\r\n%s" % (len(body), body))
        await writer.drain()
        writer.close()

    server = await asyncio.start_server(answer, "127.0.0.1", 0)
    async with server:
        at = Address(port=server.sockets[0].getsockname()[1])
        host = LoadHost(0, Target(at), Behaviour(1.0), asyncio.Semaphore(1))
        host.client.names = ["text"]
        answers = Answers()
        await host._ask("text", answers)
        await host.close()
        assert (answers.count, answers.refused) == (1, 1)
        assert asked[1] - asked[0] >= 1.0
        assert answers.all()[0] >= 1.0  # the wait is part of the time
        asked.clear()
        with pytest.raises(Refused) as refused:
            await HttpClient(Era.STATELESS, at, "/mcp").list_tools()
        assert refused.value.retry_after == 1.0


def test_a_stage_without_a_process_has_no_figures_of_one() -> None:
    answers = Answers()
    answers.served("text", 0.0123)
    stage = Stage("20 calls/s", 10, 20.0, 2.0, answers, None)
    row = stages_table([stage]).splitlines()[-1]
    assert row.startswith("| 20 calls/s | 20 | 0 | 0 | 0 | 12.3 ms | 12.3 ms | 12.3 ms | 12.3 ms | – |")
    assert "100,000" not in row
    assert Found(Costs((), 1, 1, 1), 1.0, (stage,)).stages == (stage,)
