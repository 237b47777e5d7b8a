"""What all tests share: the event loop, golden files, and the programs that some of them need.

A program that is missing means a skipped test on a developer's machine, and a failure where `CI` is true.
"""

import logging
import os
import shutil
import sys
from collections.abc import Callable, Generator
from difflib import unified_diff
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

import pytest
from hypothesis import HealthCheck, settings

if TYPE_CHECKING:
    from tests.servers.postgres_server import PostgresDatabaseOfTest, PostgresServer
    from tests.servers.redis_server import RedisCluster, RedisServer

# No test may depend on how fast the machine is.
settings.register_profile("untimed", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("untimed")

HERE = Path(__file__).parent
ROOT = HERE.parent
LOCKED_NODE = Path(sys.prefix) / "node" / "bin"
CHROMIUM = ("chromium", "chromium-browser", "google-chrome-stable", "google-chrome")
SLOW = {
    "agents": "processes",
    "attack": "attack",
    "benchmarks/fleet": "processes",
    "benchmarks/load/test_load.py": "processes",
    "bridges": "bridges",
    "cli": "processes",
    "conformance": "conformance",
    "content/media": "media",
    "content/provider_files": "processes",
    "content/shaping/test_shaper.py": "media",
    "content/store": "processes",
    "core/model_apis": "media",
    "core/tools/test_check_cost.py": "matrix",
    "docs/test_agents_page.py": "processes",
    "examples": "processes",
    "hosts/simulators/test_model_apis_server.py": "processes",
    "interaction": "bridges",
    "lab": "processes",
    "real": "real",
    "registry": "processes",
    "routing/calibration": "processes",
    "routing/test_end_to_end.py": "processes",
    "runtime": "processes",
    "serving/authorization": "attack",
    "serving/cluster": "processes",
    "serving/console/test_servers.py": "processes",
    "serving/console/test_store.py": "processes",
    "serving/http": "processes",
    "serving/mcp/test_finished_calls.py": "processes",
    "serving/mcp/test_http.py": "processes",
    "serving/mcp/test_stdio.py": "processes",
    "serving/model_proxy": "processes",
    "serving/model_proxy/test_matrix.py": "matrix",
    "serving/model_proxy/test_pictures_put_back.py": "media",
    "serving/model_proxy/test_profile_to_model.py": "matrix",
    "setup": "processes",
    "soak": "soak",
    "telemetry/test_serving.py": "processes",
    "typed": "types",
    "upstream": "processes",
}
"""Tests that take long, by their folder or file. They get the mark of their kind, and `slow`."""


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--update-golden", action="store_true", help="write the golden files, do not compare")


def pytest_configure(config: pytest.Config) -> None:
    if in_ci() and config.getoption("--update-golden"):
        raise pytest.UsageError("--update-golden is for people who look at what it writes, not for CI")
    if gone := [place for place in SLOW if not (HERE / place).exists()]:
        raise pytest.UsageError(f"not in tests, but in the table of slow tests: {', '.join(gone)}")
    # What one test's upstreams said must not be what another's are known for, nor touch the user's own folders.
    os.environ["MCP_GATEWAY_CACHE"] = ""
    os.environ["MCP_GATEWAY_PROFILES"] = ""
    os.environ["MCP_GATEWAY_STATE"] = ""
    # `node` is the locked one for every program that a test starts, whatever else the machine has.
    if LOCKED_NODE.is_dir():
        os.environ["PATH"] = os.pathsep.join([str(LOCKED_NODE), os.environ.get("PATH", os.defpath)])


@cache
def kind_of(path: Path) -> str | None:
    """The kind of the slow tests that are in a file or folder."""
    place = path.relative_to(HERE)
    return next((SLOW[str(part)] for part in (place, *place.parents) if str(part) in SLOW), None)


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Do not even import what `-m "not slow"` leaves out."""
    if config.option.markexpr == "not slow" and collection_path.is_relative_to(HERE) and kind_of(collection_path):
        return True
    return None


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if kind := kind_of(item.path):
            item.add_marker(kind)
            item.add_marker("slow")


def in_ci() -> bool:
    return os.environ.get("CI", "").lower() in ("true", "1")


def missing(what: str, remedy: str) -> NoReturn:
    """Skip the test, or fail it where nothing may be skipped."""
    if in_ci():
        pytest.fail(f"{what} is missing, and CI skips nothing: {remedy}", pytrace=False)
    pytest.skip(f"{what} is missing: {remedy}")


@pytest.fixture(scope="session", name="missing")
def missing_program() -> Callable[[str, str], NoReturn]:
    """What to do without a program or a package: `missing(what, remedy)`."""
    return missing


@pytest.fixture(scope="session")
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture(scope="session", autouse=True)
def no_runtime_folder_of_anybody(tmp_path_factory: pytest.TempPathFactory) -> None:
    """Gateways that tests start are found, and leave their logs, in a folder of the tests."""
    os.environ["XDG_RUNTIME_DIR"] = str(tmp_path_factory.mktemp("run"))


@pytest.fixture(autouse=True)
def uvicorns_log_as_it_was() -> Generator[None]:
    """A server that a test runs in its own process leaves uvicorn's log to the tests after it (`log_config=None`)."""
    before = _uvicorns_log()
    yield
    assert _uvicorns_log() == before


@pytest.fixture(autouse=True)
def environment_as_it_was() -> Generator[None]:
    """A command that a test runs in its own process leaves the environment to the tests after it."""
    before = _environment()
    yield
    after = _environment()
    if after != before:
        os.environ.update(before)
        for name in after.keys() - before.keys():
            del os.environ[name]
    # Names alone: what a variable holds is a secret here and there.
    assert [name for name in before.keys() | after.keys() if before.get(name) != after.get(name)] == []


def _environment() -> dict[str, str]:
    return {name: value for name, value in os.environ.items() if name != "PYTEST_CURRENT_TEST"}


def _uvicorns_log() -> list[tuple[int, bool, bool]]:
    loggers = map(logging.getLogger, ("uvicorn", "uvicorn.error"))
    return [(logger.level, logger.propagate, logger.disabled) for logger in loggers]


@pytest.fixture
def golden(request: pytest.FixtureRequest) -> Callable[[Path, str], None]:
    """Compare text with a golden file; with --update-golden, write it."""
    update = request.config.getoption("--update-golden")

    def compare(path: Path, text: str) -> None:
        if update:
            path.parent.mkdir(parents=True, exist_ok=True)
            if not path.exists() or path.read_text("utf-8") != text:
                path.write_text(text, "utf-8", newline="\n")
            return
        name = str(path.relative_to(ROOT))
        if not path.exists():
            pytest.fail(f"{name} is missing: run pytest --update-golden and look at what it writes", pytrace=False)
        expected = path.read_text("utf-8")
        if text != expected:
            lines = unified_diff(expected.splitlines(), text.splitlines(), name, "now", lineterm="")
            pytest.fail("\n".join(["not what the golden file says:", *lines]), pytrace=False)

    return compare


@pytest.fixture(scope="session")
def node_modules() -> Path:
    """The folder of the npm packages. Their programs are in `.bin`, and run on the locked `node` on the PATH."""
    folder = ROOT / "node_modules"
    if not (folder / ".installed").exists():
        missing("node_modules", "run `make setup` with the npm registry in reach")
    if shutil.which("node") is None:
        missing("node", "run `make setup`, or install Node 22.19 or newer")
    return folder


@pytest.fixture(scope="session")
def chromium() -> str:
    """The path of a Chromium or Chrome."""
    for name in CHROMIUM:
        if path := shutil.which(name):
            return path
    missing("chromium", "install it; on Debian: apt install chromium")


@pytest.fixture(scope="session")
def redis_program() -> str:
    """The path of a Redis server, or of Valkey, which is the same here."""
    for name in ("redis-server", "valkey-server"):
        if path := shutil.which(name):
            return path
    missing("redis-server", "install it; on Debian: apt install redis-server")


@pytest.fixture(scope="session")
def postgres_programs() -> Path:
    """The folder of the programs of a Postgres server. Debian has them outside of the path, by version."""
    folders = sorted(Path("/usr/lib/postgresql").glob("*/bin"), key=lambda one: int(one.parent.name.split(".")[0]))
    if path := shutil.which("initdb"):
        folders.append(Path(path).resolve().parent)
    for folder in reversed(folders):
        if (folder / "initdb").exists() and (folder / "postgres").exists():
            return folder
    missing("a Postgres server", "install it; on Debian: apt install postgresql")


@pytest.fixture
def redis(redis_program: str, tmp_path: Path) -> "Generator[RedisServer]":
    from tests.servers.redis_server import RedisServer

    server = RedisServer(redis_program, tmp_path)
    server.start()
    yield server
    server.stop()


@pytest.fixture
def redis_cluster(redis_program: str, tmp_path: Path) -> "Generator[RedisCluster]":
    from tests.servers.redis_server import RedisCluster

    cluster = RedisCluster(redis_program, tmp_path)
    try:
        cluster.start()
        yield cluster
    finally:
        cluster.stop()


@pytest.fixture(scope="session")
def postgres_server(postgres_programs: Path) -> "Generator[PostgresServer]":
    from tests.servers.postgres_server import PostgresServer

    server = PostgresServer(postgres_programs)
    try:
        server.start()
        yield server
    finally:
        server.remove()


@pytest.fixture
def postgres(postgres_server: "PostgresServer") -> "Generator[PostgresDatabaseOfTest]":
    """An empty database."""
    yield postgres_server.new_database()
    if not postgres_server.is_running:
        postgres_server.start()


@pytest.fixture(scope="session")
def wheelhouse() -> Path:
    """A folder with the wheels of everything that the gateway needs when it runs."""
    folder = Path(sys.prefix) / "wheelhouse"
    if not folder.is_dir():
        missing("the wheelhouse", "run `make setup`, and the tests with .venv/bin/python")
    return folder
