"""The whole demo, run as a person runs it: real processes, real transports."""

import base64
import io
import json
import os
import re
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image, ImageDraw

from examples.charts.canvas import font
from examples.charts.desktop import LETTERS, LINE, LOG_AT, WIDTH, log_lines
from gateway.cli.demo.cases import CASES
from gateway.config.builtin_profiles import builtin_profiles
from gateway.hosts.simulators.hosts import FIRST

ROOT = Path(__file__).parents[3]
PROC = Path("/proc")
FITTED = ("claude-code", "claude-desktop", "codex", "gemini-cli", "unknown")
"""The hosts that show images, and take no screenshot of several megabytes as it is."""


@pytest.fixture(scope="module")
def ran(tmp_path_factory: pytest.TempPathFactory) -> tuple[subprocess.CompletedProcess[str], Path]:
    """One run of `make demo` for all tests here, and its report: CI runs it nowhere else."""
    report = tmp_path_factory.mktemp("demo") / "report.html"
    # Nothing of what an outer make has left: the variables of `make test`, and its ARGS.
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("MAKE", "MFLAGS"))}
    command = ["make", "demo", f"ARGS=--json --report {report}"]
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=280, check=False)
    return done, report


def _outcome(ran: tuple[subprocess.CompletedProcess[str], Path]) -> dict[str, Any]:
    return json.loads(ran[0].stdout)


def test_every_host_sees_every_image_that_it_can_show_and_no_base64(ran: Any) -> None:
    outcome = _outcome(ran)
    wrong = [(one["host"], one["case"], one["through"]) for one in outcome["results"] if not one["through"]["good"]]
    assert wrong == []
    assert (ran[0].returncode, outcome["good"]) == (0, True)
    assert sum(one["through"]["images_shown"] for one in outcome["results"]) == 6 * 13
    assert sum(one["through"]["base64_chars"] for one in outcome["results"]) == 0


def test_there_is_a_cell_for_every_host_and_every_case(ran: Any) -> None:
    cells = {(one["host"], one["case"]) for one in _outcome(ran)["results"]}
    assert cells == {(host.name, case.name) for host in FIRST for case in CASES}


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
    assert sum(one["through"]["images_named"] for one in cells) == 13
    assert sum(one["direct"]["base64_chars"] > 0 for one in cells) >= 13


def test_the_report_shows_every_case_with_its_pictures(ran: Any) -> None:
    text = ran[1].read_text(encoding="utf-8")
    assert all(f'id="{case.tool}"' in text for case in CASES)
    assert text.count("background-image:url(") >= 13
    assert "126<small> of 126" in text


def _fitted_screenshot(ran: Any, host: str) -> tuple[tuple[int, int], float, Image.Image]:
    """The screenshot that a host gets through the gateway, by the report: pixels, bytes, and the part that it shows."""
    text = ran[1].read_text(encoding="utf-8")
    article = text.partition(f'<article id="screenshot-{host}">')[2].partition("</article>")[0]
    through = article.partition('data-name="through the gateway"')[2]
    width, height, size, unit = re.findall(r"(\d+) × (\d+), ([\d.]+) (KB|MB)", through)[0]
    [name] = re.findall(r'class="detail (\w+)"', through)
    [data] = re.findall(rf'\.{name}{{background-image:url\("data:image/webp;base64,([^"]+)"', text)
    part = Image.open(io.BytesIO(base64.b64decode(data)))
    return (int(width), int(height)), float(size) * {"KB": 1e3, "MB": 1e6}[unit], part.convert("L")


@pytest.mark.parametrize("host", FITTED)
def test_a_large_screenshot_is_made_to_fit_the_host(ran: Any, host: str) -> None:
    rules = builtin_profiles()["default" if host == "unknown" else host]
    pixels, size, _ = _fitted_screenshot(ran, host)
    assert rules.image.max_edge
    assert rules.limits.result_chars
    assert max(pixels) == rules.image.max_edge
    assert size * 4 / 3 < rules.limits.result_chars


@pytest.mark.parametrize("host", FITTED)
def test_text_of_10_points_in_a_fitted_screenshot_is_legible_in_the_report(ran: Any, host: str) -> None:
    pixels, _, part = _fitted_screenshot(ran, host)
    [at] = [case.detail for case in CASES if case.detail]
    scale = WIDTH / pixels[0]
    begin = (round(at[0] * pixels[0]) * scale, round(at[1] * pixels[1]) * scale)
    rows = range(int((begin[1] + part.height * scale - LOG_AT[1]) // LINE))
    wanted = [log_lines(7)[row] for row in rows]
    assert len(wanted) >= 10
    assert [
        _read(part, line, LOG_AT[1] + row * LINE, begin, scale) for row, line in zip(rows, wanted, strict=True)
    ] == [_number(line) for line in wanted]
    # Ink stays dark and paper light: 4.5 to 1 is what WCAG 2.2 asks of text (1.4.3).
    light, dark = ((np.percentile(np.asarray(part, dtype=float), share) / 255) ** 2.2 for share in (95, 1))
    assert (light + 0.05) / (dark + 0.05) > 4.5


def _number(line: str) -> str:
    return line.partition("/orders/")[2][:6]


def _read(part: Image.Image, line: str, top: int, begin: tuple[float, float], scale: float) -> str:
    """The number of the order in a line: of all digits in each place, the one that makes the likest picture."""
    first = line.index("/orders/") + len("/orders/")
    upper = round((top - begin[1]) / scale)
    lower = upper + int(LINE / scale)
    seen = np.asarray(part.crop((0, upper, part.width, lower)), dtype=float).ravel()
    box = (begin[0], begin[1] + upper * scale, begin[0] + part.width * scale, begin[1] + lower * scale)

    def likeness(digit: str, place: int) -> float:
        strip = Image.new("L", (WIDTH // 2, LINE * 3), 255)
        words = line[: first + place] + digit + line[first + place + 1 :]
        ImageDraw.Draw(strip).text((LOG_AT[0], LINE), words, 0, font(LETTERS))
        above = top - LINE
        cut = (box[0], box[1] - above, box[2], box[3] - above)
        drawn = strip.resize((part.width, lower - upper), Image.Resampling.LANCZOS, cut)
        return float(np.corrcoef(np.asarray(drawn, dtype=float).ravel(), seen)[0, 1])

    return "".join(max("0123456789", key=lambda digit: likeness(digit, place)) for place in range(6))


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
    [("directly: documents", signal.SIGTERM), ("through the gateway: Claude Desktop", signal.SIGINT)],
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
