"""Runs become proposed changes of profiles: a diff that applies, and remarks on what a person has to decide."""

import shutil
import subprocess
import tomllib
from collections.abc import Sequence
from datetime import date
from pathlib import Path

import pytest

from gateway.core.profiles.calibrate_profile import PARTS, Sight
from gateway.core.profiles.export_calibration import ExportedHost, calibration_records
from gateway.core.profiles.matrix import CaseRecord, Cell, matrix_text
from lab import report
from lab.diff_words import Run
from lab.frameworks import ROOT, LabError
from lab.matrix import kept_runs
from lab.profile_text import NewFact, with_fact
from lab.report import difference, proposed, runs_in

KEPT = kept_runs()
BLOCKS = frozenset(block for blocks in PARTS.values() for block in blocks)
LOST = Cell(verdict="lost", shown=0, of=1)


def later(host: str, *apis: str, **cells: Cell) -> Run:
    """The next version of a host, with some cases seen otherwise, on all model APIs or these."""

    def now(record: CaseRecord) -> CaseRecord:
        is_other = record.case in cells and (not apis or record.model_api in apis)
        other = {"directly": cells[record.case]} if is_other else {}
        return record.model_copy(update={"version": "99.0", "date": date(2027, 1, 2), **other})

    return [now(record) for record in KEPT[host][-1]]


def calibrated(name: str, *unread: str, version: str = "3.1") -> Run:
    sight = Sight(BLOCKS, BLOCKS - set(unread))
    return tuple(calibration_records(ExportedHost(name, version, "m-1", date(2027, 1, 2), "9.9"), sight.read))


def facts(texts: dict[str, str], file: str) -> dict[str, dict[str, object]]:
    """The facts of a changed file that are from these runs, by what they set."""
    found = tomllib.loads(texts[file])["fact"]
    return {str(sorted(one["sets"])): one for one in found if one["checked"] == date(2027, 1, 2)}


def test_what_a_host_has_lost_becomes_a_fact_in_place_of_the_former_value() -> None:
    texts, remarks = proposed([later("codex", error=LOST)])
    (fact,) = facts(texts, "codex.toml").values()
    assert fact == {
        "level": "measured",
        "source": f"{KEPT['codex'][-1][0].evidence.reference}: an error with a PNG: lost on openai_responses",
        "host_version": "99.0",
        "checked": date(2027, 1, 2),
        "sets": {"error": {"media": "unflag"}},
    }
    assert remarks == ["Codex 99.0: 12 findings are as the profile codex says, 1 otherwise"]


def test_the_diff_applies_and_changes_no_file_by_itself(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    sent = tmp_path / "codex.json"
    sent.write_text(matrix_text(later("codex", gif=LOST, webp=LOST)), "utf-8")
    profile = ROOT / "gateway" / "hosts" / "profiles" / "codex.toml"
    before = profile.read_bytes()
    assert report.main([str(sent)]) == 0
    printed = capsys.readouterr()
    assert profile.read_bytes() == before
    assert '+sets.image.types = ["image/png", "image/jpeg"]' in printed.out
    assert "otherwise" in printed.err
    copy = tmp_path / "gateway" / "hosts" / "profiles" / "codex.toml"
    copy.parent.mkdir(parents=True)
    copy.write_bytes(before)
    (tmp_path / "proposed.diff").write_text(printed.out, "utf-8")
    subprocess.run([shutil.which("git") or "git", "apply", "proposed.diff"], cwd=tmp_path, check=True)
    assert copy.read_text("utf-8") == proposed(runs_in([sent]))[0]["codex.toml"]


def test_what_differs_between_apis_is_for_a_person_to_decide() -> None:
    texts, remarks = proposed([later("opencode", "openai_chat", error=Cell(verdict="seen", shown=1, of=1))])
    assert texts == {}
    assert remarks[1:] == [
        "opencode 99.0: an error with a PNG: seen on openai_chat, but on anthropic_messages and openai_responses "
        'as the profile says; the profile says error.media = "unflag"'
    ]


@pytest.mark.parametrize("verdict", ["refused", "failed"])
def test_what_an_api_refuses_or_a_program_ends_at_says_nothing_of_a_profile(verdict: str) -> None:
    cell = LOST.model_copy(update={"verdict": verdict})
    assert proposed([later("codex", chart=cell, error=cell)])[0] == {}


def test_a_host_that_shows_no_picture_says_nothing_of_their_types() -> None:
    texts, _ = proposed([later("codex", chart=LOST, gif=LOST, error=LOST)])
    (fact,) = facts(texts, "codex.toml").values()
    assert fact["sets"] == {"image": {"show": "line"}, "error": {"media": "line"}}


def test_a_variant_gets_the_fact_in_its_own_table() -> None:
    texts, _ = proposed([later("qwen-code", "anthropic_messages", pdf=Cell(verdict="lost"))])
    variant = next(one for one in tomllib.loads(texts["qwen-code.toml"])["variant"] if one["name"] == "anthropic")
    assert {"document": {"show": "text"}} in [one["sets"] for one in variant["fact"]]


def test_a_host_without_a_profile_of_its_own_changes_none() -> None:
    texts, remarks = proposed([calibrated("Unheard Of", "error picture")])
    assert texts == {}
    assert "Unheard Of 3.1: Unheard Of has no profile of its own: `make new-host NAME=unheard-of` writes one" in remarks


def test_a_calibration_that_was_sent_in_is_matched_by_the_hosts_own_name() -> None:
    texts, remarks = proposed([calibrated("codex-mcp-client", "error picture", "sound")])
    found = facts(texts, "codex.toml")
    fact = found["['error']"]
    assert fact["sets"] == {"error": {"media": "unflag"}}
    assert fact["source"] == "mcp-gateway calibrate 9.9, codes read by the model, model m-1: no picture beside an error"
    assert fact["host_version"] == "3.1"
    assert "['audio']" not in found
    assert remarks[0].startswith("codex-mcp-client 3.1: ")


def test_a_calibration_whose_model_read_nothing_proposes_nothing() -> None:
    assert proposed([calibrated("codex-mcp-client", *BLOCKS)])[0] == {}


def test_a_later_run_overrules_and_says_so(tmp_path: Path) -> None:
    runs: Sequence[Run] = (later("codex", error=LOST), calibrated("codex-mcp-client", "error picture", version="100.0"))
    texts, remarks = proposed(runs)
    assert texts["codex.toml"].count("sets.error.media") == 1
    assert "error.media was also proposed from Codex 99.0: the later one is kept" in remarks[-1]
    files = [tmp_path / name for name in ("a.json", "b.json")]
    for file, run in zip(files, reversed(runs), strict=True):
        file.write_text(matrix_text(run), "utf-8")
    assert [run[0].version for run in runs_in(files)] == ["99.0", "100.0"]


def test_what_profiles_say_themselves_proposes_nothing() -> None:
    texts, remarks = proposed(runs_in([ROOT / "docs" / "matrix" / "profiles.json"]))
    assert (texts, remarks) == ({}, [])


def test_a_value_from_outside_stays_a_string_in_the_diff() -> None:
    record: CaseRecord = KEPT["codex"][-1][0]
    evil = 'x"\nlevel = "source'
    fact = NewFact(evil.replace("\n", " "), evil.replace("\n", " "), record.date, {"error.media": "unflag"})
    text = (ROOT / "gateway" / "hosts" / "profiles" / "codex.toml").read_text("utf-8")
    changed = with_fact(text, fact)
    assert tomllib.loads(changed)["fact"][-1]["host_version"] == 'x" level = "source'
    assert "+sets.error.media" in difference({"codex.toml": changed})


def test_a_file_written_in_another_way_is_left_to_a_person() -> None:
    fact = NewFact("x", "1", date(2027, 1, 2), {"error.media": "unflag"})
    with pytest.raises(LabError, match="no variant"):
        with_fact('title = "X"\n', fact, "large")
    with pytest.raises(LabError, match="by hand"):
        with_fact('fact = [{ level = "source" }]\n', fact)


def test_a_file_that_is_missing_or_broken_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "broken.json").write_text('{"format": 7, "records": []}')
    for name, words in (("missing.json", "cannot be read"), ("broken.json", "newer version")):
        assert report.main([str(tmp_path / name)]) == 1
        error = capsys.readouterr().err
        assert name in error
        assert words in error


def test_every_profile_says_what_the_last_runs_say_or_it_is_said_why_not() -> None:
    texts, remarks = proposed([runs[-1] for runs in KEPT.values()])
    assert texts == {}
    open_ones = [one for one in remarks if "; the profile says " in one]
    # Its texts are read twice, whatever their length (lab/frameworks/semantic-kernel.toml).
    assert [one.partition(":")[0] for one in open_ones] == ["Semantic Kernel 1.45.0"]
    assert sum("; the profile stays as it is: " in one for one in remarks) >= 9


def test_a_text_that_was_cut_is_no_reason_to_send_longer_ones() -> None:
    texts, _ = proposed([later("cline", long=Cell(verdict="seen"))])
    assert texts == {}
