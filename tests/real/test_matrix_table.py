"""The table of the matrix in a real browser: filters from the address, and no page wider than its window."""

import html
import re
import subprocess
from pathlib import Path

import pytest

from docs.matrix_page import table_page
from lab.matrix import kept_runs, known_from_profiles

_MEASURED = "<script>document.title = `${document.documentElement.scrollWidth} ${innerWidth}`</script></html>"


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> Path:
    kept = kept_runs()
    last = kept["codex"][-1]
    former = [record.model_copy(update={"version": "0.1.0"}) for record in last]
    page = table_page({**kept, "codex": [former, last]}, known_from_profiles())
    path = tmp_path_factory.mktemp("matrix") / "table.html"
    path.write_text(page.replace("</html>", _MEASURED), "utf-8")
    return path


def shown(chromium: str, table: Path, state: str, width: int = 1280) -> str:
    """The page as it is after its script has run."""
    flags = ["--headless", "--no-sandbox", "--disable-gpu", f"--window-size={width},900"]
    profile = f"--user-data-dir={table.parent / 'profile'}"
    command = [chromium, *flags, profile, "--dump-dom", f"{table.as_uri()}#{state}"]
    done = subprocess.run(command, capture_output=True, text=True, encoding="utf-8", timeout=300, check=True)
    return done.stdout


def test_the_filters_of_an_address_leave_the_rows_that_fit(chromium: str, table: Path) -> None:
    page = shown(chromium, table, "host=codex&directly=lost&unheard=of")
    rows = [tag for tag in re.findall(r"<tr [^>]*data-host[^>]*>", page) if "hidden" not in tag]
    lost = [one for one in kept_runs()["codex"][-1] if one.directly and one.directly.verdict == "lost"]
    assert len(rows) == len(lost) > 0
    assert all('data-host="codex"' in row and 'data-directly="lost"' in row for row in rows)
    assert f"{len(rows)} of " in html.unescape(page)
    assert '<form id="filters">' in page


def test_earlier_versions_are_shown_if_asked_for(chromium: str, table: Path) -> None:
    page = shown(chromium, table, "host=codex&case=chart&earlier=1&level=%3Cscript%3E")
    rows = [tag for tag in re.findall(r"<tr [^>]*data-host[^>]*>", page) if "hidden" not in tag]
    assert [("data-earlier" in row) for row in rows] == [True, False]
    assert "nothing changed since 0.1.0" in page


@pytest.mark.parametrize("width", [400, 1920])
def test_the_page_is_as_wide_as_its_window(chromium: str, table: Path, width: int) -> None:
    title = re.search(r"<title>(\d+) (\d+)</title>", shown(chromium, table, "", width))
    assert title
    assert int(title[1]) <= int(title[2])
