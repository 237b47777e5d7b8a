"""`make new-host`: a skeleton that loads at once, claims nothing, and is unfinished until somebody fills it in."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from lab.new_host import MARK, ROOT, SkeletonError, left_marks, main, write_skeleton

LOADED = """
import json
from gateway.config.builtin_profiles import builtin_profiles, load_builtin
from gateway.core.profiles.host_profiles import PATHS, value_at
from gateway.hosts.simulators.hosts import SIMULATORS

profile, default = builtin_profiles()["brand-new"], builtin_profiles()["default"]
host = SIMULATORS["brand-new"]
seen = host.see({"content": [{"type": "text", "text": "words"}]}, None)
print(json.dumps({
    "title": profile.title,
    "extends": profile.lineage[0],
    "differs": [path for path in PATHS if value_at(profile, path) != value_at(default, path)],
    "facts": len(load_builtin()["brand-new"].fact),
    "match": [match.client_name for match in profile.match],
    "simulated": [host.title, seen.text],
}))
"""


def run(*command: str, cwd: Path) -> str:
    # The copy is gone when coverage is reported, so nothing of it is measured.
    environment = {name: value for name, value in os.environ.items() if not name.startswith("COVERAGE_")}
    done = subprocess.run(
        command, cwd=cwd, env=environment, capture_output=True, encoding="utf-8", timeout=120, check=False
    )
    assert (done.returncode, done.stderr) == (0, ""), done.stdout
    return done.stdout


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """What the command needs of a checkout, in a folder of its own."""
    for folder in ("gateway", "lab"):
        shutil.copytree(ROOT / folder, tmp_path / folder, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(ROOT / "pyproject.toml", tmp_path)
    return tmp_path


def test_a_skeleton_loads_and_claims_nothing(checkout: Path) -> None:
    said = run(sys.executable, "-m", "lab.new_host", "brand-new", cwd=checkout)
    profile, simulator = "gateway/hosts/profiles/brand-new.toml", "gateway/hosts/simulators/brand_new.py"
    assert said.startswith(f"written: {profile}\nwritten: {simulator}\nNext:\n")
    assert json.loads(run(sys.executable, "-c", LOADED, cwd=checkout)) == {
        "title": "Brand New",
        "extends": "default",
        "differs": [],
        "facts": 0,
        "match": ["brand-new"],
        "simulated": ["Brand New", "words"],
    }
    ruff = str(Path(sys.executable).with_name("ruff"))
    run(ruff, "check", "--quiet", "--no-cache", simulator, cwd=checkout)
    run(ruff, "format", "--check", "--quiet", "--no-cache", simulator, cwd=checkout)


def test_what_is_still_to_be_filled_in_is_named_with_its_line(checkout: Path) -> None:
    profile, simulator = write_skeleton("brand-new", checkout)
    left = list(left_marks(checkout))
    assert any(line.startswith("gateway/hosts/profiles/brand-new.toml:2: # FILL IN: the title") for line in left)
    assert any(line.startswith("gateway/hosts/simulators/brand_new.py:3: FILL IN: where") for line in left)
    for path in (profile, simulator):
        path.write_text(path.read_text("utf-8").replace(MARK, "filled in"), "utf-8")
    assert list(left_marks(checkout)) == []


def test_no_host_of_this_project_is_a_skeleton() -> None:
    if left := list(left_marks()):
        pytest.fail(
            "\n".join(["still to be filled in by somebody who knows (then delete the mark):", *left]), pytrace=False
        )


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("", "the host needs a name: make new-host NAME=acme-ide"),
        (
            "Acme IDE",
            "'Acme IDE' is not lower-case letters and digits joined by single hyphens; did you mean 'acme-ide'?",
        ),
        ("../evil", "'../evil' is not lower-case letters and digits joined by single hyphens; did you mean 'evil'?"),
        ("--", "'--' is not lower-case letters and digits joined by single hyphens"),
        ("codex", "a profile is called 'codex' already; to change it, edit it"),
        ("openai-agents-chat", "a profile is called 'openai-agents-chat' already; to change it, edit it"),
        ("opencode-compat", "a simulated host is called 'opencode-compat' already"),
        ("results", "gateway/hosts/simulators/results.py is there already; choose another name"),
    ],
)
def test_a_name_that_no_new_host_can_have_is_an_error(
    name: str, message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([name]) == 2
    assert capsys.readouterr() == ("", f"error: {message}\n")


def test_a_second_skeleton_does_not_overwrite_the_first(checkout: Path) -> None:
    profile, _ = write_skeleton("brand-new", checkout)
    profile.write_text("mine", "utf-8")
    with pytest.raises(SkeletonError, match=r"brand-new\.toml is there already"):
        write_skeleton("brand-new", checkout)
    assert profile.read_text("utf-8") == "mine"


def test_a_word_of_python_is_no_obstacle(checkout: Path) -> None:
    _, simulator = write_skeleton("yield", checkout)
    assert simulator.name == "yield_.py"
