"""A launcher that installs is left to it, and never cut short: real processes, and npm's own npx where it is there."""

import json
import os
import re
import shlex
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import anyio
import anyio.to_thread
import pytest

from gateway.config.upstream_settings import Timeouts, UpstreamSettings
from gateway.errors import UpstreamUnavailable
from gateway.upstream import Catalogues, Upstream, Upstreams, UpstreamState
from gateway.upstream.connection import first_start
from gateway.upstream.transports.platforms import Work

pytestmark = [pytest.mark.anyio, pytest.mark.skipif(sys.platform == "win32", reason="a script with a #! line")]

ROOT = Path(__file__).parents[3]
FAKE = ROOT / "tests" / "servers" / "fake_npx.py"
NODE = ROOT / ".venv" / "node"
PATIENCE = 60


class Cache:
    """The folder that the stand-in for npx installs into, and what it has written there."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        folder.mkdir()
        programs = folder.parent / "programs"
        programs.mkdir()
        npx = programs / "npx"
        npx.write_text(f'#!/bin/sh\nexec {shlex.quote(sys.executable)} {shlex.quote(str(FAKE))} "$@"\n')
        npx.chmod(0o755)
        self.env = {"FAKE_CACHE": str(folder), "PATH": f"{programs}:{os.environ['PATH']}"}

    def npx(self, name: str, **timeouts: float) -> UpstreamSettings:
        limits = Timeouts(**{"start": 1.0, "call": 30.0, "idle": 30.0, **timeouts})
        return UpstreamSettings(command="npx", args=("-y", name), env=self.env, timeout=limits)

    def put(self, *names: str) -> None:
        for name in names:
            (self.folder / name).touch()

    def has(self, name: str) -> bool:
        return (self.folder / name).exists()

    @property
    def log(self) -> list[str]:
        path = self.folder / "log"
        return path.read_text().splitlines() if path.exists() else []

    async def says(self, line: str) -> None:
        with anyio.fail_after(PATIENCE):
            while line not in self.log:  # noqa: ASYNC110 - a file that another process writes
                await anyio.sleep(0.02)

    async def begun(self, count: int) -> None:
        with anyio.fail_after(PATIENCE):
            while sum(line.startswith("begins ") for line in self.log) < count:  # noqa: ASYNC110 - the same
                await anyio.sleep(0.02)


@pytest.fixture
def cache(tmp_path: Path) -> Cache:
    return Cache(tmp_path / "cache")


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """What takes a minute in earnest takes two seconds."""
    monkeypatch.setattr(first_start, "SHOWN_FIRST", 0.2)
    monkeypatch.setattr(first_start, "SHOWN", 0.2)
    monkeypatch.setattr(first_start, "PERIOD", 0.1)


def opened(changes: Any, catalogues: Catalogues | None = None, **settings: Any) -> Upstreams:
    return Upstreams(settings, on_change=changes, catalogues=catalogues)


async def until(changes: Any, condition: Callable[[], bool]) -> None:
    with anyio.fail_after(PATIENCE):
        await changes.until(condition)


async def outlasts_its_start_limit(upstream: Upstream) -> None:
    """Two calls in a row wait for it, each as long as an ordinary upstream would be given to start."""
    for _ in range(2):
        with pytest.raises(UpstreamUnavailable, match=r"is still (?:start|install)ing"):
            await upstream.request("tools/list", {}, timeout=upstream.settings.timeout)


@pytest.mark.usefixtures("quick")
async def test_an_installation_outlasts_the_limit_on_a_start_and_is_called_one(cache: Cache, changes: Any) -> None:
    async with opened(changes, slow=cache.npx("slow")) as upstreams:
        slow = upstreams["slow"]
        await cache.says("begins slow")
        await until(changes, lambda: slow.state is UpstreamState.INSTALLING)
        assert slow.cause == "npx may have to install it first"
        await outlasts_its_start_limit(slow)
        assert slow.state is UpstreamState.INSTALLING
        with pytest.raises(UpstreamUnavailable, match=r"is still installing: npx may have to install it first \(try"):
            await slow.request("tools/list", {}, timeout=slow.settings.timeout)
        cache.put("slow.go")
        await until(changes, lambda: slow.state is UpstreamState.READY)
        assert slow.tools()
        assert cache.log == ["begins slow", "installed slow"]


@pytest.mark.usefixtures("quick")
async def test_a_newer_version_of_one_that_is_known_is_installed_as_patiently(
    cache: Cache, changes: Any, tmp_path: Path
) -> None:
    catalogues = Catalogues(tmp_path / "catalogues")
    cache.put("slow.installed")
    async with opened(changes, catalogues, slow=cache.npx("slow", start=30.0)) as upstreams:
        await until(changes, lambda: upstreams["slow"].state is UpstreamState.READY)
    (cache.folder / "slow.installed").unlink()
    async with opened(changes, catalogues, slow=cache.npx("slow")) as upstreams:
        await cache.says("begins slow")
        await outlasts_its_start_limit(upstreams["slow"])
        cache.put("slow.go")
        await until(changes, lambda: upstreams["slow"].state is UpstreamState.READY)
    assert cache.log == ["begins slow", "installed slow"]


@pytest.mark.usefixtures("quick")
async def test_a_launcher_that_does_nothing_is_given_up_but_not_cut_short(
    cache: Cache, changes: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(first_start, "QUIET_FIRST", 2.0)
    cache.put("slow.silent")
    async with opened(changes, slow=cache.npx("slow")) as upstreams:
        slow = upstreams["slow"]
        await until(changes, lambda: slow.state is UpstreamState.FAILED)
        assert slow.cause is not None
        assert slow.cause.startswith("was not ready within ")
        assert cache.log[:3] == ["begins slow", "asked slow", "rolled back slow"]


def says_and_then(line: str, *then: str) -> UpstreamSettings:
    """A shell that prints a line on stderr, and then runs these commands."""
    return UpstreamSettings(
        command="sh", args=("-c", "; ".join((f"echo {shlex.quote(line)} >&2", *then))), timeout=Timeouts(start=60.0)
    )


SERVES_HTTP = "MCP server listening on http://localhost:3001/mcp"
RAW_SERVER = f"exec {shlex.quote(sys.executable)} {shlex.quote(str(ROOT / 'tests' / 'servers' / 'raw_stdio.py'))}"


@pytest.mark.usefixtures("quick")
async def test_a_program_that_serves_http_instead_is_given_up_long_before_its_limit(
    changes: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(first_start, "HTTP_GRACE", 1.0)
    web = says_and_then(SERVES_HTTP, "exec sleep 600")
    with anyio.fail_after(50):  # less than its limit
        async with opened(changes, web=web) as upstreams:
            await until(changes, lambda: upstreams["web"].state is UpstreamState.FAILED)
            assert upstreams["web"].cause is not None
            assert f"{SERVES_HTTP} (it serves HTTP: give it its option for stdio" in upstreams["web"].cause


@pytest.mark.usefixtures("quick")
async def test_a_launched_program_that_serves_http_is_given_up_and_ended_at_once(
    cache: Cache, changes: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(first_start, "HTTP_GRACE", 1.0)
    npx = cache.folder.parent / "programs" / "npx"
    # It ignores what an installer is given ten seconds to heed.
    npx.write_text(f"#!/bin/sh\ntrap '' TERM\necho {shlex.quote(SERVES_HTTP)}\nexec sleep 600\n")
    with anyio.fail_after(50):
        async with opened(changes, web=cache.npx("web", start=60.0)) as upstreams:
            await until(changes, lambda: upstreams["web"].state is UpstreamState.FAILED)
            cause = upstreams["web"].cause
    assert cause is not None
    within = re.match(r"was not ready within ([\d.]+) s; it printed 1 line", cause)
    assert within is not None
    assert float(within[1]) < 50


@pytest.mark.usefixtures("quick")
async def test_a_server_with_a_second_port_that_answers_on_stdio_a_little_later_is_used(changes: Any) -> None:
    async with opened(changes, both=says_and_then(SERVES_HTTP, "sleep 1", RAW_SERVER)) as upstreams:
        await until(changes, lambda: upstreams["both"].state is UpstreamState.READY)


@pytest.mark.usefixtures("quick")
async def test_a_server_with_a_second_port_that_is_at_work_is_waited_for(
    changes: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(first_start, "HTTP_GRACE", 2.0)
    works = f"{shlex.quote(sys.executable)} -c 'import time\\ns = time.time()\\nwhile time.time() < s + 5: pass'"
    async with opened(changes, both=says_and_then(SERVES_HTTP, works, RAW_SERVER)) as upstreams:
        await until(changes, lambda: upstreams["both"].state is UpstreamState.READY)


async def test_timeout_install_is_the_limit_on_work_too(cache: Cache, changes: Any) -> None:
    async with opened(changes, slow=cache.npx("slow", install=2.0)) as upstreams:
        await until(changes, lambda: upstreams["slow"].state is UpstreamState.FAILED)
        assert upstreams["slow"].cause == "was not ready within 2 s (raise timeout.install if it is only slow)"


async def test_what_is_left_while_it_installs_takes_back_what_it_has_half_done(cache: Cache, changes: Any) -> None:
    async with opened(changes, slow=cache.npx("slow")):
        await cache.says("begins slow")
    assert cache.log == ["begins slow", "asked slow", "rolled back slow"]
    assert not cache.has("slow.lock")


GATEWAY = """
import anyio, json, sys
from gateway.config.schema import Settings
from gateway.upstream import Upstreams

async def run():
    settings = Settings.model_validate(json.loads(sys.argv[1]))
    async with Upstreams(settings.upstreams, on_change=lambda *_: None):
        await anyio.to_thread.run_sync(sys.stdin.readline)

anyio.run(run)
"""


@pytest.mark.parametrize("asked_first", [False, True])
async def test_a_gateway_that_is_killed_meanwhile_leaves_it_as_much_time(cache: Cache, asked_first: bool) -> None:
    settings = json.dumps({"upstreams": {"slow": cache.npx("slow").model_dump(mode="json")}})
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    async with await anyio.open_process([sys.executable, "-c", GATEWAY, settings], env=environment) as gateway:
        await cache.says("begins slow")
        if asked_first:
            assert gateway.stdin is not None
            await gateway.stdin.send(b"\n")
            await cache.says("asked slow")
        gateway.send_signal(signal.SIGKILL)
    await cache.says("rolled back slow")
    assert cache.log == ["begins slow", "asked slow", "rolled back slow"]


@pytest.fixture
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """A busy machine may show no sign of an installation for seconds, and the next one would begin."""
    monkeypatch.setattr(first_start, "TURN_QUIET", PATIENCE)


@pytest.mark.usefixtures("patient")
async def test_first_starts_of_one_launcher_install_one_after_another(cache: Cache, changes: Any) -> None:
    names = ["a", "b", "c", "d"]
    cache.put(*(f"{name}.silent" for name in names))  # with children, they would seem to have started their servers
    settings: dict[str, Any] = {name: cache.npx(name, start=30.0) for name in names}
    async with opened(changes, **settings) as upstreams:
        for count in range(len(names)):
            await cache.begun(count + 1)
            begun = [line.removeprefix("begins ") for line in cache.log if line.startswith("begins ")]
            for name in names:
                if name not in begun:
                    await until(changes, lambda name=name: upstreams[name].cause == "waits for its turn (npx)")
                    assert upstreams[name].state is UpstreamState.STARTING
            cache.put(f"{begun[-1]}.go")
        for name in names:
            await until(changes, lambda name=name: upstreams[name].state is UpstreamState.READY)
    assert [line.split()[0] for line in cache.log] == ["begins", "installed"] * len(names)
    assert [line.split()[1] for line in cache.log[::2]] == [line.split()[1] for line in cache.log[1::2]]


@pytest.mark.usefixtures("patient")
async def test_one_that_has_failed_says_so_while_it_waits_for_its_turn_again(cache: Cache, changes: Any) -> None:
    cache.put("bad.lock", "slow.silent")  # with a child, it would seem to have started its server
    settings = {name: cache.npx(name, start=30.0) for name in ("bad", "slow")}
    async with opened(changes, bad=settings["bad"]) as upstreams:
        bad, why = upstreams["bad"], "exited with code 1: npm error ENOTEMPTY: directory not empty"
        await until(changes, lambda: bad.failure is not None)
        upstreams.apply(settings)  # of two that begin together, either may get the first turn
        turn = "; it is tried again when its turn comes (npx)"
        await until(changes, lambda: bad.failure is not None and bad.failure.message == f"{why}{turn}")
        assert bad.state is UpstreamState.FAILED
        assert not bad.is_queued
        assert await bad.ready(0) is False
        assert upstreams["slow"].state.is_pending
        (cache.folder / "bad.lock").unlink()
        cache.put("slow.go", "bad.go")
        await until(changes, lambda: bad.state is UpstreamState.READY)
        assert bad.failure is None


@pytest.mark.usefixtures("quick")
async def test_one_that_has_failed_says_so_while_it_is_installed_again(cache: Cache, changes: Any) -> None:
    cache.put("bad.lock")
    async with opened(changes, bad=cache.npx("bad", start=30.0)) as upstreams:
        bad = upstreams["bad"]
        await until(changes, lambda: bad.state is UpstreamState.FAILED)
        (cache.folder / "bad.lock").unlink()
        doing = "it is being tried again: npx may have to install it first"
        await until(changes, lambda: bad.failure is not None and bad.failure.message.endswith(doing))
        assert bad.state is UpstreamState.FAILED
        cache.put("bad.go")
        await until(changes, lambda: bad.state is UpstreamState.READY)


async def test_one_whose_server_has_started_is_not_waited_for(cache: Cache, changes: Any) -> None:
    cache.put("a.installed", "a.mute", "b.installed")
    async with opened(changes, a=cache.npx("a", start=600.0), b=cache.npx("b", start=600.0)) as upstreams:
        await until(changes, lambda: upstreams["b"].state is UpstreamState.READY)
        assert upstreams["a"].state.is_pending


class _Launched:
    """A launcher at work, with so many processes."""

    printed = 0
    serves_http = False

    def __init__(self, processes: int) -> None:
        self._processes = processes

    def work(self) -> Work:
        return Work(processes=self._processes)


@pytest.mark.usefixtures("quick")
@pytest.mark.parametrize(("processes", "said"), [(1, ["npx"]), (2, [])])
async def test_what_was_started_before_is_said_to_be_installed_only_while_its_launcher_is_alone(
    processes: int, said: list[str]
) -> None:
    limit, found = first_start.StartLimit(UpstreamSettings(command="npx", args=("-y", "known"))), list[str]()
    with anyio.CancelScope() as scope:
        limit.begin(scope)
        async with limit.kept(scope, _Launched(processes), lambda launcher: found.append(launcher.name)):
            await anyio.sleep(2)
    assert found == said


async def test_one_that_is_known_takes_no_turn(cache: Cache, changes: Any, tmp_path: Path) -> None:
    catalogues = Catalogues(tmp_path / "catalogues")
    cache.put("known.installed")
    async with opened(changes, catalogues, known=cache.npx("known", start=30.0)) as upstreams:
        await until(changes, lambda: upstreams["known"].state is UpstreamState.READY)
    new, known = cache.npx("new", start=600.0), cache.npx("known", start=30.0)
    async with opened(changes, catalogues, new=new, known=known) as upstreams:
        await until(changes, lambda: upstreams["known"].state is UpstreamState.READY)
        assert upstreams["new"].state.is_pending
        cache.put("new.go")
        await until(changes, lambda: upstreams["new"].state is UpstreamState.READY)


@pytest.mark.usefixtures("patient")
async def test_one_that_waits_for_its_turn_can_be_left(cache: Cache, changes: Any) -> None:
    async with opened(changes, a=cache.npx("a"), b=cache.npx("b")):
        await cache.begun(1)
    (_, first), *_ = (line.split() for line in cache.log)  # either may have come first
    assert cache.log == [f"begins {first}", f"asked {first}", f"rolled back {first}"]


SERVER = """#!/usr/bin/env node
const lines = require("node:readline").createInterface({ input: process.stdin });
const results = {
  initialize: (params) => ({
    protocolVersion: params.protocolVersion, capabilities: { tools: {} }, serverInfo: { name: "local", version: "1" },
  }),
  "tools/list": () => ({ tools: [{ name: "hello", inputSchema: { type: "object" } }] }),
};
lines.on("line", (line) => {
  const { id, method, params } = JSON.parse(line);
  if (id === undefined) return;
  const answer = results[method] ? { result: results[method](params) } : { error: { code: -32601, message: method } };
  console.log(JSON.stringify({ jsonrpc: "2.0", id, ...answer }));
});
"""


NPX = NODE / "lib" / "node_modules" / "npm" / "bin" / "npx-cli.js"


@pytest.mark.skipif(not NPX.exists(), reason="npm is not installed: make setup")
async def test_npx_itself_installs_and_starts_what_is_in_a_folder(changes: Any, tmp_path: Path) -> None:
    programs = tmp_path / "programs"
    programs.mkdir()
    (programs / "npx").write_text(f'#!/bin/sh\nexec node {shlex.quote(str(NPX))} "$@"\n')
    (programs / "npx").chmod(0o755)

    def package(name: str) -> UpstreamSettings:
        folder = tmp_path / name
        folder.mkdir()
        (folder / "package.json").write_text(json.dumps({"name": name, "version": "1.0.0", "bin": "server.js"}))
        (folder / "server.js").write_text(SERVER)
        (folder / "server.js").chmod(0o755)
        env = {
            "PATH": f"{programs}:{NODE / 'bin'}:{os.environ['PATH']}",
            "HOME": str(tmp_path),
            "npm_config_cache": str(tmp_path / "npm"),
            "npm_config_offline": "true",
            "npm_config_update_notifier": "false",
        }
        return UpstreamSettings(command="npx", args=("-y", f"file:{folder}"), env=env, cwd=tmp_path)

    names = ["one", "two", "three"]
    settings: dict[str, Any] = {name: package(name) for name in names}
    async with opened(changes, **settings) as upstreams:
        assert await upstreams.settled(PATIENCE)
        found = {name: [tool["name"] for tool in upstreams[name].tools()] for name in names}
        assert found == {name: ["hello"] for name in names}, [upstreams[name].cause for name in names]
