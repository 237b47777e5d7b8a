"""What changed between two runs, in sentences: from files, and from revisions of git."""

import shutil
import subprocess
from pathlib import Path

import pytest

from gateway.core.profiles.matrix import CaseRecord, Cell, Verdict, matrix_text
from lab import diff
from lab.diff import at_revision, differences
from lab.diff_words import sentences
from lab.frameworks import ROOT, LabError
from lab.matrix import kept_runs

OPENCODE = kept_runs()["opencode"][-1]
APIS = {record.model_api for record in OPENCODE}


def changed(case: str, cell: Cell, *apis: str | None, gateway: Cell | None = None) -> list[CaseRecord]:
    """opencode 1.19.0, which differs in one case, on all model APIs or these."""

    def now(record: CaseRecord) -> CaseRecord:
        is_other = record.case == case and record.model_api in (apis or APIS)
        other = {"directly": cell, "gateway": gateway or record.gateway} if is_other else {}
        return record.model_copy(update={"version": "1.19.0", **other})

    return [now(record) for record in OPENCODE]


@pytest.mark.parametrize(
    ("case", "cell", "said"),
    [
        ("structured_chart", Cell(verdict="lost", shown=0, of=1), "lost images beside structured content"),
        ("chart", Cell(verdict="named", shown=0, of=1), "only names images in a line"),
        ("sound", Cell(verdict="seen"), "now shows sound"),
        ("gif", Cell(verdict="refused", shown=0, of=1, why="x"), "now has GIF images refused by its model API (x)"),
        ("pdf", Cell(verdict="failed", why="it ended"), "now fails on PDF (it ended)"),
        ("many", Cell(verdict="lost", shown=20, of=26), "shows 20 of 26 images of “26 pictures”, instead of 26"),
        (
            "structured_chart",
            Cell(verdict="lost", shown=1, of=1, why="read more than once: 41"),
            "lost a part of “structured content beside a PNG”, not the images (read more than once: 41)",
        ),
    ],
)  # fmt: skip
def test_one_change_is_one_sentence(case: str, cell: Cell, said: str) -> None:
    assert sentences(OPENCODE, changed(case, cell)) == [f"opencode 1.19.0 {said}"]


@pytest.mark.parametrize(
    ("before", "said"),
    [("refused", "drops images, which its model API had refused"), ("failed", "drops images, at which it had failed")],
)
def test_what_is_dropped_now_and_ended_a_conversation_before_was_not_lost(before: Verdict, said: str) -> None:
    lost = Cell(verdict="lost", shown=0, of=1)
    old = changed("chart", lost.model_copy(update={"verdict": before}))
    assert sentences(old, changed("chart", lost)) == [f"opencode 1.19.0 {said}"]


def test_a_sentence_says_on_which_apis_and_whether_with_the_gateway() -> None:
    lost = Cell(verdict="lost", shown=0, of=1)
    assert sentences(OPENCODE, changed("chart", lost, "openai_chat")) == ["opencode 1.19.0 lost images on openai_chat"]
    assert sentences(OPENCODE, changed("chart", lost, gateway=lost)) == [
        "opencode 1.19.0 lost images",
        "opencode 1.19.0 lost images, with the gateway",
    ]
    assert sentences(OPENCODE, changed("none", lost)) == []


def test_what_was_not_compared_is_said() -> None:
    chat = [record for record in OPENCODE if record.model_api == "openai_chat" and record.case != "sound"]
    assert sentences(OPENCODE, chat) == [
        "opencode 1.18.33 was no longer run on anthropic_messages and openai_responses",
        "opencode 1.18.33 was no longer tried with sound",
    ]


def test_files_and_results_of_the_lab_are_compared(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    new = tmp_path / "opencode.json"
    new.write_text(matrix_text(changed("structured_chart", Cell(verdict="lost", shown=0, of=1))), "utf-8")
    old = ROOT / "docs" / "matrix" / "hosts" / "opencode.toml"
    assert diff.main([str(old), str(new)]) == 0
    assert capsys.readouterr().out == (
        "## opencode 1.18.33 → 1.19.0\n\n- opencode 1.19.0 lost images beside structured content\n"
    )
    assert differences(str(old), "") == []
    assert differences(str(new), "")[2] == "- opencode 1.18.33 now shows images beside structured content"


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    """A repository whose second revision has opencode 1.19.0, which lost GIF images, and no Codex."""
    hosts = tmp_path / "docs" / "matrix" / "hosts"
    shutil.copytree(ROOT / "docs" / "matrix" / "hosts", hosts)
    git = [shutil.which("git") or "git", "-C", str(tmp_path), "-c", "user.name=A", "-c", "user.email=a@example.com"]
    subprocess.run([*git, "init", "-q"], check=True)
    for message in ("first", "second"):
        subprocess.run([*git, "add", "-A"], check=True)
        subprocess.run([*git, "commit", "-qm", message], check=True)
        text = (hosts / "opencode.toml").read_text("utf-8").replace("1.18.33", "1.19.0")
        lost = text.replace('gif = {is = "seen", shown = 1, of = 1}', 'gif = {is = "lost", shown = 0, of = 1}')
        (hosts / "opencode.toml").write_text(lost, "utf-8")
        (hosts / "codex.toml").unlink(missing_ok=True)
    return tmp_path


def test_revisions_are_compared(repository: Path) -> None:
    first, second = at_revision("HEAD~1", repository), at_revision("HEAD", repository)
    assert set(first) - set(second) == {"codex"}
    assert sentences(first["opencode"], second["opencode"]) == [
        "opencode 1.19.0 lost GIF images",
        "opencode 1.19.0 lost GIF images, with the gateway",
    ]
    with pytest.raises(LabError, match="unheard-of"):
        at_revision("unheard-of", repository)


def test_what_cannot_be_compared_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for name, content in (("a.json", "{}"), ("b.toml", "= 1"), ("c.toml", 'title = "X"'), ("d.toml", "date = 1")):
        (tmp_path / name).write_text(content, "utf-8")
        assert diff.main([str(tmp_path / name)]) == 1
        assert name in capsys.readouterr().err
    assert diff.main(["--", "--output=x"]) == 1
    assert "neither a file nor a revision" in capsys.readouterr().err
