"""The matrix in public: JSON that fits its schema, a version that stays, badges, and a table that needs no network."""

import json
import re
import xml.etree.ElementTree as ElementTree
from html.parser import HTMLParser
from pathlib import Path

import jsonschema_rs
import pytest

from docs import matrix_page
from gateway.config.builtin_profiles import builtin_profiles
from gateway.core.profiles.matrix import CaseEvidence, CaseRecord, Cell, matrix_text, read_matrix
from gateway.core.profiles.profile_words import NAMELESS
from lab import matrix
from lab.badge import badge, images_seen
from lab.cases import cases
from lab.matrix import MATRIX, RUNS, kept_runs, known_from_profiles, last_runs, matrix_files

SCHEMA = jsonschema_rs.validator_for(json.loads((MATRIX / "schema.json").read_text("utf-8")))
FILES = sorted([*RUNS.glob("*/*.json"), MATRIX / "profiles.json"])
EVIL = "<script>alert(1)</script>\"'&"


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(MATRIX)))
def test_every_file_fits_the_schema(path: Path) -> None:
    SCHEMA.validate(json.loads(path.read_text("utf-8")))
    read_matrix(path.read_bytes(), path.name)


def test_the_last_run_of_each_host_is_there_cell_by_cell() -> None:
    kept = kept_runs()
    assert set(kept) >= {run.name for run in last_runs()}
    for run in last_runs():
        found = next(one for one in kept[run.name] if one[0].version == run.version)
        assert len(found) == len(run.findings) * len(cases())
        for record in found:
            finding = run.findings[record.model_api or ""]["alone"][record.case]
            assert record.directly
            assert (record.directly.verdict, record.directly.shown or 0) == (finding.word, finding.shown)
            assert (record.host, record.date.isoformat(), record.evidence.level) == (run.name, run.date, "run")


@pytest.mark.parametrize("path", sorted(RUNS.glob("*/*.json")), ids=lambda path: f"{path.parent.name}-{path.stem}")
def test_what_is_not_seen_through_the_gateway_is_explained_in_every_run(path: Path) -> None:
    for record in read_matrix(path.read_bytes(), path.name):
        assert record.gateway is not None
        assert bool(record.gateway.because) == (record.gateway.verdict != "seen"), (record.model_api, record.case)
        assert record.directly is None or not record.directly.because


def test_every_host_with_evidence_of_its_own_that_is_not_run_is_known_from_its_profile() -> None:
    known = known_from_profiles()
    names = {record.host for record in known}
    assert {"zed", "cursor", "claude-desktop"} <= names
    assert not names & ({run.name for run in last_runs()} | set(NAMELESS))
    for record in known:
        evidence = builtin_profiles()[record.host].evidence.values()
        fact = next(fact for fact in evidence if fact.source == record.evidence.reference)
        assert (record.evidence.level, record.date, record.gateway) == (fact.level, fact.checked, None)


def test_the_file_of_a_former_version_stays_and_is_listed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    runs = tmp_path / "runs"
    former = [record.model_copy(update={"version": "0.9.0"}) for record in kept_runs()["codex"][-1]]
    (runs / "codex").mkdir(parents=True)
    (runs / "codex" / "0.9.0.json").write_text(matrix_text(former), "utf-8")
    for module in (matrix, matrix_page):
        monkeypatch.setattr(module, "RUNS", runs)
    files = matrix_page.matrix_pages(builtin_profiles())
    assert runs / "codex" / "0.9.0.json" not in files
    page = files[MATRIX.parent / "hosts" / "matrix.md"]
    now = next(run.version for run in last_runs() if run.name == "codex")
    assert f"[{now}](../matrix/runs/codex/{now}.json), [0.9.0](../matrix/runs/codex/0.9.0.json)" in page
    for path, text in matrix_files(builtin_profiles()).items():
        if path.parent.parent == runs:
            path.parent.mkdir(exist_ok=True)
            path.write_text(text, "utf-8")
    assert [run[0].version for run in kept_runs(runs)["codex"]] == ["0.9.0", now]


def test_files_are_the_same_whenever_they_are_made() -> None:
    assert matrix_page.matrix_pages(builtin_profiles()) == matrix_page.matrix_pages(builtin_profiles())


def record(**changed: object) -> CaseRecord:
    return CaseRecord(
        host="evil",
        title=EVIL,
        version=EVIL,
        case="chart",
        returns=EVIL,
        directly=Cell(verdict="lost", shown=0, of=1, why=EVIL, because=EVIL),
        evidence=CaseEvidence(level="user_report", reference=EVIL),
        date="2026-11-23",  # pyright: ignore[reportArgumentType]
    ).model_copy(update=changed)


def test_a_badge_is_well_formed_says_what_it_counts_and_can_be_read() -> None:
    for path in (MATRIX / "badges").glob("*.svg"):
        root = ElementTree.fromstring(path.read_text("utf-8"))
        words = [text.text for text in root.iter("{http://www.w3.org/2000/svg}text")]
        found = next(run for run in kept_runs()[path.stem] if run[0].version == (words[1] or "").split(", ")[1])
        seen, of = images_seen(found)
        assert words == ["images seen", f"{seen}/{of}, {found[0].version}"]
        assert root.get("aria-label", "").endswith(" ".join(filter(None, words)))
        for colour in re.findall(r'fill="(#[0-9a-f]{6})"', path.read_text("utf-8")):
            assert _contrast_with_white(colour) >= 4.5
    ElementTree.fromstring(badge([record()]))


def _contrast_with_white(colour: str) -> float:
    parts = [int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)]
    linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
    return 1.05 / (0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2] + 0.05)


class _Tags(HTMLParser):
    def __init__(self, page: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))


def test_the_table_has_a_row_for_every_record_without_script_and_loads_nothing() -> None:
    kept, known = kept_runs(), known_from_profiles()
    tags = _Tags(matrix_page.table_page(kept, known)).tags
    rows = [attributes for tag, attributes in tags if tag == "tr" and "data-host" in attributes]
    assert len(rows) == sum(len(run) for runs in kept.values() for run in runs) + len(known)
    assert not [attributes for _, attributes in tags if {"src", "srcset", "action"} & attributes.keys()]
    assert [attributes["href"] for _, attributes in tags if "href" in attributes] == ["../hosts/matrix/"]
    assert "<!--" not in matrix_page.table_page(kept, known)


def test_the_table_says_why_a_cell_with_the_gateway_is_not_seen() -> None:
    page = matrix_page.table_page(kept_runs(), known_from_profiles())
    assert "because Semantic Kernel writes every text as a Python object that has it twice" in page


def test_what_records_say_is_text_in_the_table() -> None:
    older = [record(version="1.0")]
    newer = [record(version="2.0", directly=Cell(verdict="seen", shown=1, of=1))]
    page = matrix_page.table_page({"evil": [older, newer]}, [record(host="other")])
    assert "<script>alert" not in page
    assert page.count("<script>") == 1
    tags = _Tags(page).tags
    assert [one.get("data-earlier") for tag, one in tags if tag == "tr" and one.get("data-host") == "evil"] == [
        "1",
        None,
    ]
    assert [one for _, one in tags if one.get("data-history") == "evil"]
