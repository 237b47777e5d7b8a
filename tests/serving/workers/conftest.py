"""A gateway of several workers as processes, and hosts of both eras before it."""

import json
import sys
from collections.abc import Callable, Generator
from pathlib import Path

import pytest

from tests.serving.cluster.conftest import ALICE, BOB, SERVERS, Host
from tests.serving.cluster.conftest import host as host
from tests.telemetry.conftest import Serving

Start = Callable[..., Serving]


def write_config(folder: Path, more: str = "") -> Path:
    """Write a configuration with two people, an upstream for each host, and one for all hosts."""
    path = folder / "mcp-gateway.toml"
    servers = "".join(
        f"[upstreams.{name}]\ncommand = {json.dumps(sys.executable)}\n"
        f"args = [{json.dumps(str(SERVERS / 'stateful_stdio.py'))}, '{name}']\n{rest}"
        for name, rest in (("own", ""), ("all", 'session = "shared"\n'))
    )
    people = f'[access.tokens.alice]\ntoken = "{ALICE}"\n[access.tokens.bob]\ntoken = "{BOB}"\n'
    path.write_text(more + people + servers, "utf-8")
    return path


def make_start(folder: Path, running: list[Serving]) -> Start:
    def start(*options: str, more: str = "", workers: int = 2) -> Serving:
        folder.mkdir(exist_ok=True)
        config = write_config(folder, more)
        words = ("--workers", str(workers), *options)
        running.append(Serving(config, *words, MCP_GATEWAY_STATE=str(folder / "state"), XDG_RUNTIME_DIR=str(folder)))
        return running[-1]

    return start


def end_all(running: list[Serving]) -> None:
    for one in running:
        if one.process.poll() is None:
            one.process.terminate()
            one.process.terminate()
            try:
                one.process.wait(30)
            finally:
                one.process.kill()
        print(*one.lines, sep="\n")


@pytest.fixture(scope="module")
def gateway(tmp_path_factory: pytest.TempPathFactory) -> Generator[Serving]:
    """One gateway with two workers, for tests that leave it as it is."""
    running: list[Serving] = []
    yield make_start(tmp_path_factory.mktemp("g"), running)()
    end_all(running)


@pytest.fixture
def start(tmp_path: Path) -> Generator[Start]:
    """Starts gateways; none outlives the test."""
    running: list[Serving] = []
    tmp_path.chmod(0o700)
    yield make_start(tmp_path, running)
    end_all(running)


@pytest.fixture
def scattered(host: Callable[..., Host]) -> Callable[..., Host]:
    """Makes hosts that open a connection for each request, so that any worker may get it."""

    def make(*given: str) -> Host:
        made = host(*given)
        made.headers["Connection"] = "close"
        return made

    return make
