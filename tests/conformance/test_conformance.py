"""The official conformance suite finds as much through the gateway as directly; `make conformance` writes the page."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.conformance import comparing

ROOT = Path(__file__).parents[2]
PATIENCE = 900
"""Seconds for everything; about 160 on two cores."""

pytestmark = pytest.mark.timeout(PATIENCE + 60)


@pytest.fixture(scope="module")
def found(node_modules: Path, tmp_path_factory: pytest.TempPathFactory, missing: Any) -> dict[str, Any]:
    """What `run.py` finds: every scenario, in both eras, directly and through a gateway."""
    if not (node_modules / "@modelcontextprotocol" / "conformance").is_dir():
        missing("the conformance suite", "run `make setup` with the npm registry in reach")
    path = tmp_path_factory.mktemp("conformance") / "found.json"
    command = [sys.executable, "-m", "tests.conformance.run", "--json", str(path)]
    done = subprocess.run(
        command, capture_output=True, text=True, encoding="utf-8", timeout=PATIENCE, check=False, cwd=ROOT
    )
    assert path.exists(), f"{done.stdout[-3000:]}\n{done.stderr[-3000:]}"
    return json.loads(path.read_text("utf-8"))


def test_the_upstream_passes_every_scenario_when_it_is_asked_directly(found) -> None:
    assert found["unsound"] == []
    both = {each["era"]: each for each in found["server"] if each["title"] == "both eras"}
    assert {era: (each["scenarios"], each["direct"]) for era, each in both.items()} == {
        "2025-11-25": (36, 127),
        "2026-07-28": (43, 197),
    }


def test_nothing_is_lost_through_the_gateway(found) -> None:
    assert not found["lost"], "\n".join(["lost:", *found["lost"]])


def test_the_page_says_what_was_found(found) -> None:
    assert (ROOT / "docs" / "conformance.md").read_text("utf-8") == found["page"], "run: make conformance"


@pytest.fixture
def compare():
    """Compare the statuses of one check, directly and through the gateway."""

    def of(direct: list[str], gateway: list[str], explained: dict[tuple[str, str], str] | None = None) -> Any:
        check = comparing.Check
        before, after = ([check("s", "id", "name", status) for status in each] for each in (direct, gateway))
        return comparing.compare("title", "era", before, after, explained)

    return of


@pytest.mark.parametrize(
    "gateway",
    [["FAILURE"], ["WARNING"], ["SKIPPED"], [], ["SUCCESS"], ["SUCCESS", "SKIPPED"], ["SUCCESS", "SUCCESS", "FAILURE"]],
    ids=" ".join,
)
def test_a_check_that_passes_twice_directly_is_lost_unless_it_passes_twice_and_nothing_else(compare, gateway) -> None:
    [loss] = compare(["SUCCESS", "SUCCESS"], gateway).lost
    assert (loss.direct, loss.gateway) == (2, gateway.count("SUCCESS"))


@pytest.mark.parametrize(
    ("direct", "gateway"),
    [
        (["SUCCESS"], ["SUCCESS", "SUCCESS"]),
        (["SKIPPED"], []),
        (["SKIPPED"], ["SUCCESS"]),
        (["SUCCESS"], ["SUCCESS", "SKIPPED"]),
    ],
)
def test_what_passes_as_often_is_not_lost(compare, direct, gateway) -> None:
    comparison = compare(direct, gateway)
    assert comparison.losses == []
    assert comparison.gateway == comparison.direct == direct.count("SUCCESS")


def test_a_failure_that_is_not_there_directly_is_a_loss(compare) -> None:
    assert [loss.found for loss in compare([], ["FAILURE"]).lost] == ["FAILURE"]


def test_an_explained_loss_is_told_and_not_lost(compare) -> None:
    comparison = compare(["SUCCESS"], ["SKIPPED"], {("s", "id"): "it cannot be"})
    assert (comparison.lost, [loss.why for loss in comparison.losses]) == ([], ["it cannot be"])


def test_an_explanation_of_what_is_not_lost_is_stale(compare) -> None:
    assert compare(["SUCCESS"], ["SUCCESS"], {("s", "id"): "it cannot be"}).stale == ["s: id"]
