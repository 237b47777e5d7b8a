import logging
import os
import time
from pathlib import Path

import pytest

from gateway.config.gateway_settings import LoggingSettings
from gateway.config.schema import Settings
from gateway.config.upstream_settings import UpstreamSettings
from gateway.serving.control import log_file
from gateway.serving.control.log_file import (
    LogFile,
    beginning,
    configuration_of,
    last_lines,
    left_logs,
    log_path,
    prune,
)
from gateway.system.runtime_dir import own_folder
from gateway.telemetry import make_formatter


@pytest.fixture
def log(runtime):
    """A logger that writes to a log file, and the file."""
    path = log_path(own_folder(), 7, 1_000.0)
    upstream = UpstreamSettings(url="http://x.example/", headers={"Authorization": "Bearer abc-hidden-def"})
    handler = LogFile(path, make_formatter(Settings(upstreams={"x": upstream})))
    logger = logging.getLogger("gateway.test_log_file")
    logger.propagate = False
    logger.addHandler(handler)
    yield logger, path
    logger.removeHandler(handler)
    handler.close()


def test_it_is_for_its_owner_alone_and_holds_nothing_that_a_terminal_obeys_nor_a_secret(log):
    logger, path = log
    logger.warning("from outside: %s, %s", "\x1b[2J\n2026-01-01T00:00:00.000Z ERROR gateway: forged", "abc-hidden-def")
    try:
        raise ValueError("first\nsecond")
    except ValueError:
        logger.exception("broke")
    lines = path.read_text().splitlines()
    assert "\\x1b[2J" in lines[0]
    assert "hidden" not in path.read_text()
    assert [line for line in lines if line.startswith("2026-01-01")] == []
    assert all(line.startswith("    ") for line in lines[2:])
    if os.name == "posix":
        assert path.stat().st_mode & 0o777 == 0o600


def test_it_grows_within_bounds_and_the_last_lines_are_found_across_its_pieces(log, monkeypatch):
    logger, path = log
    logger.handlers[0].maxBytes = 2_000
    for number in range(200):
        logger.warning("line %d of many", number)
    pieces = sorted(path.parent.glob(f"{path.name}*"))
    assert len(pieces) == 1 + log_file.KEPT_PIECES
    assert all(piece.stat().st_size <= 2_000 for piece in pieces)
    last = last_lines(path, 40)
    assert [line.split()[-3] for line in last] == [str(number) for number in range(160, 200)]
    assert len(last_lines(path, 10_000)) < 100
    assert last_lines(path, 0) == []
    if os.name == "posix":
        assert {piece.stat().st_mode & 0o777 for piece in pieces} == {0o600}


@pytest.mark.parametrize("form", ["text", "json"])
@pytest.mark.parametrize("config", ["/home/me/my, own/mcp-gateway.toml", None])
def test_whose_log_it_is_stands_in_its_first_line_as_long_as_that_is_kept(runtime, form, config):
    path = log_path(own_folder(), 7, 1_000.0)
    handler = LogFile(path, make_formatter(Settings(logging=LoggingSettings(format=form))))
    handler.maxBytes = 2_000
    logger = logging.getLogger("gateway.test_log_file")
    logger.propagate = False
    logger.addHandler(handler)
    try:
        logger.warning("%s", beginning("1.2.3", config and Path(config)))
        logger.warning("another line")
        assert configuration_of(path) == config
        for number in range(20):
            logger.warning("line %d of some", number)
        assert configuration_of(path) == config
        for number in range(200):
            logger.warning("line %d of many", number)
        assert configuration_of(path) is None
    finally:
        logger.removeHandler(handler)
        handler.close()
    assert configuration_of(path.with_name("gone.log")) is None


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="only Linux has a disk that is always full")
def test_a_full_disk_costs_nothing(log):
    logger, path = log
    handler = logger.handlers[0]
    handler.stream.close()
    handler.stream = Path("/dev/full").open("a")  # noqa: SIM115 - closed with the handler
    logger.warning("lost")
    assert path.read_text() == ""


def test_logs_of_gateways_that_ended_are_kept_for_a_while(runtime):
    folder = own_folder()
    for number in range(15):
        path = log_path(folder, number, 1_000.0)
        path.write_text("x")
        path.with_name(path.name + ".1").write_text("older")
        then = time.time() - 60 * number
        os.utime(path, (then, then))
    old = log_path(folder, 99, 1_000.0)
    old.write_text("x")
    os.utime(old, (1, 1))
    in_use = log_path(folder, 14, 1_000.0)
    assert left_logs()[0] == log_path(folder, 0, 1_000.0)
    prune(folder, frozenset({in_use}))
    kept = {path.name for path in folder.glob("*.log")}
    assert kept == {f"{number}-1000.log" for number in (*range(10), 14)}
    assert {path.name for path in folder.glob("*.log.1")} == {f"{name}.1" for name in kept}
