"""The whole demo, run as a person runs it: real processes, real transports."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from gateway.demo.cases import CASES
from gateway.simulation.hosts import SIMULATORS

ROOT = Path(__file__).parents[2]
PROC = Path("/proc")


@pytest.fixture(scope="module")
def ran(tmp_path_factory: pytest.TempPathFactory) -> tuple[subprocess.CompletedProcess[str], Path]:
    """One run of the demo for all tests here, and its report."""
    report = tmp_path_factory.mktemp("demo") / "report.html"
    command = [sys.executable, "-m", "gateway", "demo", "--json", "--report", str(report)]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=280, check=False), report


def _outcome(ran: tuple[subprocess.CompletedProcess[str], Path]) -> dict[str, Any]:
    return json.loads(ran[0].stdout)


def test_every_host_sees_every_image_that_it_can_show_and_no_base64(ran: Any) -> None:
    outcome = _outcome(ran)
    wrong = [(one["host"], one["case"], one["through"]) for one in outcome["results"] if not one["through"]["good"]]
    assert wrong == []
    assert (ran[0].returncode, outcome["good"]) == (0, True)
    assert sum(one["through"]["images_shown"] for one in outcome["results"]) == 6 * 12
    assert sum(one["through"]["base64_chars"] for one in outcome["results"]) == 0


def test_there_is_a_cell_for_every_host_and_every_case(ran: Any) -> None:
    cells = {(one["host"], one["case"]) for one in _outcome(ran)["results"]}
    assert cells == {(host, case.name) for host in SIMULATORS for case in CASES}


@pytest.mark.parametrize(
    ("host", "case", "words"),
    [
        ("codex", "structured + image", "image lost"),
        ("gemini-cli", "structured alone", "lost"),
        ("claude-code", "error + image", "image lost"),
        ("claude-desktop", "2 MB of text", "host error"),
    ],
)
def test_without_the_gateway_the_measured_losses_happen(ran: Any, host: str, case: str, words: str) -> None:
    [cell] = [one for one in _outcome(ran)["results"] if (one["host"], one["case"]) == (host, case)]
    assert cell["direct"]["summary"] == words


def test_cline_gets_no_base64_but_a_line_for_every_image(ran: Any) -> None:
    cells = [one for one in _outcome(ran)["results"] if one["host"] == "cline"]
    assert sum(one["through"]["images_named"] for one in cells) == 12
    assert sum(one["direct"]["base64_chars"] > 0 for one in cells) >= 12


def test_the_report_shows_every_case_with_its_pictures(ran: Any) -> None:
    text = ran[1].read_text(encoding="utf-8")
    assert all(f'id="{case.tool}"' in text for case in CASES)
    assert text.count("background-image:url(") >= 12
    assert "119<small> of 119" in text


def _descendants(pid: int) -> set[tuple[int, str]]:
    """The processes below `pid`, each with when it started, since process ids come round again."""
    parents: dict[int, int] = {}
    started: dict[int, str] = {}
    for folder in PROC.glob("[0-9]*"):
        try:
            fields = (folder / "stat").read_text().rpartition(")")[2].split()
        except OSError:
            continue
        parents[int(folder.name)], started[int(folder.name)] = int(fields[1]), fields[19]
    found = {pid}
    while more := {child for child, parent in parents.items() if parent in found} - found:
        found |= more
    return {(child, started[child]) for child in found - {pid}}


def _alive(process: tuple[int, str]) -> bool:
    try:
        fields = (PROC / str(process[0]) / "stat").read_text().rpartition(")")[2].split()
    except OSError:
        return False
    return fields[19] == process[1] and fields[0] != "Z"


@pytest.mark.skipif(not (PROC / "self" / "stat").exists(), reason="reads the processes of Linux")
@pytest.mark.parametrize(
    ("line", "how"),
    [("directly: documents", signal.SIGTERM), ("through the gateway: Codex", signal.SIGINT)],
)
def test_nothing_is_left_running_when_it_is_interrupted(line: str, how: signal.Signals, tmp_path: Path) -> None:
    command = [sys.executable, "-m", "gateway", "demo", "--report", str(tmp_path / "report.html")]
    with subprocess.Popen(
        command, cwd=ROOT, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, start_new_session=True
    ) as demo:
        assert demo.stderr is not None
        assert any(said.startswith(line) for said in demo.stderr)
        below = _descendants(demo.pid)
        assert len(below) >= 2
        os.kill(demo.pid, how)
        demo.stderr.read()
        assert demo.wait(timeout=60) == 130
    assert [process for process in below if _alive(process)] == []
