"""The suite's scenarios of tasks (SEP-2663) find as much through the gateway as directly, with its server."""

import os
import sys
from collections.abc import Generator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from tests.conformance.comparing import PASSED, failures
from tests.conformance.processes import ROOT, gateway, listening
from tests.conformance.suite import TASK_SCENARIOS, Check, Suite

AT_ONCE = 3
"""Scenarios that run side by side: they wait more than they work."""
REVISION = "2026-07-28"

Found = dict[str, list[Check]]

pytestmark = pytest.mark.timeout(400)


@pytest.fixture(scope="module")
def found(node_modules: Path, missing: Any) -> Generator[tuple[Found, Found]]:
    """What each scenario finds directly, and through a gateway."""
    if not (node_modules / "@modelcontextprotocol" / "conformance").is_dir():
        missing("the conformance suite", "run `make setup` with the npm registry in reach")
    suite = Suite.of(node_modules)
    command = [sys.executable, "-m", "tests.conformance.tasks"]
    with listening(command, {**os.environ, "PYTHONPATH": str(ROOT)}) as url, gateway(url) as served:
        yield run(suite, url), run(suite, served)


def run(suite: Suite, url: str) -> Found:
    with ThreadPoolExecutor(AT_ONCE) as pool:
        checks = pool.map(lambda scenario: suite.extension(url, scenario, REVISION), TASK_SCENARIOS)
        return dict(zip(TASK_SCENARIOS, checks, strict=True))


def test_every_scenario_passes_directly(found: tuple[Found, Found]):
    direct, _ = found
    assert [check for checks in direct.values() for check in failures(checks)] == []
    assert sum(check.status == PASSED for checks in direct.values() for check in checks) == 44


@pytest.mark.parametrize("scenario", TASK_SCENARIOS)
def test_as_much_passes_through_the_gateway(found: tuple[Found, Found], scenario: str):
    direct, through = found
    assert [(check.id, check.status, check.message) for check in through[scenario]] == [
        (check.id, check.status, check.message) for check in direct[scenario]
    ]
