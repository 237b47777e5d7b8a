"""The suite's client scenarios of skills (SEP-2640): the gateway fetches nothing ahead of need, and hides no fault.

Through the gateway, a skill is loaded in two ways: by a host that knows skills and verifies them itself, and by the
gateway's tool for hosts that do not, which verifies them in their place.
"""

from collections.abc import Generator
from pathlib import Path
from typing import Any

import pytest

from tests.conformance.comparing import PASSED
from tests.conformance.suite import EXTENSIONS, SKILL_CLIENT_SCENARIOS, Suite
from tests.conformance.waiting_clients import waiting_clients

pytestmark = pytest.mark.timeout(400)


@pytest.fixture(scope="module")
def suite(node_modules: Path, missing: Any) -> Generator[Suite]:
    if not (node_modules / "@modelcontextprotocol" / "conformance").is_dir():
        missing("the conformance suite", "run `make setup` with the npm registry in reach")
    with waiting_clients() as clients:
        yield Suite.of(node_modules, clients)


@pytest.mark.parametrize("options", [(), ("--through-gateway",)], ids=["directly", "through-the-gateway"])
@pytest.mark.parametrize("scenario", SKILL_CLIENT_SCENARIOS)
def test_a_skill_is_read_when_it_is_loaded_and_refused_if_it_is_not_what_its_entry_says(
    scenario: str, options: tuple[str, ...], suite: Suite
) -> None:
    checks = suite.client(scenario, EXTENSIONS, *options)
    assert [(check.id, check.status, check.message) for check in checks if check.status != PASSED] == []
    assert checks
